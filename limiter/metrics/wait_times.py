"""Waiting times of the last ten minutes, as quantiles in milliseconds.

Five windows of two minutes each rotate; a quantile is taken over all of them. Upstream's summaries
do the same (ten minutes in five age buckets, error 0.01).

Bound: five histograms of some thousand entries; a wait beyond the range counts as the range's end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limiter.clock import Clock

WINDOW_COUNT = 5
WINDOW_SECONDS = 120.0
MAX_TRACKED_MILLIS = 3_600_000
_EXACT_BITS = 8
"""The leading bits of a wait that are kept: upstream's allowed error is 0.01."""


class WaitTimes:
    """Waiting times of requests: count and sum since the start, quantiles of the last ten minutes.

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
        self._windows = [_Window()]
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
            self._windows[-1].record(min(ticks, most), count)
        else:
            self._unrecorded_zeros += count
        self.count += count
        self._sum_ticks += ticks * count

    @property
    def sum_millis(self) -> float:
        """The sum of all waits, in milliseconds."""
        return self._sum_ticks / self._ticks_a_milli

    def quantiles(self, which: Sequence[float]) -> list[float]:
        """Return each quantile in milliseconds; NaN without waits in the last ten minutes."""
        self._rotate()
        self._record_zeros()
        merged = Counter[int]()
        for window in self._windows:
            merged.update(window.counts)
        if not merged:
            return [float("nan")] * len(which)
        ends, counts = zip(*sorted(merged.items()), strict=True)
        places = list(accumulate(counts))
        # A wait counts at the upper end of its range, which may exceed the longest wait.
        longest = max(window.longest for window in self._windows)
        found = (bisect_left(places, max(1, int(one * places[-1] + 0.5))) for one in which)
        return [min(ends[place], longest) / self._ticks_a_milli for place in found]

    def _rotate(self) -> None:
        passed = int((self._clock.now() - self._newest_since) // WINDOW_SECONDS)
        if passed <= 0:
            return
        self._record_zeros()
        self._newest_since += passed * WINDOW_SECONDS
        fresh = [_Window() for _ in range(min(passed, WINDOW_COUNT))]
        self._windows = [*self._windows, *fresh][-WINDOW_COUNT:]

    def _record_zeros(self) -> None:
        if self._unrecorded_zeros:
            self._windows[-1].record(0, self._unrecorded_zeros)
            self._unrecorded_zeros = 0


class _Window:
    """Waiting times recorded within one window of two minutes, in ticks.

    Attributes:
        counts: Number of waits by the upper end of their range; the waits of a range have the same
            leading bits.
        longest: The longest wait.
    """

    def __init__(self) -> None:
        self.counts = Counter[int]()
        self.longest = 0

    def record(self, ticks: int, count: int) -> None:
        shift = max(0, ticks.bit_length() - _EXACT_BITS)
        self.counts[((ticks >> shift) + 1 << shift) - 1] += count
        self.longest = max(self.longest, ticks)
