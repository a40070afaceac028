"""A few buckets of latencies, small enough for a datagram: for the eyes of somebody who waits.

Each is a quarter longer than the one before, from a millisecond to some ten minutes. Figures of
results never come from here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BUCKETS = 61
_FIRST_SECONDS = 0.001
_GROWTH = math.log(1.25)


def bucket_of(seconds: float) -> int:
    """Return the number of the bucket that a latency belongs to."""
    if seconds <= _FIRST_SECONDS:
        return 0
    return min(BUCKETS - 1, math.ceil(math.log(seconds / _FIRST_SECONDS) / _GROWTH))


def seconds_of(bucket: int) -> float:
    """Return the longest latency of a bucket; the last one has longer ones, too."""
    return _FIRST_SECONDS * math.exp(bucket * _GROWTH)


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return the end of the bucket that a percentile is in; None of nothing."""
    wanted, seen = share * sum(counts), 0
    if not wanted:
        return None
    for bucket, count in enumerate(counts):
        seen += count
        if seen >= wanted:
            return seconds_of(bucket)
    return seconds_of(BUCKETS - 1)


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """Return the least of sorted values that a share of them does not exceed: a percentile.

    Args:
        ordered: At least one value.
        share: From 0 to 1.
    """
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[max(rank, 1) - 1]
