"""The lookups of a broker: outcomes and durations."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from limiter.metrics.wait_times import WaitTimes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.ownership.ownership import Owner
    from limiter.clock import Clock


class LookupOutcomes:
    """Counts lookups of both protocols in existing namespaces.

    Args:
        stopwatch: Seconds; an event loop's time may be in whole milliseconds.

    Attributes:
        answers: Lookups answered with the owner.
        redirects: Lookups redirected to the designated owner, before the owner's confirmation.
        failures: Failed lookups.
        times: Durations.
        since: Start of counting, in seconds since 1970.

    Source: upstream NamespaceService.getBrokerServiceUrlAsync.
    """

    def __init__(self, clock: Clock, stopwatch: Callable[[], float] = perf_counter) -> None:
        self.answers = self.redirects = self.failures = 0
        self.times = WaitTimes(clock, ticks_a_milli=1_000)
        self.since = clock.wall_ms() / 1000
        self._stopwatch = stopwatch

    async def counted(self, finding: Awaitable[Owner]) -> Owner:
        """Await the owner of a topic, and count the outcome."""
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
