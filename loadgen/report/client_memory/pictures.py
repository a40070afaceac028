"""The picture of a client's memory: counted and taken over time, the limit, sizes of queues."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.errors import UsageError
from loadgen.report.drawing import THEMES, dress, save, title
from loadgen.scenarios.client_memory.scenario import POLICIES, PRODUCING
from loadgen.scenarios.client_memory.summary import SERIES_NAME
from loadgen.units import MB_BYTES, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.report.drawing import Theme
    from loadgen.results.client_memory import ClientMemoryFigures
    from loadgen.results.summary import Run

TITLES = dict(zip(POLICIES, ("Queues by bytes (the default)", "Upstream's queues"), strict=True))
_SIZE_INCHES = (10.0, 8.4)
_HEADROOM = 1.5
"""Room for the legend above what is drawn."""
Columns = dict[str, list[float]]


def draw_client_memory_pictures(run: Run, out: Path) -> list[Path]:
    """Write ``client-memory.png`` and its dark twin into ``out`` and return their paths.

    Raises:
        UsageError: It is a run of another scenario, or its samples are missing.
        LoadgenError: A picture cannot be written, or is larger than a README's may be.
    """
    figures = run.summary.client_memory
    if figures is None:
        raise UsageError(f"{run.directory} is no run of client-memory")
    series = read_series(run.directory / SERIES_NAME)
    return [
        save(_draw(figures, series, theme), out / f"client-memory{theme.suffix}.png", theme)
        for theme in THEMES
    ]


def read_series(path: Path) -> dict[str, Columns]:
    """Read the samples of each part, with times since it began.

    Raises:
        UsageError: There are none.
    """
    try:
        rows = pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    found: defaultdict[str, Columns] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        columns = found[row.pop("part")]
        for name, value in row.items():
            columns[name].append(value)
    for columns in found.values():
        begun = columns["at_seconds"][0]
        columns["at_seconds"] = [at - begun for at in columns["at_seconds"]]
    return found


def _draw(figures: ClientMemoryFigures, series: Mapping[str, Columns], theme: Theme) -> Any:  # noqa: ANN401 - matplotlib has no types here
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=(1.4, 1, 1.2))
    played = [policy for policy in POLICIES if policy in series]
    for column, policy in enumerate(played):
        memory, queues = figure.add_subplot(grid[0, column]), figure.add_subplot(grid[1, column])
        _draw_memory(memory, figures, series[policy], theme, ("resident_bytes", "usage_bytes"))
        title(memory, f"{TITLES[policy]}: {plural(figures.consumers, 'consumer')}", theme)
        highest = [max(series[each]["resident_bytes"]) for each in played]
        memory.set_ylim(0, _HEADROOM * max(figures.limit_bytes, *highest) / MB_BYTES)
        _draw_queues(queues, series[policy], theme)
        queues.set_ylim(0, _HEADROOM * max(max(series[each]["queue_most"]) for each in played))
    if PRODUCING in series:
        _draw_producing(figure.add_subplot(grid[2, :]), figures, series[PRODUCING], theme)
    return figure


def _draw_memory(
    axes: Any,  # noqa: ANN401
    figures: ClientMemoryFigures,
    part: Columns,
    theme: Theme,
    names: Sequence[str],
) -> None:
    """Draw what a client counted, or what its process took, and the limit."""
    dress(axes, theme)
    looks = {
        "resident_bytes": (theme.runs[1], "taken by the process"),
        "usage_bytes": (theme.runs[0], "counted"),
    }
    for name in names:
        colour, label = looks[name]
        values = [value / MB_BYTES for value in part[name]]
        words = f"{label}: at most {max(values):,.0f} MB"
        axes.plot(part["at_seconds"], values, color=colour, linewidth=1.6, label=words)
    limit = figures.limit_bytes / MB_BYTES
    axes.axhline(
        limit, color=theme.ink, linestyle="--", linewidth=1.2, label=f"limit: {limit:,.0f} MB"
    )
    _finish(axes, theme)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f} MB" if value else "0")


def _draw_queues(axes: Any, part: Columns, theme: Theme) -> None:  # noqa: ANN401
    """Draw the smallest, the median and the largest queue."""
    from matplotlib.ticker import MaxNLocator

    dress(axes, theme)
    at, colour = part["at_seconds"], theme.runs[2]
    axes.fill_between(
        at, part["queue_least"], part["queue_most"], color=colour, alpha=0.25, linewidth=0,
        label="smallest to largest",
    )  # fmt: skip
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.plot(at, part["queue_median"], color=colour, linewidth=1.6, label="median")
    _finish(axes, theme)
    title(axes, f"Size of a queue; of all at most {max(part['queue_sum']):,.0f} messages", theme)


def _draw_producing(axes: Any, figures: ClientMemoryFigures, part: Columns, theme: Theme) -> None:  # noqa: ANN401
    """Draw a client's memory while its server reads nothing, and what was delivered."""
    _draw_memory(axes, figures, part, theme, ("usage_bytes",))
    axes.set_ylim(0, _HEADROOM * max(figures.limit_bytes, *part["usage_bytes"]) / MB_BYTES)
    at = part["at_seconds"]
    stopped = [moment for moment, stands in zip(at, part["stopped"], strict=True) if stands]
    if stopped:
        axes.axvspan(stopped[0], stopped[-1], color=theme.shade, zorder=-1)
        axes.text(
            stopped[0], 0.02, " the server reads nothing", color=theme.soft, fontsize=9,
            transform=axes.get_xaxis_transform(),
        )  # fmt: skip
    delivered = axes.twinx()
    dress(delivered, theme)
    delivered.plot(at, part["messages"], color=theme.runs[2], linewidth=1.6)
    delivered.margins(x=0)
    delivered.set_ylim(0, _HEADROOM * max(1, figures.messages_sent))
    delivered.set_ylabel("delivered", color=theme.runs[2], fontsize=9)
    title(axes, f"Producers: {plural(figures.messages_sent, 'message')}", theme)


def _finish(axes: Any, theme: Theme) -> None:  # noqa: ANN401
    axes.grid(axis="y", color=theme.line)
    axes.margins(x=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    axes.legend(
        loc="upper right", labelcolor=theme.ink, fontsize=9, frameon=True, framealpha=0.85,
        facecolor=theme.paper, edgecolor=theme.paper,
    )  # fmt: skip
