"""The totals of a running task, only for display and Prometheus.

The results of a run are computed from its rows.

Latencies are counted in a few buckets, small enough for a datagram: from a millisecond to some ten
minutes, each a quarter longer than the one before.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from loadgen.engine.rows import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.engine.rows import RequestRow

BUCKETS = 61
_ENDS = [0.001 * 1.25**bucket for bucket in range(BUCKETS)]
_Latencies = Annotated[list[int], Field(min_length=BUCKETS, max_length=BUCKETS)]


def bucket_of(seconds: float) -> int:
    """Return the index of the histogram bucket that counts a latency."""
    return bisect_left(_ENDS, seconds, hi=BUCKETS - 1)


def seconds_of(bucket: int) -> float:
    """Return the longest latency that a bucket counts; the last bucket is open-ended."""
    return _ENDS[bucket]


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return the upper end of the bucket that contains a percentile; None without counts."""
    below = [*accumulate(counts)]
    return seconds_of(bisect_left(below, share * below[-1])) if below[-1] else None


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values by the nearest-rank method.

    Args:
        ordered: At least one value.
        share: From 0 to 1.
    """
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[max(rank, 1) - 1]


@dataclass
class Totals:
    """Counts of requests, connections and bytes, of a task or of a whole run.

    Attributes:
        phase: ``connect``, ``warm-up``, ``measure``, ``hold`` or ``drain``.
        connected: Connections after the handshake.
        bytes: Bytes read.
        ended: Requests that ended, by ``group operation outcome``.
        clients: Clients that started, were back and gave up, by ``group what``.
        latencies: Answers of each group by bucket of the time since they were due.
    """

    phase: str = "connect"
    connected: int = 0
    started: int = 0
    bytes: int = 0
    ended: Counter[str] = Field(default_factory=Counter)
    clients: Counter[str] = Field(default_factory=Counter)
    latencies: dict[str, _Latencies] = Field(default_factory=dict)

    def end(self, row: RequestRow) -> None:
        """Count a request that has ended."""
        self.ended[f"{row.group} {row.operation} {row.outcome}"] += 1
        if row.outcome is Outcome.ANSWERED and row.done is not None:
            counts = self.latencies.setdefault(row.group, [0] * BUCKETS)
            counts[bucket_of(row.done - row.due)] += 1

    @property
    def all_latencies(self) -> list[int]:
        """The number of answers in each latency bucket, of all groups together."""
        return [sum(counts) for counts in zip([0] * BUCKETS, *self.latencies.values(), strict=True)]

    def of(self, *outcomes: Outcome) -> int:
        """Return how many requests ended with one of the outcomes, in all groups and operations."""
        return sum(count for name, count in self.ended.items() if name.split(" ")[2] in outcomes)

    def __add__(self, other: Totals) -> Totals:
        latencies = dict(self.latencies)
        for group, counts in other.latencies.items():
            latencies[group] = list(map(add, latencies.get(group, [0] * BUCKETS), counts))
        return Totals(
            phase=other.phase,
            connected=self.connected + other.connected,
            started=self.started + other.started,
            bytes=self.bytes + other.bytes,
            ended=self.ended + other.ended,
            clients=self.clients + other.clients,
            latencies=latencies,
        )
