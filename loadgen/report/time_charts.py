"""Charts of runs over time, with phases and shocks: requests, who came back, what servers held."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from loadgen.engine.rows import Outcome
from loadgen.report.axes import amount
from loadgen.report.charts import COLOURS, Chart, Series, colour_of, peak_words, stacked
from loadgen.units import format_count, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.report.axes import Unit
    from loadgen.report.charts import Bars, Look, Point
    from loadgen.results.results import Results

    Drawn = Chart | Bars

OUTCOMES = {
    Outcome.ANSWERED: "good",
    Outcome.REFUSED: "bad",
    Outcome.WRONG: "c3",
    Outcome.TIMEOUT: "c4",
    Outcome.DISCONNECTED: "c5",
    Outcome.UNREACHABLE: "soft",
}
"""Of what became of requests, in the order in which they stand on each other."""
ABOUT = {
    "list": "topic lists",
    "watch": "watches opened",
    "update": "changes told to watches",
    "lookup": "lookups",
    "subscribe": "subscriptions",
    "producer": "producers made",
    "publish": "messages published",
    "deliver": "messages delivered",
    "create": "topics created",
    "delete": "topics deleted",
}
"""Operations in words; others have their own name."""
_OVER_IDLE = """WITH seen AS (
  SELECT process, floor(seconds * 4) / 4 AS moment, max(value) AS value FROM samples
  WHERE figure = 'resident' GROUP BY process, moment
), idle AS (
  SELECT process, min_by(value, seconds) AS value FROM samples
  WHERE figure = 'resident' GROUP BY process
)
SELECT s.moment, sum(greatest(s.value - i.value, 0)) AS value
FROM seen s JOIN idle i ON s.process = i.process GROUP BY s.moment
HAVING count(*) = (SELECT count(*) FROM idle) ORDER BY s.moment"""
_BUCKETS = 60
_ends: WeakKeyDictionary[Results, float] = WeakKeyDictionary()
"""When the last request of a run was done: every chart over time needs it."""
MOST_LINES = 8
_MEMORY: tuple[tuple[str, str, Unit, str], ...] = (
    ("resident", "Resident memory", "bytes", ""),
    ("heap.used", "Heap memory of lists", "bytes", "heap.limit"),
    ("direct.used", "Direct memory of lists", "bytes", "direct.limit"),
    ("heap.waiting", "Requests that wait for heap memory", "count", ""),
    ("direct.waiting", "Requests that wait for direct memory", "count", ""),
    ("unread", "Answers not yet read", "bytes", ""),
    ("connections", "Connections", "count", ""),
    ("cpu.seconds", "Cores in use", "number", ""),
    ("descriptors", "Open descriptors", "count", "descriptors.limit"),
    ("jvm.heap.used", "Heap of the JVM", "bytes", ""),
    ("jvm.direct.used", "Direct memory of the JVM", "bytes", ""),
)


def title_of(run: Results) -> str:
    """Return what a run is called."""
    return str(run.run.get("title") or run.run["run"])


def labels_of(runs: Sequence[Results]) -> list[str]:
    """Return what each of some runs is called beside the others; equal titles are numbered."""
    names = [title_of(run) for run in runs]
    return [
        f"{name} ({names[:number].count(name) + 1})" if names.count(name) > 1 else name
        for number, name in enumerate(names)
    ]


def operation_words(operation: str) -> str:
    """Return what the requests of an operation are, in the plural."""
    return ABOUT.get(operation, operation)


def requests(runs: Sequence[Results]) -> list[Drawn]:
    """How many requests a second were due, by operation and what became of them."""
    width = _round(_span(runs)[1] / _BUCKETS)
    charts: list[Drawn] = []
    for operation in operations(runs):
        series: list[Series] = []
        for number, (run, label) in enumerate(zip(runs, labels_of(runs), strict=True)):
            found = _rates(run, operation, width)
            if len(runs) == 1:
                series = stacked(
                    [
                        Series(each, found[each][0], "area", colour, format_count(found[each][1]))
                        for each, colour in OUTCOMES.items()
                        if each in found
                    ]
                )
                continue
            others = [found[each] for each in found if each != Outcome.ANSWERED]
            for words, dash, parts in (
                ("answered", 0, [found[each] for each in found if each == Outcome.ANSWERED]),
                ("not answered", 1, others),
            ):
                if parts:
                    points = [
                        (same[0][0], sum(y for _, y in same))
                        for same in zip(*(points for points, _ in parts), strict=True)
                    ]
                    told = f"{format_count(sum(count for _, count in parts))} {words}"
                    series.append(Series(label, points, "step", colour_of(number), told, dash))
        title = f"{operation_words(operation).capitalize()} a second, by when they were due"
        charts.append(replace(_over_time(runs, title, series, "number"), key=operation))
    return charts


def _rates(run: Results, operation: str, width: float) -> dict[str, tuple[list[Point], int]]:
    rows = run.sql(
        "SELECT outcome, CAST(floor(due / :width) AS BIGINT) AS place, count(*) AS n "
        "FROM requests WHERE operation = :operation GROUP BY outcome, place",
        width=width,
        operation=operation,
    )
    if not rows:
        return {}
    places = range(min(row["place"] for row in rows), max(row["place"] for row in rows) + 2)
    found = {}
    for outcome in {row["outcome"] for row in rows}:
        counts = {row["place"]: row["n"] for row in rows if row["outcome"] == outcome}
        points = [(place * width, counts.get(place, 0) / width) for place in places]
        found[outcome] = points, sum(counts.values())
    return found


def each_request(runs: Sequence[Results]) -> list[Drawn]:
    """Each request as a dot, by when it was due and when it ended; of many the slowest of a time.

    Answers are solid and all others rings, so that colour is not the only difference.
    """
    width = _span(runs)[1] / 200 or 1.0
    charts: list[Drawn] = []
    for operation in operations(runs):
        for run, label in zip(runs, labels_of(runs), strict=True):
            rows = run.sql(
                "SELECT outcome, max_by(due, done - due) AS due, max(done - due) AS seconds, "
                "count(*) AS n FROM requests WHERE operation = :operation "
                "GROUP BY outcome, CAST(floor(due / :width) AS BIGINT), "
                "CAST(floor(3 * log10(greatest(done - due, 0.000001))) AS BIGINT) ORDER BY due",
                operation=operation,
                width=width,
            )
            series = []
            for outcome, colour in OUTCOMES.items():
                points = [(r["due"], r["seconds"]) for r in rows if r["outcome"] == outcome]
                count = sum(r["n"] for r in rows if r["outcome"] == outcome)
                look: Look = "dots" if outcome is Outcome.ANSWERED else "rings"
                if points:
                    series.append(Series(outcome, points, look, colour, format_count(count)))
            if series:
                whose = f"{label}: " if len(runs) > 1 else ""
                title = f"{whose}{operation_words(operation)}, until they ended"
                chart = _over_time([run], title[0].upper() + title[1:], series, "seconds")
                about = "when they were due"
                charts.append(
                    replace(chart, x_title=about, log=True, span=_span(runs), key=operation)
                )
    return charts


def back(runs: Sequence[Results]) -> list[Drawn]:
    """How many clients of each group were back by when; a line shows how many there are."""
    named: list[tuple[Results, str, str, list[float]]] = []
    for run, label in zip(runs, labels_of(runs), strict=True):
        rows = run.sql(
            "SELECT e.group AS group, min(e.seconds) AS moment FROM events e "
            "WHERE e.what = 'back' GROUP BY e.group, e.client ORDER BY e.group, moment"
        )
        for group, same in groupby(rows, lambda row: row["group"]):
            whose = f"{label}, {group}" if len(runs) > 1 else group
            named.append((run, group, whose, [row["moment"] for row in same]))
    lines: list[Series] = []
    limits: dict[int, str] = {}
    for run, group, whose, moments in named:
        told = {each["name"]: each for each in run.document.get("clients", ())}.get(group, {})
        if len(named) > MOST_LINES and told.get("do") != "discover":
            continue
        clients = max(told.get("count", 0), len(moments))
        points = [(0.0, 0.0), *((at, float(n + 1)) for n, at in enumerate(moments))]
        points.append((_span([run])[1], float(len(moments))))
        number, words = len(lines), f"{len(moments):,} of {clients:,}"
        colour, dash = colour_of(number), number // COLOURS
        lines.append(Series(whose, _steps(points), "step", colour, words, dash))
        if len(moments) < clients:
            limits[clients] = plural(clients, "client")
    if not lines:
        return []
    chart = _over_time(runs, "Clients that were back: had all they came for", lines, "count")
    return [replace(chart, limits=[(float(n), words) for n, words in limits.items()])]


def _steps(points: list[Point], most: int = 400) -> list[Point]:
    """Thin a course that only rises, which keeps its shape."""
    stride = max(1, len(points) // most)
    return [*points[::stride], points[-1]]


def servers(runs: Sequence[Results]) -> list[Drawn]:
    """What servers held over time, with their limits."""
    charts = _over_idle(runs) if len(runs) > 1 else []
    for figure, title, unit, limit in _MEMORY:
        series: list[Series] = []
        limits: dict[float, str] = {}
        for number, (run, label) in enumerate(zip(runs, labels_of(runs), strict=True)):
            rows = run.sql(
                "SELECT process, seconds, sum(value) AS value FROM samples WHERE figure = :figure "
                "GROUP BY process, seconds ORDER BY process, seconds",
                figure=figure,
            )
            for place, (process, same) in enumerate(groupby(rows, lambda row: row["process"])):
                points = [(row["seconds"], row["value"]) for row in same]
                points = _growth(points) if figure == "cpu.seconds" else points
                alone = len(runs) == 1
                name = process if alone else f"{label}, {process}"
                colour, dash = (colour_of(place), place) if alone else (colour_of(number), place)
                series.append(Series(name, points, "line", colour, peak_words(points, unit), dash))
            if limit:
                limits |= _limits(run, limit, unit)
        if any(y for each in series for _, y in each.points):
            chart = _over_time(runs, title, series, unit)
            charts.append(replace(chart, limits=list(limits.items()), key=figure))
    return charts


def _over_idle(runs: Sequence[Results]) -> list[Drawn]:
    """Memory of all processes of a run together, over what they had before it."""
    series = []
    for number, (run, label) in enumerate(zip(runs, labels_of(runs), strict=True)):
        rows = run.sql(_OVER_IDLE)
        points = [(row["moment"], row["value"]) for row in rows]
        words = peak_words(points, "bytes")
        line = Series(label, points, "line", colour_of(number), words, number)
        series += [line] if points else []
    title = "Memory of all servers together, over idle"
    return [replace(_over_time(runs, title, series, "bytes"), key="over-idle")] if series else []


def _limits(run: Results, figure: str, unit: Unit) -> dict[float, str]:
    rows = run.sql(
        "SELECT DISTINCT value FROM samples WHERE figure = :figure AND value > 0", figure=figure
    )
    return {row["value"]: f"limit {amount(row['value'], unit)}" for row in rows}


def _growth(points: list[Point]) -> list[Point]:
    """Return how fast a counter rose, a second; one that began anew rose by what it has."""
    return [
        (at, (value - before if value >= before else value) / (at - then))
        for (then, before), (at, value) in pairwise(points)
        if at > then
    ]


# -- what they have in common -------------------------------------------------------------------


def operations(runs: Sequence[Results]) -> list[str]:
    """Return the operations of runs, those of most requests first."""
    counts: dict[str, int] = {}
    for run in runs:
        for row in run.sql("SELECT operation, count(*) AS n FROM requests GROUP BY operation"):
            counts[row["operation"]] = counts.get(row["operation"], 0) + row["n"]
    return sorted(counts, key=lambda name: (-counts[name], name))


def _span(runs: Sequence[Results]) -> tuple[float, float]:
    for run in runs:
        if run not in _ends:
            _ends[run] = run.value("SELECT max(done) FROM requests") or 1.0
    return 0.0, max(_ends[run] for run in runs)


def _round(seconds: float) -> float:
    """Return a round width of buckets, not below what is wanted."""
    power = 10.0 ** math.floor(math.log10(max(seconds, 1e-3)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= seconds * (1 - 1e-9))


def _over_time(runs: Sequence[Results], title: str, series: list[Series], unit: Unit) -> Chart:
    """Return a chart over the time of runs, with their phases and shocks."""
    span, first = _span(runs), runs[0]
    phases = first.document.get("phases") or {}
    warm, measure, hold = (phases.get(each) or 0.0 for each in ("warm_up", "measure", "hold"))
    bands, at = [(0.0, warm, "warm-up")], warm + measure
    for name, seconds in (("hold", hold), ("drain", phases.get("drain") or 0.0)):
        bands.append((at, at + seconds, name))
        at += seconds
    shown = [each for each in bands if each[0] < min(each[1], span[1])]
    marks = []
    for number, run in enumerate(runs):
        for shock in run.run.get("shocks") or ():
            if number and shock in (first.run.get("shocks") or ()):
                continue
            marks.append((shock["at"], str(shock["what"])))
            ready = shock.get("ready_seconds")
            if ready is not None and ready > shock["at"] + 0.01 * span[1]:
                marks.append((ready, "ready"))
    return Chart(title, series, unit, bands=shown, marks=marks[:12], span=span)
