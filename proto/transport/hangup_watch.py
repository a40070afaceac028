"""Detection of disconnects while a socket's reading is paused.

Neither asyncio nor uvloop detects a FIN or RST while reading is paused, unless bytes are being
written. The kernel does: ``poll`` reports it, regardless of unread bytes in the socket.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock, TimerHandle

LOOK_EVERY_SECONDS = 0.2
# Systems that cannot report a FIN alone (macOS) still report a reset.
_HANGUP = getattr(select, "POLLRDHUP", select.POLLHUP)


class HangupWatch:
    """Polls the paused sockets of a process, all in one call, five times a second.

    Bound: an entry for each paused connection. No timer runs without paused connections.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._poll = select.poll()
        self._timer: TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._callbacks)

    def watch(self, descriptor: int, on_hangup: Callable[[], object]) -> None:
        """Call back once when the peer of a socket has closed the connection."""
        self._callbacks[descriptor] = on_hangup
        self._poll.register(descriptor, _HANGUP)
        if self._timer is None:
            self._arm()

    def forget(self, descriptor: int) -> None:
        """Stop watching a socket; call before closing the socket."""
        if self._callbacks.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def _arm(self) -> None:
        self._timer = self._clock.call_at(self._clock.now() + LOOK_EVERY_SECONDS, self._look)

    def _look(self) -> None:
        self._timer = None
        try:
            for descriptor, _ in self._poll.poll(0) if self._callbacks else ():
                callback = self._callbacks.get(descriptor)
                self.forget(descriptor)
                if callback is not None:
                    callback()
        finally:
            if self._callbacks and self._timer is None:
                self._arm()
