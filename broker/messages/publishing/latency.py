"""The time of messages from SEND until stored."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

BUCKETS_MS = {
    "0_5": 0.5,
    "1": 1.0,
    "5": 5.0,
    "10": 10.0,
    "20": 20.0,
    "50": 50.0,
    "100": 100.0,
    "200": 200.0,
    "1000": 1_000.0,
}
"""The upper bound of each bucket, by suffix of the metric."""
_BOUNDS = tuple(BUCKETS_MS.values())


class PublishLatency:
    """Counts messages by latency.

    Attributes:
        counts: A number for each of BUCKETS_MS, then longer latencies.
        total_seconds: The sum of all latencies.
        last_counts, last_seconds: The same, for the last period.
    """

    __slots__ = (
        "_seen_counts",
        "_seen_seconds",
        "counts",
        "last_counts",
        "last_seconds",
        "total_seconds",
    )

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.total_seconds = 0.0
        self.last_counts = self._seen_counts = tuple(self.counts)
        self.last_seconds = self._seen_seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count a message."""
        self.counts[bisect_left(_BOUNDS, seconds * 1000)] += 1
        self.total_seconds += seconds

    def add(self, other: PublishLatency) -> None:
        """Add the counts of another instance."""
        for bucket, count in enumerate(other.counts):
            self.counts[bucket] += count
        self.total_seconds += other.total_seconds

    def period_ended(self) -> None:
        """End a period (statsUpdateFrequencyInSecs)."""
        counts = tuple(self.counts)
        self.last_counts = tuple(
            now - then for now, then in zip(counts, self._seen_counts, strict=True)
        )
        self.last_seconds = self.total_seconds - self._seen_seconds
        self._seen_counts, self._seen_seconds = counts, self.total_seconds

    @property
    def count(self) -> int:
        """All messages."""
        return sum(self.counts)

    def quantile_ms(self, part: float) -> float:
        """Return the bound of the bucket of a quantile; NaN without messages."""
        count = self.count
        if not count:
            return float("nan")
        reached = (found for found in zip(accumulate(self.counts), _BOUNDS, strict=False))
        return next(
            (bound for seen, bound in reached if seen and seen >= part * count), float("inf")
        )
