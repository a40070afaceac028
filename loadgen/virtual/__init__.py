"""Virtual time: the servers' own code on a loop without sockets, whose time jumps."""
