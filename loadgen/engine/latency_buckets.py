"""A few buckets of latencies, small enough for a datagram: for the eyes of somebody who waits.

Each is a quarter longer than the one before, from a millisecond to some ten minutes. Figures of
results never come from here.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BUCKETS = 61
_ENDS = [0.001 * 1.25**bucket for bucket in range(BUCKETS)]


def bucket_of(seconds: float) -> int:
    """Return the number of the bucket that a latency belongs to."""
    return bisect_left(_ENDS, seconds, hi=BUCKETS - 1)


def seconds_of(bucket: int) -> float:
    """Return the longest latency of a bucket; the last one has longer ones, too."""
    return _ENDS[bucket]


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return the end of the bucket that a percentile is in; None of nothing."""
    below = [*accumulate(counts)]
    return seconds_of(bisect_left(below, share * below[-1])) if below[-1] else None


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """Return the least of sorted values that a share of them does not exceed: a percentile.

    Args:
        ordered: At least one value.
        share: From 0 to 1.
    """
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[max(rank, 1) - 1]
