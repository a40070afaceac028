"""The lookups of a broker: how they ended, and how long they took."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from limiter.metrics.wait_times import WaitTimes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.ownership.ownership import Owner
    from limiter.clock import Clock


class LookupOutcomes:
    """Counts lookups, of either protocol, whose topic may be somewhere: its namespace exists.

    Args:
        stopwatch: Seconds; an event loop's time may be in whole milliseconds.

    Attributes:
        answers: Those that named the owner.
        redirects: Those that named the broker that shall own the topic, and was not asked yet.
        failures: Those that named nobody.
        times: What they took.
        since: Since when they are counted, in seconds since 1970.

    Source: upstream NamespaceService.getBrokerServiceUrlAsync.
    """

    def __init__(self, clock: Clock, stopwatch: Callable[[], float] = perf_counter) -> None:
        self.answers = self.redirects = self.failures = 0
        self.times = WaitTimes(clock, ticks_a_milli=1_000)
        self.since = clock.wall_ms() / 1000
        self._stopwatch = stopwatch

    async def counted(self, finding: Awaitable[Owner]) -> Owner:
        """Wait for the owner of a topic, and count how that ends."""
        began = self._stopwatch()
        try:
            owner = await finding
        except Exception:
            self.failures += 1
            raise
        finally:
            self.times.record(self._stopwatch() - began)
        if owner.decided:
            self.answers += 1
        else:
            self.redirects += 1
        return owner
