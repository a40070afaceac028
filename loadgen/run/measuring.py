"""The measuring of a run: over sockets, with servers that are there, or in virtual time."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from loadgen.analysis.abort import EarlyAbort
from loadgen.clients.connect import check_reachable, raise_open_file_limit
from loadgen.errors import LoadgenError
from loadgen.executors.processes import RunExecutor, run_in_processes
from loadgen.run.events import ServerEvents, again_seconds
from loadgen.places.server_facts import read_server_facts
from loadgen.places.loopback import is_loopback
from loadgen.places.sampling import ServerWatch
from loadgen.tasks.progress import ProgressReceiver
from loadgen.tasks.task import TaskPlan
from proto.version import FLOODGATE_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from loadgen.clients.records import RequestCounters, TaskReport
    from loadgen.run.options import RunOptions
    from loadgen.scenario import Scenario
    from loadgen.servers.series import WatchedServers


@dataclass(frozen=True)
class Measurement:
    """The yield of a run.

    Attributes:
        watch: The figures of the servers over time.
        server_version: As the server that clients reach calls it.
        servers: Facts about each watched server.
        events: What happened to servers meanwhile.
        missed: The threshold that could no longer be met, if that ended the run.
    """

    reports: Sequence[TaskReport]
    watch: WatchedServers
    server_version: str
    servers: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]] = ()
    missed: str | None = None


def measure_over_sockets(scenario: Scenario, options: RunOptions) -> Measurement:
    """Drive clients against servers that are there.

    Raises:
        LoadgenError: They cannot be reached, or the scenario could not be run.
    """
    if options.master is None or options.executor == RunExecutor.PROCESS:
        raise_open_file_limit(-(-scenario.connections // options.tasks))
    server_version = check_reachable(scenario)
    targets = options.watched_servers
    with ServerWatch(targets) as watch:
        options.on_watch(watch)
        facts = {each.process: read_server_facts(each.process, each.admin_url) for each in targets}
        with ServerEvents(options.events, partial(_restart, options, watch)) as events:
            observer = _Observer(scenario, options, events.agreed)
            reports = _run(scenario, options, observer)
    interrupted = any(report.facts.interrupted for report in reports)
    happened = events.happened(interrupted=interrupted)
    for event in happened:
        event["again_seconds"] = again_seconds(reports, event["at_seconds"])
        watch.processes[event["restart"]].again_seconds = event["again_seconds"]
    return Measurement(
        reports=reports,
        watch=watch,
        server_version=server_version,
        servers={process: asdict(found) for process, found in facts.items()},
        events=happened,
        missed=observer.missed,
    )


def measure_in_virtual_time(scenario: Scenario, options: RunOptions) -> Measurement:
    """Drive clients and servers in this process, without sockets.

    Raises:
        LoadgenError: A server refuses its configuration.
    """
    # Broker and proxy are imported only where they are asked for.
    from loadgen.virtual.simulation import run_in_virtual_time

    assert options.cluster is not None, "see check_options"
    run = run_in_virtual_time(scenario, options.cluster, on_begun=options.on_simulation)
    return Measurement(run.reports, run.watch, FLOODGATE_VERSION, run.servers)


class _Observer:
    """Takes the totals of a run; its mutable state is the threshold that ended it, if one did."""

    def __init__(
        self, scenario: Scenario, options: RunOptions, on_agreed: Callable[[float], None]
    ) -> None:
        wanted = options.thresholds if options.abort_early else ()
        self._abort = EarlyAbort(wanted, scenario.planned_requests)
        self._on_progress = options.on_progress
        self.missed: str | None = None
        self.receiver = ProgressReceiver(self._observe, on_agreed)

    def _observe(self, counters: RequestCounters) -> None:
        if self._on_progress is not None:
            self._on_progress(counters)
        if self.missed is None:
            self.missed = self._abort.missed(counters, time.perf_counter())
            if self.missed is not None:
                self.receiver.stop()


def _restart(options: RunOptions, watch: ServerWatch, role: str) -> None:
    if options.restart is None:
        raise LoadgenError(f"the {role} is not this run's own, so it is not restarted")
    watch.processes[role].restarted(options.restart(role))


def _run(scenario: Scenario, options: RunOptions, observer: _Observer) -> list[TaskReport]:
    with ExitStack() as stack:
        receiver = stack.enter_context(observer.receiver)
        loopback = is_loopback(scenario.service_url)
        plans = [
            TaskPlan(
                scenario=scenario,
                task=task,
                tasks=options.tasks,
                loopback=loopback,
                progress_address=receiver.address,
                drain_seconds=options.drain_seconds,
            )
            for task in range(options.tasks)
        ]
        if options.executor == "process":
            return run_in_processes(plans)
        # Spark is imported only where it is asked for: it takes a second.
        from loadgen.executors.spark import run_in_spark

        return run_in_spark(stack.enter_context(_session(options)), plans, receiver.stop)


@contextmanager
def _session(options: RunOptions) -> Iterator[SparkSession]:
    if options.spark is not None:
        yield options.spark
        return
    from loadgen.spark.session import SparkSettings, spark_session

    settings = SparkSettings("loadgen run", cores=options.tasks, master=options.master)
    with spark_session(settings) as session:
        yield session
