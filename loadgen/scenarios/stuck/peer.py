"""A stuck peer that asks for many listings in one go, and reads nothing, or very slowly.

One that reads slowly answers a PING as soon as it gets there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.clients.connection import request_frame
from loadgen.clients.pacing import ReadBudget
from loadgen.stuck_peers.peer import StuckPeer

if TYPE_CHECKING:
    from loadgen.clients.context import ClientContext
    from loadgen.scenarios.stuck.scenario import StuckScenario

_FRAMES_PER_WRITE = 1000


class ListingPeer(StuckPeer):
    """One connection. Its mutable state is its record."""

    context: ClientContext[StuckScenario]

    def ask(self) -> None:
        """Send all requests, and begin to read if it reads at all."""
        scenario, transport = self.context.scenario, self._transport
        if transport is None:
            return
        for first in range(1, scenario.stuck_pipelined + 1, _FRAMES_PER_WRITE):
            last = min(first + _FRAMES_PER_WRITE, scenario.stuck_pipelined + 1)
            transport.write(b"".join(self._request(number) for number in range(first, last)))
        self.record.sent = scenario.stuck_pipelined
        rate = scenario.stuck_read_rate_bytes_per_second
        if rate:
            self._budget = ReadBudget(rate, self.context.time.monotonic())
            transport.resume_reading()

    def bytes_received(self, nbytes: int) -> None:
        """Count bytes that were read."""
        if self.record.asked_seconds is not None:
            self.record.bytes += nbytes

    def _request(self, number: int) -> bytes:
        return request_frame(self.plan.namespace.name, self.context.scenario.pattern, number)
