"""A port for a process that needs a number before its start."""

import socket
from contextlib import suppress
from random import randrange

FIRST, END = 20_000, 32_000
"""Below the systems' ephemeral ports, so that no other process takes one meanwhile."""


def free_port() -> int:
    while True:
        port = randrange(FIRST, END)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
