"""The send queue of a socket: bytes in the kernel not acknowledged by the peer."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress

try:
    import fcntl
    import termios

    _REQUEST: int | None = getattr(termios, "TIOCOUTQ", None)
except ImportError:  # not available on this system
    _REQUEST = None

_INT = struct.Struct("i")
_LINGER_NOT = struct.pack("ii", 1, 0)


def unacknowledged_bytes(descriptor: int) -> int:
    """Return the length of a TCP socket's send queue (SIOCOUTQ): unsent and unacknowledged bytes.

    0 if unavailable, or if the socket is closed: then bytes handed to the kernel count as
    acknowledged.
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
    """Make the next close of a socket reset the connection and free its send queue (SO_LINGER)."""
    # A separate socket object, since uvloop's has no options.
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
