"""Ends ``loadgen run``: prints the figures for people or programs, and finds the exit code."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from loadgen.errors import ExitCode, LoadgenError
from loadgen.report.hidden_effect import hidden_effect
from loadgen.report.sentences import late_start_sentence
from loadgen.report.tables import check_grid, summary_console, summary_tables
from loadgen.results.summary import parse_summary
from loadgen.scenarios.registry import kind_of
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadgen.run.run import RunResult
    from loadgen.scenario import Scenario

_NAMED = 3
"""Namespaces, and thresholds, that a sentence names."""


def show(result: RunResult, *, as_json: bool) -> None:
    """Print the figures: a table for people, the summary for programs."""
    summary = parse_summary(result.summary)
    hidden = hidden_effect(summary)
    warnings = [*result.warnings, *([hidden] if hidden else ())]
    if as_json:
        sys.stdout.write(json.dumps(result.summary, indent=2, ensure_ascii=False) + "\n")
        for warning in warnings:
            sys.stderr.write(json.dumps({"warning": warning}, ensure_ascii=False) + "\n")
        return
    console = summary_console()
    for table in summary_tables([summary]):
        console.print(table)
    if summary.silent is not None:
        console.print(summary.silent.verdict, markup=False, highlight=False)
    if summary.client_memory is not None:
        console.print(check_grid(summary.client_memory.checks))
    if summary.thresholds:
        console.print(check_grid(summary.thresholds))
    for warning in warnings:
        console.print(f"! {warning}", style="yellow", markup=False, highlight=False)
    console.print(f"Everything about this run is in {result.directory}", highlight=False)


def fail_if_invalid(result: RunResult, scenario: Scenario, *, allow_empty: bool = False) -> None:
    """End with a sentence and an exit code if the run's figures are not to be relied on.

    Raises:
        LoadgenError: An answer was wrong, nobody was connected, the generator was late, a
            namespace had no topics and that is not allowed, there was a Ctrl-C, the scenario has a
            reason of its own, or a threshold was missed.
    """
    summary = result.summary
    if result.exit_code is ExitCode.INTERRUPTED:
        raise LoadgenError(
            "interrupted: the figures are those of the requests that had ended",
            ExitCode.INTERRUPTED,
        )
    if not any(summary[each] for each in ("answered", "refused", "wrong", "timeout")):
        raise LoadgenError(
            f"no request was answered: {summary['unreachable']} unreachable, "
            f"{summary['disconnected']} disconnected; {result.directory / 'requests.parquet'} "
            "says why"
        )
    _fail_if_wrong(result)
    if result.empty_namespaces and not allow_empty:
        raise LoadgenError(_nothing_listed(result.empty_namespaces))
    if result.exit_code is ExitCode.GENERATOR_LIMITED:
        sentence = late_start_sentence(parse_summary(summary))
        raise LoadgenError(
            f"{sentence} Use fewer clients per task, more cores, or {scenario.more_time}.",
            ExitCode.GENERATOR_LIMITED,
        )
    if result.aborted:
        raise LoadgenError(
            f"ended early: {result.aborted} could no longer be met", ExitCode.THRESHOLDS
        )
    kind_of(scenario).check(summary, result.directory)
    if result.missed_thresholds:
        raise LoadgenError(_missed(result.missed_thresholds), ExitCode.THRESHOLDS)


def _fail_if_wrong(result: RunResult) -> None:
    summary = result.summary
    if summary["wrong"]:
        raise LoadgenError(
            f"{summary['wrong']} answers are wrong; {'; '.join(result.problems)}",
            ExitCode.CORRECTNESS,
        )
    if summary.get("held"):
        raise LoadgenError(
            f"all clients have left, and still accounted for are {' and '.join(summary['held'])}: "
            "memory was not given back, or somebody else uses the server",
            ExitCode.CORRECTNESS,
        )


def _missed(verdicts: Sequence[Mapping[str, Any]]) -> str:
    told = [f"{each['threshold']} ({each['found']})" for each in verdicts[:_NAMED]]
    more = ", ..." if len(verdicts) > _NAMED else ""
    return f"{plural(len(verdicts), 'threshold')} missed: {', '.join(told)}{more}"


def _nothing_listed(namespaces: Sequence[str]) -> str:
    listed = ", ".join(namespaces[:_NAMED]) + (", ..." if len(namespaces) > _NAMED else "")
    return (
        f"{plural(len(namespaces), 'namespace')} listed no topics: {listed}. Check --namespace and "
        "--pattern, or say with --allow-empty that this is right."
    )
