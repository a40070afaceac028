"""The moments at which something happened to servers, as labelled lines across charts over time."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.report.chart_math import Axis
    from loadgen.results.summary import Run

_LABEL_SHARE = 0.42
"""The part of a chart's width that a label may need on a phone."""


@dataclass(frozen=True)
class Mark:
    """A moment of one run, and its words."""

    run: int
    at: float
    words: str


def restart_marks(runs: Sequence[Run], first: int = 0) -> list[Mark]:
    """Return the restarts of servers in some runs; ``first`` is the number of the first run."""
    return [
        Mark(number, each.at_seconds, f"{each.restart} restarted")
        for number, run in enumerate(runs, first)
        for each in run.summary.restarts
    ]


def labelled(marks: Sequence[Mark], axis: Axis) -> Iterator[tuple[Mark, float, bool]]:
    """Yield the marks whose labels have room, with their place and whether they end there."""
    end = 0.0
    for mark in sorted(marks, key=lambda mark: mark.at):
        share = axis.share(mark.at)
        ends = share > 1 - _LABEL_SHARE
        begin = share - _LABEL_SHARE if ends else share
        if begin >= end:
            end = begin + _LABEL_SHARE
            yield mark, share, ends


def mark_labels(marks: Sequence[Mark], axis: Axis) -> str:
    """Render the labels above a plotted area."""
    return "".join(
        f'<span class="mark-label{" ends" if ends else ""}" data-run="{mark.run}" '
        f'style="left:{share:.2%}">{escape(mark.words)}</span>'
        for mark, share, ends in labelled(marks, axis)
    )
