"""Every request of a run as a dot: when it was due, and how long until answered or refused.

Answers are solid, refusals are rings, what ended otherwise is square, so that colour is never the
only difference. The time in which stuck peers were there is shaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from loadgen.report.chart_math import MOST_LABELS, Axis, nice_axis, thin
from loadgen.report.charts import (
    VIEW,
    Panel,
    key_mark,
    plot_x,
    plot_y,
    render_plot,
    run_class,
    tick_label,
    y_grid,
)
from loadgen.report.marks import restart_marks
from loadgen.report.stuck.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.report.chart_math import Point
    from loadgen.report.marks import Mark
    from loadgen.results.summary import Run, RunSummary

_MOST_DOTS = 1500
_KINDS = ("answered", "refused", "other")


@dataclass(frozen=True)
class Dots:
    """One run's chart.

    Attributes:
        requests: What is charted, in the plural.
        x: When one was due.
        y: How long it took.
        kinds: The points of each kind: answered, refused, other.
        shade: From when to when stuck peers were there; None if there were none.
        shade_label: What stands in the shade.
        counts: How many there were of each kind, in words.
        marks: When something happened to servers.
    """

    run: int
    title: str
    requests: str
    x: Axis
    y: Axis
    kinds: dict[str, Sequence[Point]]
    shade: tuple[float, float] | None
    shade_label: str
    counts: str
    marks: Sequence[Mark] = ()


def dot_charts(runs: Sequence[tuple[int, Run]]) -> list[Dots]:
    """Return one chart for each run, all on the same axes.

    Args:
        runs: Runs of one scenario with stuck peers, with their numbers in the report.
    """
    kinds = [request_dots(run) for _, run in runs]
    points = [point for each in kinds for found in each.values() for point in found]
    x = _due_axis(max((at for at, _ in points), default=1.0))
    y = nice_axis(max(max((seconds for _, seconds in points), default=0.0) * 1.1, 0.01), ticks=4)
    return [
        Dots(
            index,
            run.summary.label,
            f"{words_of(run.summary).request}s".capitalize(),
            x,
            y,
            found,
            stuck_span(run, x.high),
            peers_words(run),
            _counts(run.summary),
            restart_marks([run], index),
        )
        for (index, run), found in zip(runs, kinds, strict=True)
    ]


def _due_axis(last: float) -> Axis:
    """Return the axis of all listings, from the first to the last, with round seconds."""
    ticks = nice_axis(last, ticks=MOST_LABELS).ticks
    high = last * 1.03
    return Axis(-last * 0.02, high, tuple(tick for tick in ticks if tick <= high))


def request_dots(run: Run) -> dict[str, Sequence[Point]]:
    """Return (due, seconds until its end) of a run's requests by kind; long runs are thinned."""
    found: dict[str, list[Point]] = {kind: [] for kind in _KINDS}
    requests = run.requests
    rows = zip(
        requests.intended_start_seconds, requests.finished_seconds, requests.outcomes, strict=True
    )
    for due, finished, outcome in rows:
        kind = outcome if outcome in found else "other"
        found[kind].append((due, finished - due))
    return {kind: thin(sorted(points), _MOST_DOTS) for kind, points in found.items()}


def stuck_span(run: Run, end: float) -> tuple[float, float] | None:
    """Return when stuck peers came and when they were gone; None if none ever asked."""
    figures = run.summary.stuck
    if figures is None or figures.asked_seconds is None:
        return None
    gone = end if figures.gone_seconds is None else min(end, figures.gone_seconds)
    return figures.asked_seconds, gone


def peers_words(run: Run) -> str:
    """Return what stands in the shade."""
    figures = run.summary.stuck
    return "" if figures is None else words_of(run.summary).peers(figures)


def render_dots(dots: Dots) -> str:
    """Render one chart as an HTML figure."""
    labels = [(tick, tick_label("seconds", tick)) for tick in dots.x.ticks]
    frame = Panel(
        key="", title="", unit="seconds", x=dots.x, y=dots.y, x_labels=labels, curves=(),
        marks=dots.marks,
        description=f"{dots.requests} of {dots.title} by when they were due: {dots.counts}",
    )  # fmt: skip
    parts = [_shade(dots), y_grid(dots.y)]
    parts += [_marks(dots, kind) for kind in _KINDS]
    overlays = []
    if dots.shade is not None:
        overlays.append(
            f'<span class="shade-label" style="left:{dots.x.share(dots.shade[0]):.2%}">'
            f"{escape(dots.shade_label)}</span>"
        )
    return (
        f'<figure class="panel dots {run_class(dots.run)}" data-run="{dots.run}"><figcaption><h4>'
        f'{key_mark(dots.run)} {escape(dots.title)}</h4><p class="note">{dots.counts}</p>'
        f"</figcaption>{render_plot(frame, parts, overlays)}</figure>"
    )


def _counts(summary: RunSummary) -> str:
    words = [f"{summary.answered:,} answered", f"{summary.refused_total:,} refused"]
    if summary.failed:
        words.append(f"{summary.failed:,} neither")
    return ", ".join(words)


def _shade(dots: Dots) -> str:
    if dots.shade is None:
        return ""
    left, right = (dots.x.share(moment) * VIEW for moment in dots.shade)
    return f'<rect class="shade" x="{left:.1f}" width="{right - left:.1f}" y="0" height="{VIEW}"/>'


def _marks(dots: Dots, kind: str) -> str:
    """Render points of a kind as one path of strokes without length: their caps are the dots."""
    points = dots.kinds[kind]
    if not points:
        return ""
    path = "".join(f"M{plot_x(dots.x, at)} {plot_y(dots.y, value)}h0" for at, value in points)
    marks = f'<path class="dot {kind}" d="{path}"/>'
    return marks + f'<path class="dot hole" d="{path}"/>' if kind == "refused" else marks
