"""One stuck peer: connects, asks for many listings in one go, and reads nothing, or very slowly.

A client looks like that when it hangs in a debugger, swaps, or sits behind a dead link. A peer
that reads nothing answers no PING either; one that reads slowly does, as soon as it gets there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.clients.connection import ClientConnection, request_frame
from loadgen.clients.pacing import ReadBudget
from loadgen.scenarios.stuck.summary import PeerEnd, PeerRecord

if TYPE_CHECKING:
    from loadgen.clients.context import ClientContext
    from loadgen.scenario import ClientPlan
    from loadgen.scenarios.stuck.close_watch import CloseWatch
    from loadgen.scenarios.stuck.scenario import StuckScenario

_FRAMES_PER_WRITE = 1000


class StuckPeer(ClientConnection):
    """One connection. Its mutable state is its record."""

    def __init__(
        self,
        plan: ClientPlan,
        context: ClientContext[StuckScenario],
        close_watch: CloseWatch,
    ) -> None:
        super().__init__(plan, context)
        self.record = PeerRecord(plan.client, plan.namespace.name)
        self._close_watch = close_watch
        self._descriptor: int | None = None

    def connected(self) -> None:
        """Stop reading, before anything was asked for."""
        if not self.usable or self._transport is None:
            return
        self._transport.pause_reading()
        connection = self._transport.get_extra_info("socket")
        self._descriptor = self._close_watch.watch(connection, self._server_closed)

    def unreachable(self, reason: str) -> None:
        """Record that it got no connection."""
        self.record.end, self.record.reason = PeerEnd.UNREACHABLE, reason

    def ask(self) -> None:
        """Send all requests, and begin to read if it reads at all."""
        scenario, transport = self.context.scenario, self._transport
        if not self.usable or transport is None:
            return
        self.record.asked_seconds = self.context.time.seconds()
        for first in range(1, scenario.stuck_pipelined + 1, _FRAMES_PER_WRITE):
            last = min(first + _FRAMES_PER_WRITE, scenario.stuck_pipelined + 1)
            transport.write(b"".join(self._request(number) for number in range(first, last)))
        rate = scenario.stuck_read_rate_bytes_per_second
        if rate:
            self._budget = ReadBudget(rate, self.context.time.monotonic())
            transport.resume_reading()

    def leave(self) -> None:
        """Close the connection; bytes that were not read make that a reset."""
        self._end(PeerEnd.LEFT, self.context.time.seconds())
        self._closed = True
        self.close()

    def bytes_received(self, nbytes: int) -> None:
        """Count bytes that were read."""
        if self.record.asked_seconds is not None:
            self.record.bytes += nbytes

    def ended(self, reason: str) -> None:
        """Take note that the server has closed the connection."""
        del reason
        self._end(PeerEnd.CLOSED, self.context.time.seconds())

    def _request(self, number: int) -> bytes:
        return request_frame(self.plan.namespace.name, self.context.scenario.pattern, number)

    def _server_closed(self) -> None:
        self._descriptor = None
        self._over(str(PeerEnd.CLOSED))
        self.close()

    def _end(self, end: PeerEnd, at_seconds: float) -> None:
        if self._descriptor is not None:
            self._close_watch.forget(self._descriptor)
            self._descriptor = None
        if self.record.end is None:
            self.record.end, self.record.gone_seconds = end, at_seconds
