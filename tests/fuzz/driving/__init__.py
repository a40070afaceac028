"""What the targets drive: servers without sockets, peers, and time that passes when it is told."""
