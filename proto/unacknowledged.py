"""How many bytes a socket's kernel still holds because the peer has not acknowledged them."""

from __future__ import annotations

import struct

try:
    import fcntl
    import termios

    _REQUEST: int | None = getattr(termios, "TIOCOUTQ", None)
except ImportError:  # no such calls on this system
    _REQUEST = None

_INT = struct.Struct("i")


def unacknowledged_bytes(descriptor: int) -> int:
    """Return the length of a TCP socket's send queue (SIOCOUTQ): unsent and unacknowledged bytes.

    0 where the system cannot tell, or the socket is no more: then what was handed to the kernel
    counts as taken.
    """
    if _REQUEST is None:
        return 0
    try:
        answer = fcntl.ioctl(descriptor, _REQUEST, bytes(_INT.size))
    except OSError:
        return 0
    (size_bytes,) = _INT.unpack(answer)
    return int(size_bytes)
