"""Sentences on a run beside stuck peers: what was done, and what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.report.stuck.figures import closed_peers, nobody_answered
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


def stuck_sentences(summary: RunSummary) -> Iterator[str]:
    """Say what one run shows of stuck peers, for somebody who sees it for the first time."""
    figures = summary.stuck
    if figures is None or figures.asked_seconds is None:
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
