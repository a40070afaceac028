"""The table and the picture of a sweep: medians over seeds, and the spread of them."""

from __future__ import annotations

import re
import statistics
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.table import Table

from loadgen.report.drawing import THEMES, dress, save, title
from loadgen.results.verdict import WORDS
from loadgen.sweeps.figures import FIGURES
from loadgen.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadgen.sweeps.sweep import Point
    from loadgen.sweeps.variation import Value

SHOWN = {
    "clients.back.rate": "back",
    "clients.back.p99": "back p99",
    "requests.refused.rate": "refused",
    "list.response.p99": "list p99",
    "broker.heap.used.max": "heap",
    "broker.direct.used.max": "direct",
}
"""Figures of the table, and the heads of their columns."""
DRAWN = "clients.back.p99"
_SEED = "seed"
_MOST_LINES = 6
_HEADING_COLUMNS = 10
_SIZE_INCHES = (8.0, 4.0)

Combination = tuple[tuple[str, "Value"], ...]


def combinations(points: Sequence[Point]) -> dict[Combination, list[Point]]:
    """Return the points of each combination of values, one for each seed."""
    found: dict[Combination, list[Point]] = {}
    for point in points:
        key = tuple((path, value) for path, value in point.values.items() if path != _SEED)
        found.setdefault(key, []).append(point)
    return found


def table_of(points: Sequence[Point]) -> Table:
    """Return a row for each combination: medians over its seeds, and how many passed."""
    table = Table(box=None, padding=(0, 1, 0, 0))
    by_values = combinations(points)
    for path, _ in next(iter(by_values)):
        table.add_column(_heading(path), no_wrap=True)
    for head in SHOWN.values():
        table.add_column(head.replace(" ", "\n"), justify="right", no_wrap=True)
    table.add_column("passed", justify="right", no_wrap=True)
    doubtful = any(not point.run.valid for point in points)
    if doubtful:
        table.add_column("not to be relied on")
    for values, same in by_values.items():
        told = [in_words(name, _median(same, name)) for name in SHOWN]
        passed = f"{sum(point.run.passed for point in same)} of {len(same)}"
        doubts = (_doubts(same),) if doubtful else ()
        table.add_row(*(str(value) for _, value in values), *told, passed, *doubts)
    return table


def _doubts(points: Sequence[Point]) -> str:
    """Count the runs that say nothing of thresholds, by name."""
    doubts = Counter(WORDS[point.run.exit_code] for point in points if not point.run.valid)
    return "; ".join(f"{name}: {count}" for name, count in doubts.items())


def in_words(name: str, value: float | None) -> str:
    """Write a figure in its unit; what never happened is a dash."""
    if value is None:
        return "-"
    if FIGURES[name] == "0%":
        return f"{round(100 * value, 2):g} %"
    if FIGURES[name] == "0s":
        return format_seconds(value)
    return format_bytes(value) if ".used." in name else f"{value:,.0f}"


def _median(points: Sequence[Point], name: str) -> float | None:
    values = [value for point in points if (value := point.run.figures[name]) is not None]
    return statistics.median(values) if values else None


def _short(path: str) -> str:
    return path.replace("maxTopicListInFlight", "").removeprefix("broker.")


def _heading(path: str) -> str:
    """Return a path in lines, so that a terminal of 80 columns has room for some."""
    words = re.sub(r"(?<=[._])|(?<=[a-z])(?=[A-Z])", " ", _short(path))
    lines = textwrap.wrap(words, _HEADING_COLUMNS, break_long_words=False)
    return "\n".join(line.replace(" ", "") for line in lines)


def draw(points: Sequence[Point], out: Path) -> list[Path]:
    """Draw when 99 % were back over the first numeric key, a line for each other combination.

    Without a key that has several numbers there is nothing to draw.
    """
    along = _along(points)
    if along is None:
        return []
    lines = dict(list(_lines(points, along).items())[:_MOST_LINES])
    return [
        save(_figure(lines, along, theme), out / f"sweep{theme.suffix}.png", theme)
        for theme in THEMES
    ]


def _along(points: Sequence[Point]) -> str | None:
    for path in points[0].values:
        values = {point.values[path] for point in points}
        numbers = all(isinstance(each, int | float) for each in values)
        if path != _SEED and numbers and len(values) > 1:
            return path
    return None


def _lines(points: Sequence[Point], along: str) -> Mapping[str, list[tuple[float, list[float]]]]:
    lines: dict[str, list[tuple[float, list[float]]]] = {}
    for values, same in combinations(points).items():
        rest = ", ".join(f"{_short(path)}={value}" for path, value in values if path != along)
        seen = [value for point in same if (value := point.run.figures[DRAWN]) is not None]
        if seen:
            at = float(dict(values)[along])
            lines.setdefault(rest, []).append((at, seen))
    return {name: sorted(line) for name, line in lines.items()}


def _figure(lines: Mapping[str, Any], along: str, theme: Any) -> Any:  # noqa: ANN401
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    dress(axes, theme)
    axes.grid(color=theme.line, linewidth=0.8)
    for (name, line), look in zip(lines.items(), _looks(theme), strict=False):
        at = [x for x, _ in line]
        axes.plot(at, [statistics.median(seen) for _, seen in line], label=name, **look)
        low, high = [min(seen) for _, seen in line], [max(seen) for _, seen in line]
        axes.fill_between(at, low, high, color=look["color"], alpha=0.15, linewidth=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(_short(along), color=theme.ink)
    title(axes, "Seconds until 99 % of clients are back: median and range over seeds", theme)
    if any(lines):
        axes.legend(labelcolor=theme.ink, facecolor=theme.paper, edgecolor=theme.line, fontsize=8)
    return figure


def _looks(theme: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    for style in ("-", "--"):
        for color in theme.runs:
            yield {"color": color, "linestyle": style, "marker": "o", "markersize": 4}
