"""Detection that a server has closed a connection from which the client does not read.

A reset shows immediately, however many bytes are unread. A plain close does not: the FIN waits in
the server's kernel behind the unread bytes, perhaps for hours. On the loopback the server's end is
a socket of this machine and stops being established, which is visible. On other networks the close
is not detected.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limiter.clock import LoopClock, clock_sleep

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

LOOK_SECONDS = 0.1
# The kernel takes a microsecond for each socket of the machine: at most this share of time.
_SHARE_OF_TIME, _LONGEST_PAUSE_SECONDS = 0.05, 5.0
_ESTABLISHED = "01"
_IPV4_IN_IPV6 = "0000000000000000FFFF0000"
# Kernels that cannot report a FIN alone (macOS) still report a reset.
_HANG_UP = getattr(select, "POLLRDHUP", select.POLLHUP)


class UnreadConnections:
    """Detects when a server closes one of a task's connections that the client does not read.

    Mutable state: the watched connections.
    """

    def __init__(self) -> None:
        self._watched: dict[Hashable, tuple[Any, Callable[[], object]]] = {}
        self._stood: set[str] = set()
        self._looking: asyncio.Task[None] | None = None

    def watch(self, name: Hashable, connection: Any, on_closed: Callable[[], object]) -> None:  # noqa: ANN401
        """Call ``on_closed`` as soon as the server has closed a connection.

        :meth:`forget` ends the watching.
        """
        self._watched[name] = connection, on_closed
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

    def forget(self, name: Hashable) -> None:
        """Stop watching a connection that is read again or closed."""
        self._watched.pop(name, None)

    async def _look(self) -> None:
        pause_seconds = LOOK_SECONDS
        while self._watched:
            await clock_sleep(LoopClock(), pause_seconds)
            begun = time.perf_counter()
            established = await asyncio.to_thread(established_sockets)
            took_seconds = time.perf_counter() - begun
            pause_seconds = min(
                max(LOOK_SECONDS, took_seconds / _SHARE_OF_TIME), _LONGEST_PAUSE_SECONDS
            )
            for name, (connection, on_closed) in [*self._watched.items()]:
                if self._is_closed(connection, established):
                    self.forget(name)
                    on_closed()

    def _is_closed(self, connection: Any, established: set[str]) -> bool:  # noqa: ANN401
        poll = select.poll()
        poll.register(connection.fileno(), _HANG_UP)
        try:
            theirs = f"{_kernels(connection.getpeername())} {_kernels(connection.getsockname())}"
        except OSError:  # Reset.
            return True
        stands = theirs in established
        if stands:
            self._stood.add(theirs)
        return bool(poll.poll(0)) or (not stands and theirs in self._stood)


def established_sockets() -> set[str]:
    """Return both addresses of each established TCP socket, as ``/proc/net/tcp`` writes them."""
    found = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):  # Not Linux: unknown.
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                _, local, remote, state, _ = line.split(None, 4)
                if state == _ESTABLISHED:
                    found.add(f"{local} {remote}".replace(_IPV4_IN_IPV6, ""))
    return found


def _kernels(address: tuple[Any, ...]) -> str:
    """Convert an address to the notation of ``/proc/net/tcp``.

    That file has the words of an address in native byte order.
    """
    packed = socket.inet_pton(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, address[0])
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{address[1]:04X}"
