"""The table and the picture of a sweep: medians over seeds, and the spread of them."""

from __future__ import annotations

import re
import statistics
import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from rich.table import Table

from loadgen.report.charts import picture
from loadgen.report.pictures import write_picture
from loadgen.report.run_charts import sweep_chart
from loadgen.report.style import picture_style
from loadgen.results.verdict import WORDS
from loadgen.sweeps.figures import FIGURES
from loadgen.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
    lines = list(_lines(points, along).items())[:_MOST_LINES]
    title = "Seconds until 99 % of clients are back: median and range over seeds"
    path = out / "sweep.svg"
    chart = sweep_chart(title, _short(along), lines, "seconds")
    write_picture(path, picture([chart], picture_style()))
    return [path]


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
