"""Options of the demo: what it runs, and where its results go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.corpus.topic_plan import TopicPlan
    from loadgen.demo.own_cluster import OwnCluster
    from loadgen.demo.own_topics import OwnTopics


@dataclass(frozen=True)
class DemoOptions:
    """Options of the demo: what it runs, and where its results go.

    Attributes:
        topics: The topics to make, or an operator's own.
        clients: Connections, each of which asks once.
        read_rate_bytes_per_second: How fast each client reads; 0 is unlimited.
        out: The directory of all results.
        executor: ``spark``, or ``process`` for the same without Spark and Java.
        tasks: Spark tasks, or processes, that share the clients.
        keep: Whether made topics stay on disk.
        own: An operator's servers; None: the demo's own.
        namespaces: Which of an operator's namespaces are listed; none: the largest.
    """

    topics: TopicPlan | OwnTopics
    clients: int
    read_rate_bytes_per_second: float
    out: Path
    executor: str = "spark"
    tasks: int = 2
    keep: bool = False
    own: OwnCluster | None = None
    namespaces: tuple[str, ...] = ()
