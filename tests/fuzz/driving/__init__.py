"""Worlds of the targets: servers without sockets, peers, and a manual clock."""
