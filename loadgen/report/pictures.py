"""The README's picture of a demo's three storms, as one PNG for light and one for dark pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from loadgen.errors import UsageError
from loadgen.report.drawing import THEMES, dress, save, title
from loadgen.report.figures import resident_total
from loadgen.report.panels import time_axis
from loadgen.results.reading import load_run
from loadgen.results.summary import PROCESSES
from loadgen.units import MB_BYTES, plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from loadgen.report.chart_math import Axis
    from loadgen.report.drawing import Theme
    from loadgen.results.summary import Run

RUN_DIRECTORIES = "runs"
_SIZE_INCHES = (10.0, 4.3)
_TIME_POINTS = 400


def load_demo(directory: Path, names: Sequence[str]) -> list[Run]:
    """Read the runs of a demo.

    Raises:
        UsageError: There is no finished demo in ``directory``.
    """
    if not (directory / "summary.json").is_file():
        raise UsageError(f"{directory} holds no finished demo: make one with `loadgen demo`")
    return [load_run(directory / RUN_DIRECTORIES / name) for name in names]


def draw_pictures(runs: Sequence[Run], out: Path) -> list[Path]:
    """Write one PNG per theme into ``out`` and return their paths.

    Raises:
        LoadgenError: A picture cannot be written, or passes ``LARGEST_PICTURE_BYTES``.
    """
    return [save(_draw(runs, theme), out / f"demo{theme.suffix}.png", theme) for theme in THEMES]


def memory_over_idle(run: Run, at_seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Resident memory of broker and proxy together over idle at given moments, NaN after the end.

    Units: MB of 1,048,576 bytes.
    """
    total = np.zeros(len(at_seconds))
    for process in PROCESSES:
        series = run.series(process, "resident")
        memory = run.summary.processes.get(process)
        if series is None or memory is None:
            continue
        known = memory.resident_idle_bytes
        idle = series.values[0] if known is None else float(known)
        over = np.asarray(series.values, dtype=np.float64) - idle
        over = np.maximum(over, 0.0) / MB_BYTES
        total = total + np.interp(at_seconds, series.at_seconds, over, right=np.nan)
    return total


def _draw(runs: Sequence[Run], theme: Theme) -> Any:  # noqa: ANN401 - matplotlib has no types here
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    memory, clients = figure.subplots(1, 2, width_ratios=(1.9, 1))
    for axes in (memory, clients):
        dress(axes, theme)
    draw_memory(memory, runs, theme)
    _draw_clients(clients, runs, theme)
    return figure


def draw_memory(
    axes: Any,  # noqa: ANN401
    runs: Sequence[Run],
    theme: Theme,
    legend: str = "upper right",
) -> None:
    """Memory over time, and what each line needed in a legend."""
    runs = [run for run in runs if not run.clients.num_rows]  # in virtual time there is no memory
    axis: Axis = time_axis(runs)
    at = np.linspace(axis.low, axis.high, _TIME_POINTS)
    for run, colour in zip(runs, theme.runs, strict=False):
        axes.plot(at, memory_over_idle(run, at), color=colour, linewidth=2, label=_legend(run))
    axes.grid(axis="y", color=theme.line)
    axes.set_xlim(axis.low, axis.high)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f} MB" if value else "0")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    # A box in the page's colour, so that no grid line runs through the words.
    axes.legend(
        loc=legend, labelcolor=theme.ink, fontsize=9, frameon=True, framealpha=1.0,
        facecolor=theme.paper, edgecolor=theme.paper,
    )  # fmt: skip
    watched = [name for name in PROCESSES if any(name in r.summary.processes for r in runs)]
    title(axes, f"Memory of {' and '.join(watched) or 'the servers'} over idle", theme)


def _legend(run: Run) -> str:
    return f"{run.summary.label}: {resident_total(run.summary)}"


def _draw_clients(axes: Any, runs: Sequence[Run], theme: Theme) -> None:  # noqa: ANN401
    """Draw what the clients got, one bar per run."""
    for row, (run, colour) in enumerate(zip(runs, (*theme.runs, theme.soft), strict=False)):
        summary = run.summary
        if run.clients.num_rows:
            _draw_family(axes, row, run, theme)
            continue
        axes.barh(row, summary.answered, color=colour, height=0.42)
        axes.barh(
            row, summary.refused_total, left=summary.answered, height=0.42,
            color=colour, alpha=0.25, hatch="///", edgecolor=colour, linewidth=0,
        )  # fmt: skip
        words = f"{summary.answered:,} answered"
        if summary.refused_total:
            words += f", {summary.refused_total:,} refused"
        axes.text(0, row - 0.33, summary.label, color=theme.ink, fontsize=9, fontweight="bold")
        axes.text(0, row + 0.4, words, color=theme.soft, fontsize=9)
    axes.set_ylim(len(runs) - 0.4, -0.6)
    axes.set_xticks([])
    axes.set_yticks([])
    most = max(run.summary.clients for run in runs)
    axes.set_xlim(0, most)
    title(axes, f"What {plural(most, 'client')} got", theme)


def _draw_family(axes: Any, row: int, run: Run, theme: Theme) -> None:  # noqa: ANN401
    """Draw how many retrying clients of a run have recovered, and how many requests they sent."""
    back = len(run.clients["back_seconds"].drop_null())
    asked, clients = sum(run.clients["listings"].to_pylist()), run.clients.num_rows
    axes.barh(row, back, color=theme.soft, height=0.42)
    axes.barh(
        row, clients - back, left=back, height=0.42,
        color=theme.soft, alpha=0.25, hatch="...", edgecolor=theme.soft, linewidth=0,
    )  # fmt: skip
    seconds = max(run.requests.finished_seconds)
    words = f"{back:,} recovered in {seconds:.0f} s, {asked:,} requests (simulated)"
    axes.text(0, row - 0.33, run.summary.label, color=theme.ink, fontsize=9, fontweight="bold")
    axes.text(0, row + 0.4, words, color=theme.soft, fontsize=9)
