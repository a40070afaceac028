"""One stuck peer: connects, asks for many listings in one go, and reads nothing, or very slowly.

It is what a client looks like that hangs in a debugger, swaps, or sits behind a dead link. A peer
that reads nothing answers no PING either; one that reads slowly does, as soon as it gets there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.clients.connection import ListingConnection
from loadgen.clients.frames import request_frame
from loadgen.clients.pacing import ReadBudget
from loadgen.clients.peer_record import PeerEnd, PeerRecord

if TYPE_CHECKING:
    from loadgen.clients.answer_stream import Listing
    from loadgen.clients.close_watch import ServerSide
    from loadgen.clients.context import StormContext
    from loadgen.scenario import ClientPlan
    from loadgen.scenarios.stuck.scenario import StuckScenario

_FRAMES_PER_WRITE = 1000


class StuckPeer(ListingConnection):
    """One connection. Its mutable state is its record.

    Args:
        plan: Who it is and what it asks for.
        context: What the clients of one task share.
        server_side: Notices that the server has closed, while nothing is read.
    """

    def __init__(
        self,
        plan: ClientPlan,
        context: StormContext[StuckScenario],
        server_side: ServerSide,
    ) -> None:
        super().__init__(plan, context)
        self.record = PeerRecord(plan.client, plan.namespace.name)
        self._context = context
        self._server_side = server_side
        self._descriptor: int | None = None

    def connected(self) -> None:
        """Stop reading, before anything was asked for."""
        if not self.usable or self._transport is None:
            return
        self._transport.pause_reading()
        connection = self._transport.get_extra_info("socket")
        self._descriptor = self._server_side.watch(connection, self._server_closed)

    def unreachable(self, reason: str) -> None:
        """Record that it got no connection."""
        self.record.end, self.record.reason = PeerEnd.UNREACHABLE, reason

    def ask(self) -> None:
        """Send all requests, and begin to read if it reads at all."""
        scenario, transport = self._context.scenario, self._transport
        if not self.usable or transport is None:
            return
        self.record.asked_seconds = self._context.time.seconds()
        for first in range(1, scenario.stuck_pipelined + 1, _FRAMES_PER_WRITE):
            last = min(first + _FRAMES_PER_WRITE, scenario.stuck_pipelined + 1)
            transport.write(b"".join(self._request(number) for number in range(first, last)))
        rate = scenario.stuck_read_rate_bytes_per_second
        if rate:
            self._budget = ReadBudget(rate, self._context.time.monotonic())
            transport.resume_reading()

    def leave(self) -> None:
        """Close the connection; what was not read makes that a reset."""
        self._end(PeerEnd.LEFT, self._context.time.seconds())
        self._closed = True
        self.close()

    def listing_received(self, listing: Listing) -> None:
        """Drop an answer: a peer that reads slowly has no use for it."""

    def refusal_received(self, request_id: int, reason: str) -> None:
        """Drop a refusal."""

    def bytes_received(self, nbytes: int) -> None:
        """Count what was read."""
        if self.record.asked_seconds is not None:
            self.record.bytes += nbytes

    def ended(self, reason: str) -> None:
        """Take note that the server has closed the connection."""
        del reason
        self._end(PeerEnd.CLOSED, self._context.time.seconds())

    def _request(self, number: int) -> bytes:
        return request_frame(self.plan.namespace.name, self._context.scenario.pattern, number)

    def _server_closed(self) -> None:
        self._descriptor = None
        self._over(str(PeerEnd.CLOSED))
        self.close()

    def _end(self, end: PeerEnd, at_seconds: float) -> None:
        if self._descriptor is not None:
            self._server_side.forget(self._descriptor)
            self._descriptor = None
        if self.record.end is None:
            self.record.end, self.record.gone_seconds = end, at_seconds
