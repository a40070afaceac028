"""Virtual time: the servers' own code on an event loop without sockets, whose time jumps."""
