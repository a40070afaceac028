"""The worlds that targets drive: servers without sockets, peers, and time that passes when told."""
