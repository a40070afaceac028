"""Flow control totals of all connections of a process, for metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.flow.causes import CloseReason, PauseCause, RateLimitOperation
from limiter.flow.outbound_buffer import OutboundTotals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limiter.clock import Clock


class FlowTotals:
    """Flow control totals of all connections of a process.

    Attributes:
        connections: Paused connections by cause.
        pauses: Number of pauses by cause.
        operations: Number of changes in reading; see RateLimitOperation.
        closed: Closed slow peers by reason.
        parked_frames: Frames of paused connections held in memory.
        parked_bytes: Bytes of these parked frames.
        response_bytes: Bytes reserved for unfinished responses.
        oversized_commands: Connections closed for a command above the bound of its type.
    """

    def __init__(self, clock: Clock, outbound: OutboundTotals | None = None) -> None:
        self._clock = clock
        self.outbound = outbound or OutboundTotals()
        self.connections = dict.fromkeys(PauseCause, 0)
        self.pauses = dict.fromkeys(PauseCause, 0)
        self.operations = dict.fromkeys(RateLimitOperation, 0)
        self.closed = dict.fromkeys(CloseReason, 0)
        self.parked_frames = 0
        self.parked_bytes = 0
        self.response_bytes = 0
        self.oversized_commands = 0
        self._ended_seconds = dict.fromkeys(PauseCause, 0.0)
        self._since_sum = dict.fromkeys(PauseCause, 0.0)

    def paused(self, cause: PauseCause, *, first: bool) -> float:
        """Count a pause; return its start time, to be passed to ``resumed``."""
        now = self._clock.now()
        self.connections[cause] += 1
        self.pauses[cause] += 1
        self._since_sum[cause] += now
        if first:
            self.operations[RateLimitOperation.PAUSED] += 1
        if cause is PauseCause.PENDING_PUBLISHES:
            self.operations[RateLimitOperation.THROTTLED] += 1
        return now

    def resumed(self, cause: PauseCause, since: float, *, last: bool) -> None:
        """Count the end of a pause, and a resumed connection if the pause was its last."""
        self.ended(cause, since)
        if last:
            self.operations[RateLimitOperation.RESUMED] += 1
        if cause is PauseCause.PENDING_PUBLISHES:
            self.operations[RateLimitOperation.UNTHROTTLED] += 1

    def ended(self, cause: PauseCause, since: float) -> None:
        """Count the end of a pause that was lifted, or ended with its connection."""
        self.connections[cause] -= 1
        self._ended_seconds[cause] += self._clock.now() - since
        self._since_sum[cause] = self._since_sum[cause] - since if self.connections[cause] else 0.0

    def paused_seconds(self) -> Iterator[tuple[PauseCause, float]]:
        """Yield causes with the seconds that they paused connections, ongoing pauses included."""
        now = self._clock.now()
        for cause, count in self.connections.items():
            going_on = count * now - self._since_sum[cause] if count else 0.0
            yield cause, self._ended_seconds[cause] + max(0.0, going_on)
