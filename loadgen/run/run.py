"""Runs a scenario: checks, watches the servers, drives the clients, writes the results."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from loadgen.analysis.abort import EarlyAbort
from loadgen.analysis.judging import require_watched
from loadgen.analysis.splits import splits_of
from loadgen.clients.connect import check_reachable, raise_open_file_limit
from loadgen.errors import LoadgenError, UsageError
from loadgen.executors.processes import RunExecutor, run_in_processes
from loadgen.results.verdict import verdict_of
from loadgen.results.writing import SCHEMA_VERSION, agreed_reports
from loadgen.run.directory import RunDocuments, replaceable_run_directory, write_run
from loadgen.run.documents import (
    empty_namespaces,
    first_problems,
    run_document,
    summary_document,
)
from loadgen.run.events import ServerEvents
from loadgen.servers.facts import read_server_facts
from loadgen.servers.loopback import is_loopback
from loadgen.servers.scrape import ServerWatch
from loadgen.tasks.progress import ProgressReceiver
from loadgen.tasks.task import TaskPlan
from proto.version import FLOODGATE_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from loadgen.clients.records import RequestCounters, TaskReport
    from loadgen.errors import ExitCode
    from loadgen.run.options import RunOptions
    from loadgen.scenario import Scenario
    from loadgen.servers.scrape import ScrapeTarget


@dataclass(frozen=True)
class RunResult:
    """A finished run.

    Attributes:
        problems: Reasons of the first few wrong answers, a sentence each.
        empty_namespaces: Those that listed no topic, though they were not known to be empty.
    """

    directory: Path
    summary: dict[str, Any]
    problems: tuple[str, ...] = ()
    empty_namespaces: tuple[str, ...] = ()

    @property
    def interrupted(self) -> bool:
        """True if it ended early, with figures of what had ended by then."""
        return bool(self.summary["interrupted"])

    @property
    def exit_code(self) -> ExitCode:
        """The exit code for a pipeline: a wrong answer counts before anything else."""
        return verdict_of(self.summary).exit_code

    @property
    def aborted(self) -> str | None:
        """The threshold that could no longer be met, if that ended the run."""
        return self.summary.get("aborted")

    @property
    def missed_thresholds(self) -> list[dict[str, Any]]:
        """The thresholds that did not hold, each with what was found."""
        return [each for each in self.summary.get("thresholds", ()) if not each["passed"]]


def execute(scenario: Scenario, options: RunOptions) -> RunResult:
    """Run a scenario and write its run directory; an older run of that name is replaced.

    Raises:
        UsageError: The options do not fit each other or this machine.
        LoadgenError: The server cannot be reached, or the scenario could not be run.
        KeyboardInterrupt: There was a Ctrl-C before any request had ended.
    """
    if not getattr(scenario, "admin_url", True) and options.broker_admin_url:
        scenario = scenario.model_copy(update={"admin_url": options.broker_admin_url})
    check_options(scenario, options)
    if options.executor == RunExecutor.VIRTUAL:
        return _execute_in_virtual_time(scenario, options)
    if options.master is None or options.executor == "process":
        raise_open_file_limit(-(-scenario.connections // options.tasks))
    server_version = check_reachable(scenario)
    started_at = datetime.now(UTC)
    directory = options.out / options.name
    targets = options.watched_servers
    with replaceable_run_directory(directory), ServerWatch(targets) as watch:
        options.on_watch(watch)
        produced_by = _servers(server_version, targets)
        with ServerEvents(options.events, options.restart or _nobodys) as events:
            observer = _Observer(scenario, options, events.agreed)
            reports = agreed_reports(_run(scenario, options, observer))
        if not any(report.rows.num_rows for report in reports):
            raise KeyboardInterrupt
    interrupted = any(report.facts.interrupted for report in reports)
    happened = {
        "events": events.happened(interrupted=interrupted),
        "started_at": started_at.isoformat(),
    }
    watched = _Watched(reports, watch, produced_by, observer.missed)
    return _written(scenario, options, watched, happened)


def _execute_in_virtual_time(scenario: Scenario, options: RunOptions) -> RunResult:
    """Run clients and servers in this process, without sockets."""
    # Broker and proxy are imported only where they are asked for.
    from loadgen.virtual.simulation import run_in_virtual_time

    if options.cluster is None:
        raise UsageError("--executor virtual has servers of its own: leave out --service-url")
    if options.events:
        raise UsageError("--executor virtual restarts no servers: use another executor")
    happened = {"events": [], "started_at": datetime.now(UTC).isoformat()}
    with replaceable_run_directory(options.out / options.name):
        run = run_in_virtual_time(scenario, options.cluster)
    produced_by = {"server_version": FLOODGATE_VERSION, "servers": run.servers}
    watched = _Watched(agreed_reports(run.reports), run.watch, produced_by)
    return _written(scenario, options, watched, happened)


@dataclass(frozen=True)
class _Watched:
    """A run that is over: what tasks and servers told, what the servers are, and what ended it."""

    reports: list[TaskReport]
    watch: ServerWatch
    produced_by: dict[str, Any]
    missed: str | None = None


def _written(
    scenario: Scenario, options: RunOptions, run: _Watched, happened: dict[str, Any]
) -> RunResult:
    """Write the run directory."""
    directory = options.out / options.name
    reports, watch, produced_by = run.reports, run.watch, run.produced_by
    described = run_document(scenario, options, reports, happened["started_at"])
    description = happened | described | produced_by
    requests = pa.concat_tables([report.rows for report in reports])
    splits = splits_of(requests)
    summary = summary_document(scenario, options, reports, watch, splits) | produced_by
    summary["aborted"] = run.missed
    contents = {
        "run.json": description,
        "summary.json": summary,
        "server-settings.json": {"schema_version": SCHEMA_VERSION, **produced_by},
    }
    documents = RunDocuments(contents, options.scenario_document, options.scenario_resolved)
    write_run(directory, scenario, reports, watch, documents, splits)
    return RunResult(
        directory, summary, first_problems(reports), empty_namespaces(scenario, reports)
    )


def check_options(scenario: Scenario, options: RunOptions) -> None:
    """Refuse options that do not fit each other, before anything is touched.

    Raises:
        UsageError: They do not.
    """
    if options.executor not in set(RunExecutor):
        raise UsageError(f"--executor {options.executor!r} is none of {', '.join(RunExecutor)}")
    if not 1 <= options.tasks <= scenario.clients:
        raise UsageError(
            f"--tasks {options.tasks} does not fit {scenario.clients} clients: use 1 to "
            f"{scenario.clients}"
        )
    if Path(options.name).name != options.name or options.name in ("", ".", ".."):
        raise UsageError(f"--name {options.name!r} cannot be the name of a directory")
    for process in ("broker", "proxy"):
        if getattr(options, f"{process}_pid") and not getattr(options, f"{process}_admin_url"):
            raise UsageError(f"--{process}-pid needs --{process}-admin-url as well")
    require_watched(options.thresholds, options.watched_processes)


def _servers(server_version: str, targets: Sequence[ScrapeTarget]) -> dict[str, Any]:
    """Describe the servers that will produce the figures."""
    facts = {each.process: read_server_facts(each.process, each.admin_url) for each in targets}
    return {
        "server_version": server_version,
        "servers": {process: asdict(found) for process, found in facts.items()},
    }


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


def _nobodys(role: str) -> None:
    raise LoadgenError(f"the {role} is not this run's own, so it is not restarted")


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
