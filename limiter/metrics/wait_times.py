"""Waiting times of the last ten minutes, as quantiles in milliseconds.

Five windows of two minutes each rotate; a quantile is taken over all of them. As upstream's
summaries (ten minutes in five age buckets, error 0.01).

Bound: five histograms of fixed size; a wait beyond the range counts as the range's end.
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
# Two significant digits are upstream's allowed error of 0.01.
SIGNIFICANT_FIGURES = 2


class WaitTimes:
    """Waits of requests: count and sum since the start, quantiles of ten minutes.

    Args:
        clock: The source of time.
        ticks_a_milli: The resolution: ticks in a millisecond.

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
        # Most waits are 0: they are counted here and recorded in batches.
        self._unrecorded_zeros = 0

    def record(self, waited_seconds: float, count: int = 1) -> None:
        """Record ``count`` waits of the same length.

        Fractions of a tick are dropped, as upstream drops fractions of a millisecond.
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
        """Return each quantile in milliseconds; NaN without waits in ten minutes."""
        self._rotate()
        self._record_zeros()
        merged = self._histogram()
        for window in self._windows:
            merged.add(window)
        if merged.total_count == 0:
            return [float("nan")] * len(which)
        # A histogram returns the upper end of a bucket, which may exceed the longest wait.
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
        if self._unrecorded_zeros:
            self._windows[-1].record_value(0, self._unrecorded_zeros)
            self._unrecorded_zeros = 0

    def _histogram(self) -> HdrHistogram:
        return HdrHistogram(1, MAX_TRACKED_MILLIS * self._ticks_a_milli, SIGNIFICANT_FIGURES)
