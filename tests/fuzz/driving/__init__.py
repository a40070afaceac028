"""What the targets drive: servers without sockets, and mutations that keep frames valid."""
