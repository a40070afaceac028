"""A port for a process that is told one before it starts."""

import socket
from contextlib import suppress
from random import randrange

FIRST, END = 20_000, 32_000
"""Below the ports that systems give to whoever asks for any: nobody else takes one meanwhile."""


def free_port() -> int:
    """Return a port that nobody has."""
    while True:
        port = randrange(FIRST, END)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
