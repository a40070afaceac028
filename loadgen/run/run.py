"""Runs a scenario: checks, watches the servers, drives the clients, writes the results."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.analysis.judging import require_watched
from loadgen.clients.connect import check_reachable, raise_open_file_limit
from loadgen.errors import LoadgenError, UsageError
from loadgen.executors.processes import ExecutorKind, run_in_processes
from loadgen.results.verdict import verdict_of
from loadgen.results.writing import SCHEMA_VERSION, agreed_reports
from loadgen.run.directory import replaceable_run_directory, write_run
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from loadgen.clients.records import TaskReport
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
        """True if it ended early by Ctrl-C, with figures of what had ended by then."""
        return bool(self.summary["interrupted"])

    @property
    def exit_code(self) -> ExitCode:
        """The exit code for a pipeline: a wrong answer counts before anything else."""
        return verdict_of(self.summary).exit_code

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
    if options.master is None or options.executor == "process":
        raise_open_file_limit(-(-scenario.connections // options.tasks))
    server_version = check_reachable(scenario)
    started_at = datetime.now(UTC)
    directory = options.out / options.name
    targets = options.watched_servers
    with replaceable_run_directory(directory), ServerWatch(targets) as watch:
        produced_by = _servers(server_version, targets)

        with ServerEvents(options.events, partial(_restart, options, watch)) as events:
            reports = agreed_reports(_run(scenario, options, events.agreed))
        if not any(report.rows.num_rows for report in reports):
            raise KeyboardInterrupt
    interrupted = any(report.facts.interrupted for report in reports)
    happened = {"events": events.happened(interrupted=interrupted)}
    description = (
        happened | run_document(scenario, options, reports, started_at.isoformat()) | produced_by
    )
    summary = summary_document(scenario, options, reports, watch) | produced_by
    documents = {
        "run.json": description,
        "summary.json": summary,
        "server-settings.json": {"schema_version": SCHEMA_VERSION, **produced_by},
    }
    write_run(
        directory,
        scenario,
        reports,
        watch,
        documents,
        options.scenario_document,
        options.scenario_resolved,
    )
    return RunResult(
        directory, summary, first_problems(reports), empty_namespaces(scenario, reports)
    )


def check_options(scenario: Scenario, options: RunOptions) -> None:
    """Refuse options that do not fit each other, before anything is touched.

    Raises:
        UsageError: They do not.
    """
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
    require_watched(options.thresholds, [each.process for each in options.watched_servers])


def _servers(server_version: str, targets: Sequence[ScrapeTarget]) -> dict[str, Any]:
    """Describe the servers that will produce the figures."""
    facts = {each.process: read_server_facts(each.process, each.admin_url) for each in targets}
    return {
        "server_version": server_version,
        "servers": {process: asdict(found) for process, found in facts.items()},
    }


def _restart(options: RunOptions, watch: ServerWatch, role: str) -> None:
    if options.restart is None:
        raise LoadgenError(f"the {role} is not this run's own, so it is not restarted")
    watch.processes[role].restarted(options.restart(role))


def _run(
    scenario: Scenario, options: RunOptions, on_agreed: Callable[[float], None]
) -> list[TaskReport]:
    with ExitStack() as stack:
        address = None
        if options.on_progress is not None or options.events:
            observer = options.on_progress or (lambda now: None)
            address = stack.enter_context(ProgressReceiver(observer, on_agreed)).address
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
