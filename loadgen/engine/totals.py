"""The totals of a task while it runs, for the screen and for Prometheus: results need them not."""

from __future__ import annotations

from collections import Counter
from operator import add
from typing import TYPE_CHECKING

from pydantic import Field
from pydantic.dataclasses import dataclass

from loadgen.engine.latency_buckets import BUCKETS, bucket_of
from loadgen.engine.rows import Outcome

if TYPE_CHECKING:
    from loadgen.engine.rows import RequestRow

_NO_LATENCIES = (0,) * BUCKETS


@dataclass
class Totals:
    """Totals of one task, or of a whole run.

    Attributes:
        phase: ``connect``, ``warm-up``, ``measure``, ``hold`` or ``drain``.
        connected: Connections that shook hands.
        bytes: Those read.
        ended: Requests that ended, by ``group operation outcome``.
        clients: Clients that started, were back and gave up, by ``group what``.
        latencies: Answers by the bucket of how long they took since they were due.
    """

    phase: str = "connect"
    connected: int = 0
    started: int = 0
    bytes: int = 0
    ended: Counter[str] = Field(default_factory=Counter)
    clients: Counter[str] = Field(default_factory=Counter)
    latencies: list[int] = Field(
        default_factory=lambda: list(_NO_LATENCIES), min_length=BUCKETS, max_length=BUCKETS
    )

    def end(self, row: RequestRow) -> None:
        """Count a request that ended."""
        self.ended[f"{row.group} {row.operation} {row.outcome}"] += 1
        if row.outcome is Outcome.ANSWERED and row.done is not None:
            self.latencies[bucket_of(row.done - row.due)] += 1

    def of(self, *outcomes: Outcome) -> int:
        """Return how many requests ended so, of all groups and operations."""
        return sum(count for name, count in self.ended.items() if name.split(" ")[2] in outcomes)

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            phase=other.phase,
            connected=self.connected + other.connected,
            started=self.started + other.started,
            bytes=self.bytes + other.bytes,
            ended=self.ended + other.ended,
            clients=self.clients + other.clients,
            latencies=list(map(add, self.latencies, other.latencies)),
        )
