"""Asks the kernel for the state of the other end of a loopback connection.

Source: sock_diag(7), a request for exactly one socket. Linux only, needs no privilege; where it is
not to be had, nothing is known.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

ESTABLISHED = 1
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_ALL_STATES = 0xFFFFFFFF
_NO_COOKIE = b"\xff" * 8
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI")
_PATIENCE_SECONDS = 0.5
_LARGEST_ANSWER_BYTES = 4096


class SocketStates:
    """A netlink socket, used as a context manager."""

    def __init__(self) -> None:
        self._netlink: socket.socket | None = None

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError, AttributeError):
            self._netlink = socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG
            )
            self._netlink.settimeout(_PATIENCE_SECONDS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket: no more questions."""
        if self._netlink is not None:
            self._netlink.close()
            self._netlink = None

    def established(self, local: Any, remote: Any, family: int) -> bool | None:  # noqa: ANN401
        """Return whether this machine has an established socket from ``local`` to ``remote``.

        None: the kernel does not say.

        Args:
            local: Address of that socket, as ``getsockname`` gives it.
            remote: Address of its peer.
            family: ``AF_INET`` or ``AF_INET6``.
        """
        if self._netlink is None:
            return None
        try:
            self._netlink.send(state_request(local, remote, family))
            return state_of(self._netlink.recv(_LARGEST_ANSWER_BYTES)) == ESTABLISHED
        except OSError:
            self.close()  # an answer that comes late would pass for that to another question
            return None


def state_request(local: Any, remote: Any, family: int) -> bytes:  # noqa: ANN401
    """Return the netlink message that asks for one TCP socket."""
    body = (
        _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES)
        + struct.pack(">HH", local[1], remote[1])
        + socket.inet_pton(family, local[0]).ljust(16, b"\0")
        + socket.inet_pton(family, remote[0]).ljust(16, b"\0")
        + struct.pack("=I", 0)
        + _NO_COOKIE
    )
    size = _HEADER.size + len(body)
    return _HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0) + body


def state_of(answer: bytes) -> int | None:
    """Return the TCP state in the kernel's answer; None when there is no such socket."""
    kind = _HEADER.unpack_from(answer)[1]
    return answer[_HEADER.size + 1] if kind == _SOCK_DIAG_BY_FAMILY else None
