"""The picture of runs beside silent clients: the broker's memory, and each healthy message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.errors import UsageError
from loadgen.report.drawing import THEMES, dress, save, title
from loadgen.report.pictures import draw_memory
from loadgen.report.stuck.dots import request_dots, stuck_span

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.report.drawing import Theme
    from loadgen.results.summary import Run

_SIZE_INCHES = (10.0, 3.9)
_LEAST_SECONDS = 0.1


def draw_silent_pictures(runs: Sequence[Run], out: Path) -> list[Path]:
    """Write ``beside-silent.png`` and its dark twin into ``out`` and return their paths.

    Raises:
        UsageError: A run is none beside silent clients, or there are more than colours.
        LoadgenError: A picture cannot be written, or is larger than a README's may be.
    """
    for run in runs:
        if run.summary.silent is None:
            raise UsageError(
                f"{run.directory} is no run of produce-beside-silent: name only such runs, or "
                "--demo for the pictures of a demo"
            )
    if len(runs) > len(THEMES[0].runs):
        raise UsageError(f"a picture takes {len(THEMES[0].runs)} runs, not {len(runs)}: name fewer")
    return [
        save(_draw(runs, theme), out / f"beside-silent{theme.suffix}.png", theme)
        for theme in THEMES
    ]


def _draw(runs: Sequence[Run], theme: Theme) -> Any:  # noqa: ANN401 - matplotlib has no types here
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    memory, waits = figure.subplots(1, 2)
    for axes in (memory, waits):
        dress(axes, theme)
        span = stuck_span(runs[0], float("inf"))
        if span is not None:
            axes.axvspan(*span, color=theme.shade, zorder=0)
    draw_memory(memory, runs, theme, legend="upper left")
    _draw_waits(waits, runs, theme)
    return figure


def _draw_waits(axes: Any, runs: Sequence[Run], theme: Theme) -> None:  # noqa: ANN401
    """Draw each message of the producers that read: when it was due, how long to its receipt."""
    slowest = _LEAST_SECONDS
    for run, colour in zip(runs, theme.runs, strict=False):
        found = request_dots(run)["answered"]
        at, seconds = zip(*found, strict=True) if found else ((), ())
        axes.scatter(at, seconds, s=5, color=colour, linewidths=0, zorder=3)
        slowest = max([slowest, *seconds])
    axes.grid(axis="y", color=theme.line)
    axes.set_ylim(-0.02 * slowest, 1.1 * slowest)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    axes.yaxis.set_major_formatter(lambda value, _: f"{1000 * value:g} ms" if value else "0")
    title(axes, "Receipts of producers that read: how long each took", theme)
