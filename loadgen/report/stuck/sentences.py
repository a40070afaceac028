"""Sentences on a run beside stuck peers: what was done, and what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.report.stuck.figures import closed_peers, nobody_answered
from loadgen.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.results.stuck import StuckFigures
    from loadgen.results.summary import RunSummary


def stuck_headline(summaries: Sequence[RunSummary]) -> str:
    """Say in one sentence what the healthy clients of all runs got beside the peers."""
    parts = [
        f"“{summary.label}” answered {figures.stuck.answered_in_phase:,} of "
        f"{plural(figures.stuck.requests, 'listing')}"
        for summary in summaries
        if (figures := summary.stuck) is not None
    ]
    return f"While peers read nothing, {', '.join(parts)}."


def scenario_words(description: Mapping[str, Any]) -> str:
    """Say what healthy clients and stuck peers did, from the scenario in the run directory."""
    scenario = description.get("scenario", {})
    if not isinstance(scenario.get("stuck_peers"), int):
        return "What was run is listed below."
    healthy = (
        f"{plural(scenario['clients'], 'healthy client')}, a listing each every "
        f"{format_seconds(scenario['interval_seconds'])}, for "
        f"{format_seconds(scenario['duration_seconds'])}."
    )
    peers = scenario["stuck_peers"]
    if not peers:
        return f"{healthy} There are no stuck peers."
    rate = scenario["stuck_read_rate_bytes_per_second"]
    reads = f"reads {format_bytes(rate)} a second" if rate else "reads nothing"
    who = "a peer asks" if peers == 1 else f"{peers:,} peers ask"
    reads = reads if peers == 1 else reads.replace("reads", "read")
    listings = plural(scenario["stuck_pipelined"], "listing") + ("" if peers == 1 else " each")
    return (
        f"{healthy} At {format_seconds(scenario['stuck_at_seconds'])} {who} for {listings} at once "
        f"and {reads}{_stay(scenario)}."
    )


def _stay(scenario: Mapping[str, Any]) -> str:
    seconds = scenario["stuck_seconds"]
    return f"; it leaves after {format_seconds(seconds)}" if seconds else ""


def stuck_sentences(figures: StuckFigures) -> Iterator[str]:
    """Say what one run shows of stuck peers, for somebody who sees it for the first time."""
    if figures.asked_seconds is None:
        yield "No stuck peer asked for anything in this run."
        return
    phase = figures.stuck
    late = phase.answered_afterwards
    afterwards = f", {late:,} answered when it was over" if late else ""
    yield (
        f"While {plural(figures.peers, 'peer')} did not read, {phase.answered_in_phase:,} of "
        f"{plural(phase.requests, 'listing')} were answered and {phase.refused:,} refused"
        f"{afterwards}. {_outage(figures)}"
    )
    if figures.closed:
        yield f"The server closed {closed_peers(figures)}, counted from when they had asked."
    else:
        yield "The server closed none of them."
    if figures.connections_lost:
        yield f"Healthy clients lost {plural(figures.connections_lost, 'connection')}."


def _outage(figures: StuckFigures) -> str:
    if figures.nobody_answered_seconds is None:
        return "No listing was answered since they had asked."
    return (
        f"The first answer came {nobody_answered(figures)} after the first of these listings was "
        "due."
    )
