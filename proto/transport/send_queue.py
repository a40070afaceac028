"""The send queue of a socket: bytes in the kernel that the peer has not acknowledged."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress

try:
    import fcntl
    import termios

    _REQUEST: int | None = getattr(termios, "TIOCOUTQ", None)
except ImportError:  # no such calls on this system
    _REQUEST = None

_INT = struct.Struct("i")
_LINGER_NOT = struct.pack("ii", 1, 0)


def unacknowledged_bytes(descriptor: int) -> int:
    """Return the length of a TCP socket's send queue (SIOCOUTQ): unsent and unacknowledged bytes.

    0 where the system cannot tell, or the socket is no more: then what was handed to the kernel
    counts as taken.
    """
    if _REQUEST is None or descriptor < 0:
        return 0
    try:
        answer = fcntl.ioctl(descriptor, _REQUEST, bytes(_INT.size))
    except OSError:
        return 0
    (size_bytes,) = _INT.unpack(answer)
    return int(size_bytes)


def forget_unsent(descriptor: int) -> None:
    """Let the next close of a socket reset the connection and free its send queue (SO_LINGER)."""
    # A socket object of our own: what uvloop hands out has no options.
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
