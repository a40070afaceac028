"""The README's picture: what a demo showed, as a PNG for light and one for dark pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loadgen.errors import LoadgenError, UsageError
from loadgen.report.panels import time_axis
from loadgen.report.tables import resident_total
from loadgen.results.reading import load_run
from loadgen.results.summary import PROCESSES
from loadgen.units import MB_BYTES, format_bytes, plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from loadgen.report.series import Axis
    from loadgen.results.summary import Run

LARGEST_PICTURE_BYTES = 300_000
RUN_DIRECTORIES = "runs"
_SIZE_INCHES = (10.0, 4.3)
_DOTS_PER_INCH = 150
_TIME_POINTS = 400


@dataclass(frozen=True)
class Theme:
    """Colours of one variant of the picture; runs in the order of the report's."""

    name: str
    paper: str
    ink: str
    soft: str
    line: str
    runs: tuple[str, ...]


THEMES = (
    Theme("demo", "#ffffff", "#1b2430", "#5a6675", "#e3e7ec", ("#c24e00", "#0067a5", "#008060")),
    Theme(
        "demo-dark", "#11161d", "#e8edf3", "#a3afbd", "#29323e", ("#ff9350", "#62b5f2", "#3ecf9c")
    ),
)


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
    return [save(_draw(runs, theme), out / f"{theme.name}.png", theme) for theme in THEMES]


def save(figure: Any, path: Path, theme: Theme) -> Path:  # noqa: ANN401
    """Write a figure as a PNG and return its path.

    Raises:
        LoadgenError: The picture cannot be written, or passes ``LARGEST_PICTURE_BYTES``.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=_DOTS_PER_INCH, facecolor=theme.paper)
    except OSError as error:
        raise LoadgenError(f"cannot write {path}: {error.strerror}") from error
    if path.stat().st_size > LARGEST_PICTURE_BYTES:
        raise LoadgenError(
            f"{path} has {format_bytes(path.stat().st_size)}; a README's picture may have "
            f"{format_bytes(LARGEST_PICTURE_BYTES)}"
        )
    return path


def memory_over_idle(run: Run, at_seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Resident memory of broker and proxy together over idle at given moments, NaN after the end.

    Units: MB of 1,048,576 bytes.
    """
    total = np.zeros(len(at_seconds))
    for process in PROCESSES:
        series = run.series(process, "process_resident_memory_bytes")
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
    _draw_memory(memory, runs, theme)
    _draw_clients(clients, runs, theme)
    return figure


def dress(axes: Any, theme: Theme) -> None:  # noqa: ANN401
    """Give axes the theme's colours and nothing that carries no information."""
    axes.set_facecolor(theme.paper)
    axes.tick_params(colors=theme.soft, length=0, labelsize=9)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_axisbelow(True)


def title(axes: Any, text: str, theme: Theme) -> None:  # noqa: ANN401
    """Write what a chart shows above it."""
    axes.set_title(text, loc="left", color=theme.ink, fontsize=10.5, fontweight="bold", pad=10)


def _draw_memory(axes: Any, runs: Sequence[Run], theme: Theme) -> None:  # noqa: ANN401
    """Memory over time, each line named at its peak."""
    axis: Axis = time_axis(runs)
    at = np.linspace(axis.low, axis.high, _TIME_POINTS)
    for run, colour in zip(runs, theme.runs, strict=True):
        axes.plot(at, memory_over_idle(run, at), color=colour, linewidth=2, label=_legend(run))
    axes.grid(axis="y", color=theme.line)
    axes.set_xlim(axis.low, axis.high)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f} MB" if value else "0")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    # A box in the page's colour, so that no grid line runs through the words.
    axes.legend(
        loc="upper right", labelcolor=theme.ink, fontsize=9, frameon=True, framealpha=1.0,
        facecolor=theme.paper, edgecolor=theme.paper,
    )  # fmt: skip
    watched = [name for name in PROCESSES if any(name in r.summary.processes for r in runs)]
    title(axes, f"Memory of {' and '.join(watched) or 'the servers'} over idle", theme)


def _legend(run: Run) -> str:
    return f"{run.summary.label}: {resident_total(run.summary)}"


def _draw_clients(axes: Any, runs: Sequence[Run], theme: Theme) -> None:  # noqa: ANN401
    """Draw what the clients got, one bar per run."""
    for row, (run, colour) in enumerate(zip(runs, theme.runs, strict=True)):
        summary = run.summary
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
