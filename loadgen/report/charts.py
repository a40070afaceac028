"""Charts as HTML and inline SVG: they need no script, no network and no fixed width.

The plotted area is an SVG stretched to its box (lines keep their width), the labels around it are
HTML: so text has the same size on a phone, on a desktop and on paper. Colours are CSS classes
(``run-0``, ``run-1``, ...), which makes light, dark and print one style sheet's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from loadgen.report.marks import mark_labels
from loadgen.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.report.chart_math import Axis, Point
    from loadgen.report.marks import Mark

FORMATS: dict[str, Callable[[float], str]] = {
    "bytes": format_bytes,
    "count": format_count,
    "seconds": format_seconds,
    "cores": lambda value: f"{value:.2f} cores",
}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# As many colours as the style sheet has; further runs begin again and keep their own letters.
COLOURS = 6
VIEW = 1000
# Letters closer than this (share of width, of height) would cover each other.
_LETTER_ROOM = (0.05, 0.14)


@dataclass(frozen=True)
class Curve:
    """One run's line in a panel and the words that stand for it when nothing is pointed at.

    A line with a ``style`` (``asked``, ``refused``) only accompanies the run's main one: it has no
    letter and no words.
    """

    run: int
    points: Sequence[Point]
    summary: str
    style: str = ""


@dataclass(frozen=True)
class Panel:
    """One chart: curves of all runs over one x axis, with limit lines where there are limits.

    ``marks`` are moments at which something happened.
    """

    key: str
    title: str
    unit: str
    x: Axis
    y: Axis
    x_labels: Sequence[tuple[float, str]]
    curves: Sequence[Curve]
    limits: Sequence[float] = ()
    marks: Sequence[Mark] = ()
    description: str = ""


@dataclass(frozen=True)
class Bars:
    """One run's histogram: solid bars for answers, hatched ones on top for refusals."""

    run: int
    title: str
    x: Axis
    y: Axis
    width: float
    answered: Sequence[int]
    refused: Sequence[int]
    note: str = ""


def run_class(run: int) -> str:
    """Return the CSS class that colours everything of one run."""
    return f"run-{run % COLOURS}"


def run_letter(run: int) -> str:
    """Return the letter that stands for a run, so that colour is never the only difference."""
    return LETTERS[run % len(LETTERS)]


def key_mark(run: int) -> str:
    """Return a coloured letter, as in the legend."""
    return f'<span class="key {run_class(run)}">{run_letter(run)}</span>'


def tick_label(unit: str, value: float) -> str:
    """Return the label of a round value on an axis, as short as it goes."""
    if not value:
        return "0"
    if unit == "seconds":
        return f"{value:g} s" if value >= 1 else f"{value * 1000:g} ms"
    if unit == "cores":
        return f"{value:g}"
    return FORMATS[unit](value)


def render_panel(panel: Panel) -> str:
    """Render one chart as an HTML figure."""
    parts = [
        y_grid(panel.y),
        *(_level(panel.y, limit, "limit") for limit in panel.limits),
        *(_path(panel, curve) for curve in panel.curves),
    ]
    overlays = [
        *(_limit_label(panel, limit) for limit in panel.limits),
        *_letters(panel),
    ]
    return (
        f'<figure class="panel" data-panel="{escape(panel.key)}">'
        f"<figcaption><h4>{escape(panel.title)}</h4>{_readout(main_curves(panel))}</figcaption>"
        + render_plot(panel, parts, overlays)
        + "</figure>"
    )


def render_bars(bars: Bars) -> str:
    """Render one histogram as an HTML figure; each bar says its figures when pointed at."""
    rects = [y_grid(bars.y)]
    for index, (answered, refused) in enumerate(zip(bars.answered, bars.refused, strict=True)):
        if answered or refused:
            rects.append(_bar(bars, index, answered, refused))
    labels = [(tick, tick_label("seconds", tick)) for tick in bars.x.ticks]
    frame = Panel(
        key="", title="", unit="count", x=bars.x, y=bars.y, x_labels=labels, curves=(),
        description=f"Latency histogram of {bars.title}",
    )  # fmt: skip
    note = f'<p class="note">{escape(bars.note)}</p>' if bars.note else ""
    return (
        f'<figure class="panel bars" data-run="{bars.run}"><figcaption><h4>{key_mark(bars.run)} '
        f"{escape(bars.title)}</h4>{note}</figcaption>{render_plot(frame, rects, [])}</figure>"
    )


def render_plot(panel: Panel, parts: Sequence[str], overlays: Sequence[str]) -> str:
    """Render the plotted area with its labels: SVG parts, and HTML on top of them."""
    y_labels = "".join(
        f'<span style="bottom:{panel.y.share(tick):.2%}">'
        f"{escape(tick_label(panel.unit, tick))}</span>"
        for tick in panel.y.ticks
    )
    x_labels = "".join(
        f'<span style="left:{panel.x.share(at):.2%}">{escape(text)}</span>'
        for at, text in panel.x_labels
    )
    verticals = "".join(
        f'<line class="grid vertical" x1="{plot_x(panel.x, at)}" x2="{plot_x(panel.x, at)}" '
        f'y1="0" y2="{VIEW}"/>'
        for at, _ in panel.x_labels
    )
    moments = "".join(_mark(panel.x, mark) for mark in panel.marks)
    css = "plot marked" if panel.marks else "plot"
    return (
        f'<div class="{css}"><div class="y-axis" aria-hidden="true">{y_labels}</div>'
        f'<div class="area"><svg viewBox="0 0 {VIEW} {VIEW}" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(panel.description or panel.title)}">'
        f"{verticals}{''.join(parts)}{moments}</svg>{mark_labels(panel.marks, panel.x)}"
        f"{''.join(overlays)}</div>"
        f'<div class="x-axis" aria-hidden="true">{x_labels}</div></div>'
    )


def _mark(axis: Axis, mark: Mark) -> str:
    x = plot_x(axis, mark.at)
    return (
        f'<line class="mark-line {run_class(mark.run)}" data-run="{mark.run}" x1="{x}" x2="{x}" '
        f'y1="0" y2="{VIEW}"><title>{escape(mark.words)}, {format_seconds(mark.at)}</title></line>'
    )


def plot_x(axis: Axis, value: float) -> str:
    """Return the x of a value in a plotted area's own coordinates."""
    return f"{axis.share(value) * VIEW:.1f}".removesuffix(".0")


def plot_y(axis: Axis, value: float) -> str:
    """Return the y of a value in a plotted area's own coordinates."""
    return f"{(1 - axis.share(value)) * VIEW:.1f}".removesuffix(".0")


def y_grid(axis: Axis) -> str:
    """Render the grid lines of the labelled values."""
    return "".join(_level(axis, tick, "grid") for tick in axis.ticks)


def _level(axis: Axis, value: float, css: str) -> str:
    y = plot_y(axis, value)
    return f'<line class="{css}" x1="0" x2="{VIEW}" y1="{y}" y2="{y}"/>'


def _limit_label(panel: Panel, limit: float) -> str:
    return (
        f'<span class="limit-label" style="bottom:{panel.y.share(limit):.2%}">'
        f"limit {escape(FORMATS[panel.unit](limit))}</span>"
    )


def _path(panel: Panel, curve: Curve) -> str:
    if not curve.points:
        return ""
    steps = " ".join(
        f"{plot_x(panel.x, at)},{plot_y(panel.y, value)}" for at, value in curve.points
    )
    return (
        f'<polyline class="{" ".join(filter(None, ("curve", curve.style, run_class(curve.run))))}"'
        f' data-run="{curve.run}" points="{steps}"/>'
    )


def _letters(panel: Panel) -> list[str]:
    """Render each curve's letter at its peak, moved along the curve where two would collide."""
    placed: list[tuple[float, float]] = []
    marks = []
    for curve in main_curves(panel):
        spots = [(panel.x.share(at), panel.y.share(value)) for at, value in curve.points]
        spots = [spot for spot in spots if spot[1] > 0.02 and 0.02 < spot[0] < 0.98]
        free = [spot for spot in spots if not any(_near(spot, other) for other in placed)]
        if not free:
            continue
        left, bottom = max(free, key=lambda spot: spot[1])
        placed.append((left, bottom))
        marks.append(
            f'<span class="peak {run_class(curve.run)}" data-run="{curve.run}" aria-hidden="true" '
            f'style="left:{left:.2%};bottom:{bottom:.2%}">{run_letter(curve.run)}</span>'
        )
    return marks


def main_curves(panel: Panel) -> list[Curve]:
    """Return the line of each run that its words are about."""
    return [curve for curve in panel.curves if not curve.style]


def _near(spot: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(spot[0] - other[0]) < _LETTER_ROOM[0] and abs(spot[1] - other[1]) < _LETTER_ROOM[1]


def _readout(curves: Sequence[Curve]) -> str:
    items = "".join(
        f'<li data-run="{curve.run}">{key_mark(curve.run)} '
        f'<output data-summary="{escape(curve.summary)}">{escape(curve.summary)}</output></li>'
        for curve in curves
    )
    return f'<ul class="readout">{items}</ul>'


def _bar(bars: Bars, index: int, answered: int, refused: int) -> str:
    """Render one bucket: answers below, refusals above, one tooltip for both."""
    left, right = index * bars.width, (index + 1) * bars.width
    words = [f"{answered:,} answered"] * bool(answered) + [f"{refused:,} refused"] * bool(refused)
    title = f"{format_seconds(left)} to {format_seconds(right)}: {', '.join(words)}"
    x = bars.x.share(left) * VIEW
    width = max(1.0, (bars.x.share(right) - bars.x.share(left)) * VIEW - 2)
    rects = _rect(bars, f"bar {run_class(bars.run)}", (x, width), (0, answered)) + _rect(
        bars, f"bar refused {run_class(bars.run)}", (x, width), (answered, answered + refused)
    )
    return f"<g><title>{escape(title)}</title>{rects}</g>"


def _rect(bars: Bars, css: str, across: tuple[float, float], between: tuple[float, float]) -> str:
    low, high = (bars.y.share(value) * VIEW for value in between)
    if high <= low:
        return ""
    return (
        f'<rect class="{css}" x="{across[0]:.1f}" width="{across[1]:.1f}" '
        f'y="{VIEW - high:.1f}" height="{high - low:.1f}"/>'
    )
