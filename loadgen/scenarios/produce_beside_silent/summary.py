"""Sums up a run beside silent clients: three phases, what became of them, and a verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadgen.scenarios.stuck.summary import PeerEnd, stuck_document, write_peers
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.clients.records import TaskReport
    from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario

_OWN = ("sent", "held_up")
SLOWER = 10.0
"""Beyond so many times the 99th percentile without silent clients producers count as held up,"""
NOTICED_SECONDS = 0.1
"""if it is more than this, too."""


def write_silent(directory: Path, reports: Sequence[TaskReport]) -> None:
    """Write stuck-peers.parquet: one row for each silent client."""
    write_peers(directory, [_plain(report) for report in reports])


def silent_document(scenario: SilentScenario, reports: Sequence[TaskReport]) -> dict[str, Any]:
    """Describe the silent clients and how the producers fared before, with and after them.

    ``stuck`` has the figures that any scenario with such peers has, ``silent`` what is its own.
    """
    figures = stuck_document(scenario, [_plain(report) for report in reports])
    peers = [row for report in reports for row in report.details]
    silent = {
        "producers": scenario.silent_producers,
        "consumers": scenario.silent_consumers,
        "messages_sent": sum(row["sent"] for row in peers),
        "held_up": sum(row["held_up"] and row["end"] != PeerEnd.CLOSED for row in peers),
        "closed": figures["closed"],
    }
    return {"stuck": figures, "silent": {**silent, "verdict": verdict(figures, silent)}}


def _plain(report: TaskReport) -> TaskReport:
    rows = tuple(
        {key: value for key, value in row.items() if key not in _OWN} for row in report.details
    )
    return replace(report, details=rows)


def verdict(figures: Mapping[str, Any], silent: Mapping[str, Any]) -> str:
    """Say in a sentence whether silent clients held up the producers beside them."""
    before, beside = figures["phases"]["before"], figures["phases"]["stuck"]
    became = (
        f"of {plural(figures['peers'], 'silent client')} {silent['closed']} closed, "
        f"{silent['held_up']} held up"
    )
    lost = beside["requests"] - beside["answered"]
    if lost:
        text = f"{lost:,} of {plural(beside['requests'], 'message')} got no receipt"
        return f"Silent clients hurt the producers beside them: {text} ({became})."
    if not beside["requests"] or not before["requests"]:
        return f"Nothing was due before or beside the silent clients ({became})."
    was, now = (phase["latency_seconds"]["p99"] for phase in (before, beside))
    words = f"p99 {1e3 * was:.1f} ms before, {1e3 * now:.1f} ms beside them"
    if now > max(SLOWER * was, NOTICED_SECONDS):
        return f"Silent clients slowed the producers beside them: {words} ({became})."
    return f"Silent clients held up nobody but themselves: {words} ({became})."
