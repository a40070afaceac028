"""One whole run: check, watch the servers, let it pass, merge, write the run directory."""

from __future__ import annotations

import os
import platform
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.clients.connect import check_reachable, raise_open_file_limit
from loadgen.clients.peer_record import PEERS_NAME, write_peers
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.executors.processes import ExecutorKind, run_in_processes
from loadgen.results.writing import (
    SCHEMA_VERSION,
    SummaryPart,
    agreed_reports,
    process_document,
    summary_part,
    write_json,
    write_requests,
    write_server_metrics,
)
from loadgen.run.output_directory import forget_extras, replaceable_run_directory
from loadgen.scenarios.stuck.scenario import StuckScenario
from loadgen.scenarios.stuck.summary import stuck_document
from loadgen.servers.facts import read_server_facts
from loadgen.servers.loopback import is_loopback
from loadgen.servers.scrape import ScrapeTarget, ServerWatch
from loadgen.tasks.plan import TaskPlan
from loadgen.tasks.progress import ProgressReceiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from loadgen.clients.counters import StormCounters
    from loadgen.clients.records import TaskReport
    from loadgen.tasks.plan import AnyScenario

_PACKAGES = ("floodgate", "pyspark", "pyarrow", "uvloop", "protobuf")


@dataclass(frozen=True)
class RunOptions:
    """Says how a scenario is run and watched.

    Attributes:
        name: Name of the run and of its directory.
        label: What reports call it; the name if empty.
        out: Directory of run directories.
        executor: ``spark`` or ``process``.
        tasks: Number of tasks that share the clients.
        master: Spark's master; None for a local session with a slot for each task.
        spark: A running session to use instead of starting one.
        broker_admin_url: ``http://host:port`` of the broker's web port, to watch it.
        proxy_admin_url: The proxy's.
        broker_pid: The broker's process id, if it runs on this machine.
        proxy_pid: The proxy's.
        on_progress: Called about once a second with the storm's totals, from another thread.
    """

    name: str
    label: str = ""
    out: Path = Path("out/runs")
    executor: str = "process"
    tasks: int = 2
    master: str | None = None
    spark: SparkSession | None = field(default=None, repr=False)
    broker_admin_url: str | None = None
    proxy_admin_url: str | None = None
    broker_pid: int | None = None
    proxy_pid: int | None = None
    on_progress: Callable[[StormCounters], None] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class RunResult:
    """A finished run.

    Attributes:
        directory: Where everything about it is.
        summary: The content of its summary.json.
        problems: What is wrong with the first few wrong answers, a sentence each.
        empty_namespaces: Those that listed no topic, though nobody had said so.
    """

    directory: Path
    summary: dict[str, Any]
    problems: tuple[str, ...] = ()
    empty_namespaces: tuple[str, ...] = ()

    @property
    def interrupted(self) -> bool:
        """True if it ended early by Ctrl-C, with figures of what had ended by then."""
        return bool(self.summary["interrupted"])

    @property
    def exit_code(self) -> ExitCode:
        """The exit code for a pipeline: a wrong answer counts before anything else."""
        if self.summary["wrong"]:
            return ExitCode.CORRECTNESS
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.summary["generator_limited"]:
            return ExitCode.GENERATOR_LIMITED
        return ExitCode.PASSED


def execute(scenario: AnyScenario, options: RunOptions) -> RunResult:
    """Run a scenario and write its run directory; an older run of that name is replaced.

    Raises:
        UsageError: The options do not fit each other or this machine.
        LoadgenError: The server cannot be reached, or the storm could not be run.
        KeyboardInterrupt: There was a Ctrl-C before any request had ended.
    """
    server_version = _check(scenario, options)
    started_at = datetime.now(UTC)
    directory = options.out / options.name
    targets = _targets(options)
    with replaceable_run_directory(directory), ServerWatch(targets) as watch:
        produced_by = _servers(server_version, targets)
        reports = agreed_reports(_run(scenario, options))
        if not any(report.rows.num_rows for report in reports):
            raise KeyboardInterrupt
    offset_seconds = reports[0].facts.t0_epoch_seconds - (time.time() - time.perf_counter())
    description = {
        **_run_document(scenario, options, reports, started_at.isoformat()),
        **produced_by,
    }
    summary = {**_summary_document(scenario, options, reports, watch), **produced_by}
    try:
        forget_extras(directory)
        if isinstance(scenario, StuckScenario):
            write_peers(directory / PEERS_NAME, (p for each in reports for p in each.peers))
        write_requests(directory / "requests.parquet", reports)
        write_server_metrics(directory / "server-metrics.parquet", watch, offset_seconds)
        write_json(directory / "run.json", description)
        write_json(directory / "summary.json", summary)
    except OSError as error:
        raise LoadgenError(f"the run cannot be written to {directory}: {error}") from error
    return RunResult(directory, summary, _problems(reports), _empty_namespaces(scenario, reports))


def _check(scenario: AnyScenario, options: RunOptions) -> str:
    """Refuse what cannot be run; return what the server at the address calls its version."""
    if options.executor not in set(ExecutorKind):
        raise UsageError(f"--executor {options.executor!r} is neither spark nor process")
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
    if options.master is None or options.executor == "process":
        raise_open_file_limit(-(-connections_of(scenario) // options.tasks))
    return check_reachable(scenario)


def _servers(server_version: str, targets: Sequence[ScrapeTarget]) -> dict[str, Any]:
    """Describe what will produce the figures."""
    facts = {each.process: read_server_facts(each.process, each.admin_url) for each in targets}
    return {
        "server_version": server_version,
        "servers": {process: asdict(found) for process, found in facts.items()},
    }


def connections_of(scenario: AnyScenario) -> int:
    """Return how many connections a run has at once."""
    peers = scenario.stuck_peers if isinstance(scenario, StuckScenario) else 0
    return scenario.clients + peers


def _targets(options: RunOptions) -> list[ScrapeTarget]:
    named = (
        ("broker", options.broker_admin_url, options.broker_pid),
        ("proxy", options.proxy_admin_url, options.proxy_pid),
    )
    return [ScrapeTarget(process, url, pid) for process, url, pid in named if url]


def _run(scenario: AnyScenario, options: RunOptions) -> list[TaskReport]:
    with ExitStack() as stack:
        address = None
        if options.on_progress is not None:
            address = stack.enter_context(ProgressReceiver(options.on_progress)).address
        loopback = is_loopback(scenario.service_url)
        plans = [
            TaskPlan(
                scenario=scenario,
                task=task,
                tasks=options.tasks,
                loopback=loopback,
                progress_address=address,
            )
            for task in range(options.tasks)
        ]
        if options.executor == "process":
            return run_in_processes(plans)
        # Spark is imported only where it is asked for: it takes a second.
        from loadgen.executors.spark import run_in_spark

        return run_in_spark(stack.enter_context(_session(options)), plans)


@contextmanager
def _session(options: RunOptions) -> Iterator[SparkSession]:
    if options.spark is not None:
        yield options.spark
        return
    from loadgen.spark.session import SparkSettings, spark_session

    settings = SparkSettings("loadgen run", cores=options.tasks, master=options.master)
    with spark_session(settings) as session:
        yield session


def _summary_document(
    scenario: AnyScenario, options: RunOptions, reports: Sequence[TaskReport], watch: ServerWatch
) -> dict[str, Any]:
    stuck = stuck_document(scenario, reports) if isinstance(scenario, StuckScenario) else None
    part = SummaryPart()
    for report in reports:
        part = part.merge(summary_part(report))
    return {
        "schema_version": SCHEMA_VERSION,
        "name": options.name,
        "label": options.label or options.name,
        "clients": sum(report.facts.clients for report in reports),
        **part.document(),
        "processes": {name: process_document(process) for name, process in watch.processes.items()},
        **({} if stuck is None else {"stuck": stuck}),
    }


def _run_document(
    scenario: AnyScenario, options: RunOptions, reports: Sequence[TaskReport], started_at: str
) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "name": options.name,
        "label": options.label or options.name,
        "started_at": started_at,
        "service_url": scenario.service_url,
        "executor": options.executor,
        "scenario": scenario.model_dump(mode="json"),
        "environment": _environment(),
        "tasks": [asdict(report.facts) for report in reports],
    }


def _environment() -> dict[str, Any]:
    versions = {package: metadata.version(package) for package in _PACKAGES}
    return {
        "python": platform.python_version(),
        "spark": versions["pyspark"],
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "implementation": sys.implementation.name,
        "versions": versions,
    }


def _problems(reports: Sequence[TaskReport]) -> tuple[str, ...]:
    wrong = (
        row["reason"]
        for report in reports
        for row in report.rows.select(["outcome", "reason"]).to_pylist()
        if row["outcome"] == "wrong"
    )
    return tuple(dict.fromkeys(wrong))[:3]


def _empty_namespaces(scenario: AnyScenario, reports: Sequence[TaskReport]) -> tuple[str, ...]:
    said_to_be_empty = {each.name for each in scenario.namespaces if each.topics == 0}
    empty = {
        row["namespace"]
        for report in reports
        for row in report.rows.select(["namespace", "outcome", "topics"]).to_pylist()
        if row["outcome"] == "answered" and row["topics"] == 0
    }
    return tuple(sorted(empty - said_to_be_empty))
