"""Running totals of a task's requests, used only for display and Prometheus.

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
    """Return the longest latency that a bucket counts; the last bucket has no upper end."""
    return _ENDS[bucket]


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return the upper end of the latency bucket with a percentile; None without counts."""
    below = [*accumulate(counts)]
    return seconds_of(bisect_left(below, share * below[-1])) if below[-1] else None


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values by the nearest-rank method.

    Args:
        ordered: The sorted values, at least one.
        share: The percentile as a share from 0 to 1.
    """
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[max(rank, 1) - 1]


@dataclass
class Totals:
    """Counts of the requests, connections and bytes of one task or of a whole run.

    Attributes:
        phase: ``connect``, ``warm-up``, ``measure``, ``hold`` or ``drain``.
        connected: Connections that have completed the handshake.
        bytes: Number of bytes read.
        ended: Number of ended requests, by ``group operation outcome``.
        clients: Number of clients that started, were back and gave up, by ``group what``.
        latencies: For each group, the number of answers in each bucket of the time since they were
            due.
    """

    phase: str = "connect"
    connected: int = 0
    started: int = 0
    bytes: int = 0
    ended: Counter[str] = Field(default_factory=Counter)
    clients: Counter[str] = Field(default_factory=Counter)
    latencies: dict[str, _Latencies] = Field(default_factory=dict)

    def end(self, row: RequestRow) -> None:
        """Count a request that has ended, and its latency if it was answered."""
        self.ended[f"{row.group} {row.operation} {row.outcome}"] += 1
        if row.outcome is Outcome.ANSWERED and row.done is not None:
            counts = self.latencies.setdefault(row.group, [0] * BUCKETS)
            counts[bucket_of(row.done - row.due)] += 1

    @property
    def all_latencies(self) -> list[int]:
        """The number of answers in each latency bucket, of all groups together."""
        return [sum(counts) for counts in zip([0] * BUCKETS, *self.latencies.values(), strict=True)]

    def of(self, *outcomes: Outcome) -> int:
        """Return the number of requests with one of the given outcomes, over all groups."""
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
