"""How long messages took from their SEND until they were stored."""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_MS = (0.5, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 1_000.0)
"""The buckets of Pulsar's storage_write_latency."""


class PublishLatency:
    """Counts messages by the time they took.

    Attributes:
        counts: A number for each of BOUNDS_MS, then those that took longer.
        total_seconds: Of all together.
    """

    __slots__ = ("counts", "total_seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.total_seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count a message."""
        self.counts[bisect_left(BOUNDS_MS, seconds * 1000)] += 1
        self.total_seconds += seconds

    @property
    def count(self) -> int:
        """All messages."""
        return sum(self.counts)
