"""The checks of the demo's second part: one sentence with figures each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.report.stuck.figures import nobody_answered
from loadgen.results.summary import CheckResult
from loadgen.units import format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadgen.results.stuck import StuckFigures
    from loadgen.results.summary import RunSummary


def stuck_checks(runs: Mapping[str, RunSummary]) -> list[CheckResult]:
    """Judge the runs ``stuck-pulsar`` and ``stuck-floodgate``."""
    pulsar, floodgate = runs["stuck-pulsar"], runs["stuck-floodgate"]
    return [
        _starves_everybody(pulsar),
        _back_when_it_left(pulsar),
        _harms_nobody(floodgate),
    ]


def _starves_everybody(run: RunSummary) -> CheckResult:
    figures = _figures(run)
    phase = figures.stuck
    passed = (
        bool(phase.requests)
        and not phase.answered_in_phase
        and not phase.failed
        and phase.clients_refused == run.clients
    )
    claim = (
        "One peer that reads nothing starves everybody in pulsar"
        if passed
        else "One peer that reads nothing should starve everybody in pulsar"
    )
    return CheckResult(
        "stuck_starves_pulsar",
        passed,
        f"{claim}: of {plural(phase.requests, 'listing')} due while it was there "
        f"{phase.answered_in_phase:,} were answered meanwhile and {phase.refused:,} refused, "
        f"to {phase.clients_refused:,} of {plural(run.clients, 'client')}; nobody was "
        f"answered for {nobody_answered(figures)}.",
    )


def _back_when_it_left(run: RunSummary) -> CheckResult:
    after = _figures(run).after
    passed = bool(after.requests) and after.answered == after.requests
    return CheckResult(
        "stuck_leaves_pulsar",
        passed,
        f"When it left, {after.answered:,} of {plural(after.requests, 'listing')} due afterwards "
        "were answered.",
    )


def _harms_nobody(run: RunSummary) -> CheckResult:
    figures = _figures(run)
    phase = figures.stuck
    lost = figures.connections_lost
    passed = bool(phase.requests) and run.answered == run.requests and not lost
    return CheckResult(
        "stuck_harms_nobody_in_floodgate",
        passed,
        f"Beside the same peer floodgate answered {run.answered:,} of "
        f"{plural(run.requests, 'listing')} and refused {run.refused_total:,}; "
        f"{plural(lost, 'healthy connection')} lost, the slowest answer took "
        f"{_slowest(run)}.",
    )


def _slowest(run: RunSummary) -> str:
    return format_seconds(run.latency_seconds.max) if run.latency_seconds else "for ever"


def _figures(run: RunSummary) -> StuckFigures:
    assert run.stuck is not None, run.name
    return run.stuck
