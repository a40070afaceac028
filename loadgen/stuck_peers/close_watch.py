"""Notices that a server has closed a connection that nobody reads.

A reset shows at once: ``poll`` tells of it, whatever lies unread. A plain close does not: its FIN
waits in the server's kernel behind the bytes that the peer does not read, perhaps for hours. On
the loopback the kernel can be asked for the server's end, which is no longer established then.
Beyond the loopback a plain close of an unread connection stays unknown.
"""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING

from loadgen.stuck_peers.socket_states import SocketStates

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from limiter.clock import Clock, TimerHandle

LOOK_EVERY_SECONDS = 0.05
# Asking the kernel costs some microseconds for each peer: at most this share of time.
_SHARE_OF_TIME = 0.02
LONGEST_PAUSE_SECONDS = 10.0
"""A question that seems to take longer was held up: the machine slept, or the process stood."""
# Where the kernel cannot tell of a FIN alone (macOS), it still tells of a reset.
_HANG_UP = getattr(select, "POLLRDHUP", select.POLLHUP)


class CloseWatch:
    """A watch over connections to one server. Mutable state: those, and their last known state.

    Args:
        clock: Arms the looks.
        loopback: Whether the server's ends are sockets of this machine.
    """

    def __init__(self, clock: Clock, *, loopback: bool) -> None:
        self._clock = clock
        self._poll = select.poll()
        self._callbacks: dict[int, Callable[[], object]] = {}  # by descriptor, as the others
        self._sockets: dict[int, socket.socket] = {}
        self._established: set[int] = set()
        self._states = SocketStates()
        self._loopback = loopback
        self._timer: TimerHandle | None = None
        self._next_question = 0.0

    def __len__(self) -> int:
        return len(self._callbacks)

    def watch(self, connection: socket.socket, on_closed: Callable[[], object]) -> int:
        """Call back once, from a timer, when the server has closed; return the descriptor."""
        descriptor = connection.fileno()
        self._callbacks[descriptor] = on_closed
        self._sockets[descriptor] = connection
        self._poll.register(descriptor, _HANG_UP)
        if self._timer is None:
            self._arm()
        return descriptor

    def forget(self, descriptor: int) -> None:
        """Watch a socket no more; call before it is closed."""
        if self._callbacks.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)
            self._established.discard(descriptor)
            del self._sockets[descriptor]

    def _arm(self) -> None:
        self._timer = self._clock.call_at(self._clock.now() + LOOK_EVERY_SECONDS, self._look)

    def _look(self) -> None:
        self._timer = None
        closed = [descriptor for descriptor, _ in self._poll.poll(0)]
        for descriptor in [*closed, *self._no_longer_established()]:
            callback = self._callbacks.get(descriptor)
            self.forget(descriptor)
            if callback is not None:
                callback()
        if self._callbacks and self._timer is None:
            self._arm()

    def _no_longer_established(self) -> list[int]:
        """Return connections whose server's end was established before and is not any more."""
        if not self._loopback or self._clock.now() < self._next_question:
            return []
        begun = time.perf_counter()
        with self._states as states:
            found = {d: _stands(states, each) for d, each in self._sockets.items()}
        cost_seconds = time.perf_counter() - begun
        pause_seconds = min(cost_seconds / _SHARE_OF_TIME, LONGEST_PAUSE_SECONDS)
        self._next_question = self._clock.now() + pause_seconds
        gone = [d for d, stands in found.items() if stands is False and d in self._established]
        self._established.update(d for d, stands in found.items() if stands)
        return gone


def _stands(states: SocketStates, connection: socket.socket) -> bool | None:
    """Return whether the server's end of our socket is established; None: nobody knows."""
    try:
        ours, theirs = connection.getsockname(), connection.getpeername()
    except OSError:  # reset: poll tells
        return None
    return states.established(theirs, ours, connection.family)
