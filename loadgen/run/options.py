"""The options of a run: its name, its executor, and the servers to watch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.servers.series import ScrapeTarget
from loadgen.tasks.task import DRAIN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from loadgen.analysis.thresholds import Threshold
    from loadgen.clients.records import Look, RequestCounters
    from loadgen.cluster import ClusterPlan, ServerEvent
    from loadgen.places.sampling import ServerWatch


@dataclass(frozen=True)
class RunOptions:
    """The options of a run.

    Attributes:
        label: Its title in reports; the name if empty.
        out: Directory of run directories.
        executor: ``spark``, ``process`` or ``virtual``.
        cluster: The servers of a run in virtual time, and their topics.
        master: Spark's master; None for a local session with a slot for each task.
        spark: A running session to use instead of starting one.
        broker_admin_url: ``http://host:port`` of the broker's web port, to watch it.
        broker_pid: The broker's process id, if it runs on this machine.
        thresholds: What has to hold of the run's figures.
        scenario_document: The scenario as its author wrote it; empty if the command line said it.
        scenario_resolved: The document that says everything itself; empty: it is made of the
            scenario.
        abort_early: Whether the run ends when one of them can no longer be met.
        drain_seconds: How long requests under way may take when it ends early.
        events: What happens to servers while clients are there.
        restart: Kills a server of this run, by its role, starts it again, and returns its id.
        on_progress: Called about once a second with totals, from another thread.
        on_watch: Called once with the watch over the servers.
        on_simulation: Called once, in virtual time, with a look at it: its seconds, and totals.
    """

    name: str
    label: str = ""
    out: Path = Path("out/runs")
    executor: str = "process"
    tasks: int = 2
    cluster: ClusterPlan | None = None
    master: str | None = None
    spark: SparkSession | None = field(default=None, repr=False)
    broker_admin_url: str | None = None
    proxy_admin_url: str | None = None
    broker_pid: int | None = None
    proxy_pid: int | None = None
    thresholds: tuple[Threshold, ...] = ()
    scenario_document: str = ""
    scenario_resolved: str = field(default="", repr=False)
    abort_early: bool = False
    drain_seconds: float = DRAIN_SECONDS
    events: tuple[ServerEvent, ...] = ()
    restart: Callable[[str], int] | None = field(default=None, repr=False)
    on_progress: Callable[[RequestCounters], None] | None = field(default=None, repr=False)
    on_watch: Callable[[ServerWatch], None] = field(default=lambda watch: None, repr=False)
    on_simulation: Callable[[Look], None] = field(default=lambda look: None, repr=False)

    @property
    def watched_servers(self) -> list[ScrapeTarget]:
        """Servers whose metrics are scraped while it runs."""
        named = (
            ("broker", self.broker_admin_url, self.broker_pid),
            ("proxy", self.proxy_admin_url, self.proxy_pid),
        )
        return [ScrapeTarget(process, url, pid) for process, url, pid in named if url]

    @property
    def watched_processes(self) -> tuple[str, ...]:
        """Names of the servers whose figures are known, in virtual time as well."""
        if self.executor == "virtual" and self.cluster is not None:
            return ("broker",) if self.cluster.proxy is None else ("broker", "proxy")
        return tuple(each.process for each in self.watched_servers)
