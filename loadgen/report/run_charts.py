"""The charts of runs: each is made by a question to their tables, for one run or several overlaid.

``CHARTS`` has each by the name under which pages and pictures ask for it; one that has nothing to
show is left out.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

from loadgen.report.axes import amount, percentile_place
from loadgen.report.charts import COLOURS, Bar, Bars, Chart, Series, colour_of
from loadgen.report.time_charts import (
    MOST_LINES,
    OUTCOMES,
    back,
    each_request,
    labels_of,
    operation_words,
    operations,
    requests,
    servers,
)
from loadgen.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from loadgen.report.axes import Unit
    from loadgen.report.charts import Point
    from loadgen.results.results import Results

    Drawn = Chart | Bars

_MOST_BARS = 12


def distribution(runs: Sequence[Results]) -> list[Drawn]:
    """Response seconds by percentile, of each operation: lines of its groups, or of the runs.

    Who got no answer waited for ever: there a line ends.
    """
    charts: list[Drawn] = []
    for operation in operations(runs):
        lines: list[Series] = []
        for place, (run, label) in enumerate(zip(runs, labels_of(runs), strict=True)):
            whose = "r.group" if len(runs) == 1 else "'all'"
            rows = run.sql(
                f"SELECT {whose} AS part, CAST(floor(40 * ln(least(greatest(response_seconds, "
                "0.000001), 1e9))) AS BIGINT) AS place, count(*) AS n, max(response_seconds) AS "
                "most, min(response_seconds) AS least FROM measured r "
                "WHERE operation = :operation GROUP BY part, place ORDER BY part, place",
                operation=operation,
            )
            for number, (part, same) in enumerate(groupby(rows, lambda row: row["part"])):
                name, colour = (part, number) if len(runs) == 1 else (label, place)
                lines.append(_percentiles(str(name), list(same), colour))
        title = f"Response of {operation_words(operation)}, by percentile"
        if lines:
            shown = lines[:MOST_LINES]
            charts.append(Chart(title, shown, "seconds", x="percentile", log=True, key=operation))
    return charts


def _percentiles(name: str, rows: list[dict[str, Any]], number: int) -> Series:
    total, below = sum(row["n"] for row in rows), 0
    points: list[Point] = [(0.0, rows[0]["least"])]
    p99 = never = None
    for row in rows:
        if math.isinf(row["most"]):
            never = row["n"] / total
            break
        below += row["n"]
        end = math.log10(max(total, 2))
        points.append((end if below == total else percentile_place(below / total), row["most"]))
    p99 = next((y for x, y in points if x >= percentile_place(0.99)), None)
    words = f"p99 {amount(p99, 'seconds')}" if p99 is not None else ""
    if never is not None:
        words = f"{amount(never, 'share')} never"
    return Series(name, points, "line", colour_of(number), words, number)


def outcomes(runs: Sequence[Results]) -> list[Drawn]:
    """What became of the requests of each group, or of each run."""
    bars = []
    for run, label in zip(runs, labels_of(runs), strict=True):
        part = "r.group" if len(runs) == 1 else "'all'"
        rows = run.sql(
            f"SELECT {part} AS part, outcome, count(*) AS n FROM measured r "
            "GROUP BY part, outcome ORDER BY part"
        )
        for name, same in groupby(rows, lambda row: row["part"]):
            counts = {row["outcome"]: row["n"] for row in same}
            words = ", ".join(f"{counts[each]:,} {each}" for each in OUTCOMES if each in counts)
            parts = [(counts[each], colour) for each, colour in OUTCOMES.items() if each in counts]
            bars.append(Bar(str(name) if len(runs) == 1 else label, parts, words))
    return [Bars("What became of requests", bars[:_MOST_BARS])] if bars else []


def refusals(runs: Sequence[Results]) -> list[Drawn]:
    """Why requests got no answer, most frequent first."""
    bars = []
    for run, label in zip(runs, labels_of(runs), strict=True):
        for row in run.query("reasons", most=_MOST_BARS):
            whose = f"{label}: " if len(runs) > 1 else ""
            name = f"{whose}{row['outcome']}, {row['reason'] or 'no reason told'}"[:70]
            parts = [(row["requests"], OUTCOMES.get(row["outcome"], "ink"))]
            bars.append(Bar(name, parts, format_count(row["requests"])))
    bars = sorted(bars, key=lambda bar: -bar.parts[0][0])[:_MOST_BARS]
    return [Bars("Requests without an answer, by reason", bars)] if bars else []


def namespaces(runs: Sequence[Results]) -> list[Drawn]:
    """The namespaces whose requests waited longest, where there are several."""
    charts: list[Drawn] = []
    for run, label in zip(runs, labels_of(runs), strict=True):
        rows = run.query("by-namespace")
        slowest = sorted(rows, key=lambda row: -row["p99"])[:_MOST_BARS]
        if len(rows) > 1:
            whose = f"{label}: " if len(runs) > 1 else ""
            of = f" of {len(rows):,}" if len(rows) > len(slowest) else ""
            title = f"{whose}p99 by namespace, the {len(slowest)} slowest{of}"
            bars = [
                Bar(row["part"], [(row["p99"], "c0")], amount(row["p99"], "seconds"))
                for row in slowest
            ]
            charts.append(Bars(title, bars))
    return charts


CHARTS: dict[str, Callable[[Sequence[Results]], list[Drawn]]] = {
    "requests": requests,
    "each": each_request,
    "outcomes": outcomes,
    "distribution": distribution,
    "back": back,
    "refusals": refusals,
    "servers": servers,
    "namespaces": namespaces,
}
"""Every kind of chart by name."""


def sweep_chart(
    title: str,
    along: str,
    lines: Iterable[tuple[str, Sequence[tuple[float, Sequence[float]]]]],
    unit: Unit,
) -> Chart:
    """Return a figure against a value that was varied: medians, and the range of repeats.

    Args:
        title: What the figure is.
        unit: Its unit.
        along: The path that was varied.
        lines: For each combination of the others: values with what was measured at them.
    """
    series = []
    for number, (name, measured) in enumerate(lines):
        told = [(x, sorted(values)) for x, values in sorted(measured) if values]
        series.append(
            Series(
                name,
                [(x, values[(len(values) - 1) // 2]) for x, values in told],
                colour=colour_of(number),
                dash=number // COLOURS,
                between=[(x, values[0], values[-1]) for x, values in told],
            )
        )
    return Chart(title, series, unit, x="number", x_title=along)
