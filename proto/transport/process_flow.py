"""Flow control and detection of disconnects shared by the connections of a process."""

from __future__ import annotations

import select
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from limiter.clock import Timer
from limiter.flow.outbound_buffer import OutboundTotals

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock
    from limiter.flow.totals import FlowTotals

LOOK_EVERY_SECONDS = 0.2
# Systems that cannot report a FIN alone (macOS) still report a reset.
_HANGUP = getattr(select, "POLLRDHUP", select.POLLHUP)


class HangupWatch:
    """Detector of disconnects on paused sockets, all polled in one call five times a second.

    Neither asyncio nor uvloop detects a FIN or RST while reading is paused, unless bytes are
    being written. The kernel does: ``poll`` reports it, regardless of unread bytes in the
    socket.

    Bound: an entry for each paused connection. No timer runs without paused connections.
    """

    def __init__(self, clock: Clock) -> None:
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._poll = select.poll()
        self._timer = Timer(clock)

    def __len__(self) -> int:
        return len(self._callbacks)

    def watch(self, descriptor: int, on_hangup: Callable[[], object]) -> None:
        """Call ``on_hangup`` once when the peer of a socket has closed the connection."""
        self._callbacks[descriptor] = on_hangup
        self._poll.register(descriptor, _HANGUP)
        if not self._timer.armed:
            self._timer.after(LOOK_EVERY_SECONDS, self._look)

    def forget(self, descriptor: int) -> None:
        """Stop watching a socket; call before closing the socket."""
        if self._callbacks.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def _look(self) -> None:
        try:
            for descriptor, _ in self._poll.poll(0) if self._callbacks else ():
                callback = self._callbacks.get(descriptor)
                self.forget(descriptor)
                if callback is not None:
                    callback()
        finally:
            if self._callbacks and not self._timer.armed:
                self._timer.after(LOOK_EVERY_SECONDS, self._look)


TURN_SECONDS = 0.004
"""Most seconds for which the frames of a peer are handled in one turn: some small commands take
long."""
SHORTEST_TURN_SECONDS = 0.0005
"""The shortest turn, when many connections need more than a turn."""


@dataclass(slots=True)
class Turns:
    """Time that a connection may use in an event-loop iteration, shorter if many need it.

    Attributes:
        wanted: Number of connections with frames that wait for a later iteration.
    """

    wanted: int = 0

    @property
    def seconds(self) -> float:
        """Longest time in seconds for which a connection may process frames in an iteration."""
        return max(SHORTEST_TURN_SECONDS, TURN_SECONDS / max(1, self.wanted))


@dataclass(frozen=True, slots=True)
class ProcessFlow:
    """Flow control that the connections of a process share.

    Attributes:
        outbound: Pending bytes of all connections, and their bound.
        totals: Counters of pauses by cause.
        hangups: Detects disconnects of peers whose socket is not read.
        parks_frames: True in profile ``floodgate``: frames are parked while a connection is paused,
            so that control frames can overtake them; and an entry that the kernel accepts
            immediately does not make the connection unwritable, so that a large response to a fast
            reader is no pause.
        turns: Limits each connection's time in an event-loop iteration.
    """

    outbound: OutboundTotals = field(default_factory=OutboundTotals)
    totals: FlowTotals | None = None
    hangups: HangupWatch | None = None
    parks_frames: bool = False
    turns: Turns = field(default_factory=Turns)
