"""The README's picture of a restart storm: the clients of each family over time, coming back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadgen.analysis.measured import clients_of_requests
from loadgen.errors import UsageError
from loadgen.report.chart_math import running_count
from loadgen.report.clients.coming_back import coming_back, families_of
from loadgen.report.drawing import THEMES, dress, save, title
from loadgen.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.report.clients.coming_back import ComingBack
    from loadgen.report.drawing import Theme
    from loadgen.results.summary import Run

_COLUMNS = 3
_INCHES_WIDE, _INCHES_HIGH = 10.0, 2.35
_POINTS = 300
_MOST_RUNS = 3
"""As many colours as a theme has."""


def draw_coming_back(runs: Sequence[Run], out: Path) -> list[Path]:
    """Write one PNG per theme into ``out``, a chart for each family, and return their paths.

    Raises:
        UsageError: The runs have no clients of families, or are too many to tell apart.
        LoadgenError: A picture cannot be written, or passes ``LARGEST_PICTURE_BYTES``.
    """
    known = [_with_clients(run) for run in runs]
    families = families_of(known)
    most = max((_runs_with(name, known) for name in families), default=0)
    if not most:
        raise UsageError("these runs have no clients of families: name those of a restart storm")
    if most > _MOST_RUNS:
        raise UsageError(f"{most} runs have clients of one family: draw at most {_MOST_RUNS}")
    paths = ((theme, out / f"restart-storm{theme.suffix}.png") for theme in THEMES)
    return [save(_draw(known, families, theme), path, theme) for theme, path in paths]


def _with_clients(run: Run) -> Run:
    """Return a run with clients; where each asked on its own, they are made of the requests."""
    return run if run.clients.num_rows else replace(run, clients=clients_of_requests(run.rows))


def _runs_with(family: str, runs: Sequence[Run]) -> int:
    return sum(bool(coming_back(run, family).asked) for run in runs)


def _draw(runs: Sequence[Run], families: Sequence[str], theme: Theme) -> Any:  # noqa: ANN401 - matplotlib
    from matplotlib.figure import Figure

    rows = -(-len(families) // _COLUMNS)
    columns = min(_COLUMNS, len(families))
    figure = Figure(figsize=(_INCHES_WIDE, 0.5 + _INCHES_HIGH * rows), layout="constrained")
    charts = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for family, axes in zip(families, charts.flat, strict=False):
        dress(axes, theme)
        _draw_family(axes, family, runs, theme)
    for axes in list(charts.flat)[len(families) :]:
        axes.set_visible(False)
    charts.flat[0].set_ylim(bottom=0)
    figure.legend(
        handles=_legend(runs, families, theme), loc="outside lower center", ncols=4,
        labelcolor=theme.ink, fontsize=9, frameon=False,
    )  # fmt: skip
    return figure


def _draw_family(axes: Any, family: str, runs: Sequence[Run], theme: Theme) -> None:  # noqa: ANN401
    """Draw the clients of a family that were to start, and were back, of each run that has some."""
    found = [each for run in runs if (each := coming_back(run, family)).asked]
    for each, colour in zip(found, theme.runs, strict=False):
        asked = {"color": theme.soft, "linestyle": ":", "linewidth": 1.5}
        for moments, style in ((each.asked, asked), (each.back, {"color": colour, "linewidth": 2})):
            points = running_count(moments, each.end, _POINTS)
            axes.plot([at for at, _ in points], [count for _, count in points], **style)
    axes.grid(axis="y", color=theme.line)
    axes.set_xlim(0, max((each.end for each in found), default=1.0))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    title(axes, family, theme)
    if len(found) == 1:
        axes.set_title(_words(found[0]), loc="right", color=theme.soft, fontsize=9, pad=10)


def _words(found: ComingBack) -> str:
    """Say how many were back, and by when."""
    back = f"{len(found.back):,} of {len(found.asked):,} back"
    return f"{back}, {format_seconds(found.back[-1])}" if found.back else back


def _legend(runs: Sequence[Run], families: Sequence[str], theme: Theme) -> list[Any]:
    """Return the entries of the legend: what the lines are, and whose, where runs overlap."""
    from matplotlib.lines import Line2D

    shared = any(_runs_with(name, runs) > 1 for name in families)
    colour = theme.soft if shared else theme.runs[0]
    lines = [
        Line2D([], [], color=theme.soft, linestyle=":", label="were to start"),
        Line2D([], [], color=colour, linewidth=2, label="back"),
    ]
    if shared:
        lines += [
            Line2D([], [], color=mine, linewidth=4, label=run.summary.label)
            for run, mine in zip(runs, theme.runs, strict=False)
        ]
    return lines
