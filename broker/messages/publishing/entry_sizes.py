"""The sizes of entries, in the buckets of Pulsar's metrics."""

from __future__ import annotations

from bisect import bisect_left

BUCKETS = {
    "128": 128,
    "512": 512,
    "1_kb": 1024,
    "2_kb": 2 * 1024,
    "4_kb": 4 * 1024,
    "16_kb": 16 * 1024,
    "100_kb": 100 * 1024,
    "1_mb": 1024 * 1024,
}
"""The largest size of each bucket, by suffix of the metric (pulsar_entry_size_le_...)."""
_BOUNDS = tuple(BUCKETS.values())


class EntrySizes:
    """Counts entries by size.

    Attributes:
        counts: A number for each of BUCKETS, then larger entries.
        size_bytes: Bytes of all entries.
        last_counts, last_bytes: The same, for the last period.
    """

    __slots__ = ("_seen_bytes", "_seen_counts", "counts", "last_bytes", "last_counts", "size_bytes")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.size_bytes = 0
        self.last_counts = self._seen_counts = tuple(self.counts)
        self.last_bytes = self._seen_bytes = 0

    def add(self, size_bytes: int) -> None:
        """Count an entry."""
        self.counts[bisect_left(_BOUNDS, size_bytes)] += 1
        self.size_bytes += size_bytes

    def period_ended(self) -> None:
        """End a period (statsUpdateFrequencyInSecs)."""
        counts = tuple(self.counts)
        self.last_counts = tuple(
            now - then for now, then in zip(counts, self._seen_counts, strict=True)
        )
        self.last_bytes = self.size_bytes - self._seen_bytes
        self._seen_counts, self._seen_bytes = counts, self.size_bytes
