"""Runs a scenario: checks, measures, writes the results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from loadgen.analysis.judging import require_watched
from loadgen.analysis.splits import splits_of
from loadgen.errors import UsageError
from loadgen.executors.processes import RunExecutor
from loadgen.results.verdict import verdict_of
from loadgen.results.writing import SCHEMA_VERSION, agreed_reports
from loadgen.run.directory import (
    RunDocuments,
    replaceable_run_directory,
    require_directory_name,
    write_run,
)
from loadgen.run.documents import (
    empty_namespaces,
    first_problems,
    run_document,
    summary_document,
)
from loadgen.run.measuring import measure_in_virtual_time, measure_over_sockets
from loadgen.scenarios.registry import kind_of
from loadgen.units import plural

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.errors import ExitCode
    from loadgen.run.options import RunOptions
    from loadgen.scenario import Scenario


@dataclass(frozen=True)
class RunResult:
    """A finished run.

    Attributes:
        problems: Reasons of the first few wrong answers, a sentence each.
        empty_namespaces: Those that listed no topic, though they were not known to be empty.
        warnings: Those of its scenario.
    """

    directory: Path
    summary: dict[str, Any]
    problems: tuple[str, ...] = ()
    empty_namespaces: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

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
    virtual = options.executor == RunExecutor.VIRTUAL
    measure = measure_in_virtual_time if virtual else measure_over_sockets
    started_at = datetime.now(UTC)
    directory = options.out / options.name
    with replaceable_run_directory(directory):
        measured = measure(scenario, options)
        reports = agreed_reports(measured.reports)
        if not any(report.rows.num_rows for report in reports):
            raise KeyboardInterrupt
    produced_by = {"server_version": measured.server_version, "servers": measured.servers}
    description = run_document(scenario, options, reports, started_at.isoformat()) | produced_by
    description["events"] = measured.events
    splits = splits_of(pa.concat_tables([report.rows for report in reports]))
    summary = summary_document(scenario, options, reports, measured.watch, splits) | produced_by
    summary |= {"aborted": measured.missed, "restarts": list(measured.events)}
    summary |= kind_of(scenario).judge(summary)
    contents = {
        "run.json": description,
        "summary.json": summary,
        "server-settings.json": {"schema_version": SCHEMA_VERSION, **produced_by},
    }
    documents = RunDocuments(contents, options.scenario_document, options.scenario_resolved)
    write_run(directory, scenario, reports, measured.watch, documents)
    return RunResult(
        directory,
        summary,
        first_problems(reports),
        empty_namespaces(scenario, reports),
        scenario.warnings,
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
            f"--tasks {options.tasks} does not fit {plural(scenario.clients, 'client')}: use 1 to "
            f"{scenario.clients:,}"
        )
    require_directory_name(options.name)
    for process in ("broker", "proxy"):
        if getattr(options, f"{process}_pid") and not getattr(options, f"{process}_admin_url"):
            raise UsageError(f"--{process}-pid needs --{process}-admin-url as well")
    if options.executor == RunExecutor.VIRTUAL:
        _check_virtual(scenario, options)
    for group in getattr(scenario, "groups", ()):
        at_once = getattr(group.arrivals, "clients_at_once", None)
        if at_once is not None and at_once < min(options.tasks, group.clients):
            raise UsageError(
                f"group {group.name}: clients_at_once {at_once} cannot be shared by --tasks "
                f"{options.tasks}: use --tasks {at_once} or fewer"
            )
    require_watched(options.thresholds, options.watched_processes)


def _check_virtual(scenario: Scenario, options: RunOptions) -> None:
    # Broker and proxy are imported only where they are asked for.
    from loadgen.virtual.simulation import require_virtual

    if options.cluster is None:
        raise UsageError("--executor virtual has servers of its own: leave out --service-url")
    if options.abort_early:
        raise UsageError("--executor virtual is not ended early: leave out --abort-early")
    require_virtual(scenario, options.cluster, options.thresholds)
