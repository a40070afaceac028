"""The README's picture of a restart storm: who was back when, what was refused and accounted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadgen.analysis.measured import clients_of_requests
from loadgen.errors import UsageError
from loadgen.report.chart_math import running_count
from loadgen.report.clients.coming_back import coming_back, families_of
from loadgen.report.drawing import THEMES, dress, save, title
from loadgen.results.summary import PROCESSES
from loadgen.units import MB_BYTES, format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.report.clients.coming_back import ComingBack
    from loadgen.report.drawing import Theme
    from loadgen.results.summary import Run

_COLUMNS = 2
_INCHES_WIDE, _INCHES_HIGH = 7.0, 1.9
"""Of the whole, and of a row. It is narrow, so that its words can be read on a phone."""
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
    from matplotlib.ticker import MaxNLocator

    limits = _accounted(runs)
    count = len(families) + 1 + len(limits)
    rows, columns = -(-count // _COLUMNS), min(_COLUMNS, count)
    figure = Figure(figsize=(_INCHES_WIDE, 0.5 + _INCHES_HIGH * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    charts = list(grid.flat)
    for axes in charts:
        dress(axes, theme)
        axes.grid(axis="y", color=theme.line)
        axes.set_xlim(0, max(coming_back(run, families[0]).end for run in runs) or 1.0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 5, 10]))
    for axes in charts[count:]:
        axes.set_visible(False)
    for axes in charts[: max(0, count - columns)]:
        axes.tick_params(labelbottom=False)
    for family, axes in zip(families, charts, strict=False):
        axes.sharey(charts[0])
        _draw_family(axes, family, runs, theme)
    _draw_refused(charts[len(families)], runs, theme)
    for (process, kind), axes in zip(limits, charts[len(families) + 1 :], strict=False):
        _draw_accounted(axes, process, kind, runs, theme)
    for axes in charts:
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.0))
    figure.legend(
        handles=_legend(runs, families, theme, limits=bool(limits)), loc="outside lower center",
        ncols=3, labelcolor=theme.ink, fontsize=9, frameon=False,
    )  # fmt: skip
    return figure


def _refused(run: Run) -> list[float]:
    """Return when requests of clients were refused, in order."""
    return run.requests.finish_times("refused")


def _accounted(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return the limits to show, as (process, kind): those of the server that clients talk to."""
    watched = [name for name in PROCESSES if any(name in run.summary.processes for run in runs)]
    return [
        (process, kind)
        for process in watched[-1:]
        for kind in ("direct", "heap")
        if any(_limit(run, process, kind) for run in runs)
    ]


def _limit(run: Run, process: str, kind: str) -> float | None:
    """Return a limit of topic listings in bytes; None where nothing is accounted."""
    memory = getattr(run.summary.processes.get(process), kind, None)
    return None if memory is None else memory.limit_bytes


def _draw_refused(axes: Any, runs: Sequence[Run], theme: Theme) -> None:  # noqa: ANN401
    """Draw how many requests were refused so far, in each run."""
    for run, colour in zip(runs, theme.runs, strict=False):
        end = max(run.requests.finished_seconds, default=0.0)
        points = running_count(_refused(run), end, _POINTS) or [(0.0, 0.0), (end, 0.0)]
        axes.plot([at for at, _ in points], [n for _, n in points], color=colour, linewidth=2)
    title(axes, "Requests refused so far", theme)
    if len(runs) == 1:
        _beside(axes, f"{len(_refused(runs[0])):,}", theme)


def _draw_accounted(
    axes: Any,  # noqa: ANN401
    process: str,
    kind: str,
    runs: Sequence[Run],
    theme: Theme,
) -> None:
    """Draw what a server accounts for topic lists, with the limit as a dashed line."""
    for limit in {limit for run in runs if (limit := _limit(run, process, kind))}:
        axes.axhline(limit / MB_BYTES, color=theme.ink, linestyle="--", linewidth=1)
    for run, colour in zip(runs, theme.runs, strict=False):
        series = run.series(process, f"{kind}.used")
        if series is not None and _limit(run, process, kind):
            values = [value / MB_BYTES for value in series.values]
            axes.plot(series.at_seconds, values, color=colour, linewidth=1.5)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.3g} MB" if value else "0")
    title(axes, f"{kind.capitalize()} memory of lists, {process}", theme)


def _beside(axes: Any, words: str, theme: Theme) -> None:  # noqa: ANN401
    axes.set_title(words, loc="right", color=theme.soft, fontsize=9, pad=10)


def _draw_family(axes: Any, family: str, runs: Sequence[Run], theme: Theme) -> None:  # noqa: ANN401
    """Draw the clients of a family that were to start, and were back, of each run that has some."""
    found = [each for run in runs if (each := coming_back(run, family)).asked]
    for each, colour in zip(found, theme.runs, strict=False):
        asked = {"color": theme.soft, "linestyle": ":", "linewidth": 1.5}
        for moments, style in ((each.asked, asked), (each.back, {"color": colour, "linewidth": 2})):
            points = running_count(moments, each.end, _POINTS)
            axes.plot([at for at, _ in points], [count for _, count in points], **style)
    title(axes, family, theme)
    if len(found) == 1:
        _beside(axes, _words(found[0]), theme)


def _words(found: ComingBack) -> str:
    """Say how many were back, and by when."""
    back = f"{len(found.back):,} of {len(found.asked):,} back"
    return f"{back}, {format_seconds(found.back[-1])}" if found.back else back


def _legend(
    runs: Sequence[Run], families: Sequence[str], theme: Theme, *, limits: bool
) -> list[Any]:
    """Return the entries of the legend: what the lines are, and whose, where runs overlap."""
    from matplotlib.lines import Line2D

    shared = any(_runs_with(name, runs) > 1 for name in families)
    colour = theme.soft if shared else theme.runs[0]
    lines = [
        Line2D([], [], color=theme.soft, linestyle=":", label="were to start"),
        Line2D([], [], color=colour, linewidth=2, label="back"),
    ]
    if limits:
        lines.append(Line2D([], [], color=theme.ink, linestyle="--", linewidth=1, label="limit"))
    if shared:
        lines += [
            Line2D([], [], color=mine, linewidth=4, label=run.summary.label)
            for run, mine in zip(runs, theme.runs, strict=False)
        ]
    return lines
