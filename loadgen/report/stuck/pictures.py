"""The README's second picture: each healthy listing beside a peer that reads nothing, as a dot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.report.chart_math import nice_axis
from loadgen.report.drawing import THEMES, dress, save, title
from loadgen.report.stuck.dots import peers_words, request_dots, stuck_span
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.report.drawing import Theme
    from loadgen.results.summary import Run

_SIZE_INCHES = (10.0, 3.6)


def draw_stuck_pictures(runs: Sequence[Run], out: Path) -> list[Path]:
    """Write ``stuck.png`` and ``stuck-dark.png`` into ``out`` and return their paths.

    Raises:
        LoadgenError: A picture cannot be written, or is larger than a README's may be.
    """
    return [save(_draw(runs, theme), out / f"stuck{theme.suffix}.png", theme) for theme in THEMES]


def _draw(runs: Sequence[Run], theme: Theme) -> Any:  # noqa: ANN401 - matplotlib has no types here
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    charts = figure.subplots(1, len(runs), sharex=True, sharey=True, squeeze=False)[0]
    for axes, run in zip(charts, runs, strict=True):
        dress(axes, theme)
        _draw_run(axes, run, theme)
    _scale(charts[0], runs)
    charts[0].set_ylabel("until answered or refused", color=theme.soft, fontsize=9)
    for axes in charts:
        axes.set_xlabel("when the listing was due", color=theme.soft, fontsize=9)
    return figure


def _scale(axes: Any, runs: Sequence[Run]) -> None:  # noqa: ANN401
    from matplotlib.ticker import MaxNLocator

    points = [p for run in runs for found in request_dots(run).values() for p in found]
    slowest = max((seconds for _, seconds in points), default=1.0)
    top = nice_axis(max(slowest * 1.2, 0.1), ticks=4).high
    axes.set_ylim(-0.03 * top, top)
    axes.set_xlim(-0.2, max((at for at, _ in points), default=1.0) + 0.2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} s" if value else "0")


def _draw_run(axes: Any, run: Run, theme: Theme) -> None:  # noqa: ANN401
    """Draw one profile: dots for answers, rings for refusals, a shade beside the other client."""
    found = request_dots(run)
    span = stuck_span(run, float("inf"))
    if span is not None:
        axes.axvspan(*span, color=theme.shade, zorder=0)
        axes.annotate(
            f"{peers_words(run)}, {_pipelined(run)}, nothing read", (span[0], 1.0), (6, -6),
            xycoords=("data", "axes fraction"), textcoords="offset points", va="top",
            color=theme.soft, fontsize=9,
        )  # fmt: skip
        axes.annotate(
            "left", (span[1], 1.0), (4, -6), xycoords=("data", "axes fraction"),
            textcoords="offset points", va="top", color=theme.soft, fontsize=9,
        )  # fmt: skip
    axes.grid(axis="y", color=theme.line)
    for kind, face in (("answered", theme.answered), ("refused", "none")):
        edge = getattr(theme, kind)
        at, seconds = zip(*found[kind], strict=True) if found[kind] else ((), ())
        axes.scatter(at, seconds, s=26, facecolors=face, edgecolors=edge, linewidths=1.4, zorder=3)
    title(axes, f"{run.summary.label}{_meanwhile(run)}", theme)


def _pipelined(run: Run) -> str:
    figures = run.summary.stuck
    return "" if figures is None else plural(figures.pipelined, "listing")


def _meanwhile(run: Run) -> str:
    """Say what the healthy clients got while the other one was connected."""
    figures = run.summary.stuck
    if figures is None:
        return ""
    phase = figures.stuck
    refused = f", {phase.refused:,} refused" if phase.refused else ""
    return f": {phase.answered_in_phase:,} of {phase.requests:,} answered in that time{refused}"
