"""Waiting times of the last ten minutes, as quantiles in milliseconds.

Five windows of two minutes each rotate; a quantile is taken over all of them. Upstream keeps
its summaries the same way (ten minutes in five age buckets, error 0.01).

Bound: five histograms of fixed size; a longer wait than the range counts as its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hdrh.histogram import HdrHistogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limiter.clock import Clock

WINDOW_COUNT = 5
WINDOW_SECONDS = 120.0
MAX_TRACKED_MILLIS = 3_600_000
# Two significant figures are upstream's allowed error of 0.01.
SIGNIFICANT_FIGURES = 2


class WaitTimes:
    """The waits of requests: count and sum since the start, quantiles of ten minutes.

    Args:
        ticks_a_milli: What is told apart: parts of a millisecond, or whole ones.

    Attributes:
        count: Waits recorded since the start.
    """

    def __init__(self, clock: Clock, ticks_a_milli: int = 1) -> None:
        self.count = 0
        self._sum_ticks = 0
        self._clock = clock
        self._ticks_a_milli = ticks_a_milli
        self._windows = [self._histogram()]
        self._newest_since = clock.now()
        # Most requests wait for nothing: those are counted here and recorded together.
        self._unrecorded_zeros = 0

    def record(self, waited_seconds: float, count: int = 1) -> None:
        """Take in ``count`` waits of the same length.

        Fractions of a tick are dropped: of a millisecond upstream drops them.
        """
        ticks = max(0, int(waited_seconds * 1000 * self._ticks_a_milli))
        self._rotate()
        if ticks:
            most = MAX_TRACKED_MILLIS * self._ticks_a_milli
            self._windows[-1].record_value(min(ticks, most), count)
        else:
            self._unrecorded_zeros += count
        self.count += count
        self._sum_ticks += ticks * count

    @property
    def sum_millis(self) -> float:
        """The sum of all waits, in milliseconds."""
        return self._sum_ticks / self._ticks_a_milli

    def quantiles(self, which: Sequence[float]) -> list[float]:
        """Return each quantile in milliseconds; NaN when nobody waited for ten minutes."""
        self._rotate()
        self._record_zeros()
        merged = self._histogram()
        for window in self._windows:
            merged.add(window)
        if merged.total_count == 0:
            return [float("nan")] * len(which)
        # A histogram answers the upper end of a bucket, which nobody may have waited for.
        longest = max(window.max_value for window in self._windows)
        return [
            min(merged.get_value_at_percentile(quantile * 100), longest) / self._ticks_a_milli
            for quantile in which
        ]

    def _rotate(self) -> None:
        passed = int((self._clock.now() - self._newest_since) // WINDOW_SECONDS)
        if passed <= 0:
            return
        self._record_zeros()
        self._newest_since += passed * WINDOW_SECONDS
        fresh = [self._histogram() for _ in range(min(passed, WINDOW_COUNT))]
        self._windows = [*self._windows, *fresh][-WINDOW_COUNT:]

    def _record_zeros(self) -> None:
        """Put the waits of no time into the newest window, where they belong."""
        if self._unrecorded_zeros:
            self._windows[-1].record_value(0, self._unrecorded_zeros)
            self._unrecorded_zeros = 0

    def _histogram(self) -> HdrHistogram:
        return HdrHistogram(1, MAX_TRACKED_MILLIS * self._ticks_a_milli, SIGNIFICANT_FIGURES)
