"""The charts of one run, or of several overlaid runs, drawn from queries of their tables.

``CHARTS`` has each kind of chart by its name on pages and in pictures; an empty chart is left out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loadgen.engine.rows import Outcome
from loadgen.report.charts import (
    Bar,
    Bars,
    Chart,
    Series,
    colour_of,
    peak_words,
    round_step,
    with_gaps,
)
from loadgen.results.questions import read_questions
from loadgen.results.units import Unit, in_words
from loadgen.results.vocabulary import MEASURED, limit_of
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from loadgen.report.charts import Look, Point
    from loadgen.results.results import Results

    Drawn = Chart | Bars

QUESTIONS = read_questions(Path(__file__).with_name("page.sql"))
OUTCOMES: dict[str, str] = {
    Outcome.ANSWERED: "good",
    Outcome.REFUSED: "bad",
    Outcome.WRONG: "c3",
    Outcome.TIMEOUT: "c4",
    Outcome.DISCONNECTED: "c5",
    Outcome.UNREACHABLE: "soft",
}
"""Colours of outcomes, in the order of the stacked areas."""
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
"""Operations in words, in the plural; other operations keep their name."""
_BUCKETS, _MOMENTS = 60, 200
_MOST_LINES, _MOST_BARS, _MOST_MARKS = 8, 12, 12


def title_of(run: Results) -> str:
    """Return the title of a run or, if it has none, its name."""
    return str(run.run.get("title") or "").rstrip(".") or str(run.run["run"])


def labels_of(runs: Sequence[Results]) -> list[str]:
    """Return a different label for each run: its title, or its name if titles are equal.

    Runs that have equal names, because they are in different folders, are numbered.
    """
    titles = [title_of(run) for run in runs]
    names = [
        str(run.run["run"]) if titles.count(title) > 1 else title
        for run, title in zip(runs, titles, strict=True)
    ]
    return [
        f"{name} ({names[:number].count(name) + 1})" if names.count(name) > 1 else name
        for number, name in enumerate(names)
    ]


class _Line(NamedTuple):
    """The query rows that make up one line of a chart, about a group, an operation or a run.

    Attributes:
        run: The number of the run.
        place: The number of the line among the run's lines in the chart.
        label: The label of the run; empty if only one run is drawn.
    """

    run: int
    place: int
    label: str
    name: str
    rows: Sequence[dict[str, Any]]

    @property
    def total(self) -> int:
        """The number of requests or clients that the line's rows count."""
        return int(self.rows[0].get("total", 0))

    @property
    def points(self) -> list[Point]:
        return [(row["x"], row["y"]) for row in self.rows]

    def series(
        self, look: Look, words: str, colour: str = "", points: Sequence[Point] | None = None
    ) -> Series:
        """Return the line as a series of a chart.

        The line has the colour of its run or, if there is only one run, a colour of its own.
        """
        name = ", ".join(filter(None, (self.label, self.name)))
        own = colour or colour_of(self.run if self.label else self.place)
        shown = self.points if points is None else points
        return Series(name, shown, look, own, words, self.run + self.place)


def _lines(runs: Sequence[Results], question: str, **parameters: Any) -> dict[str, list[_Line]]:  # noqa: ANN401
    """Query the lines of all charts of one kind, for each run; return the lines by chart.

    Charts that show the most requests come first.
    """
    alone, charts = len(runs) == 1, dict[str, list[_Line]]()
    for number, (run, label) in enumerate(zip(runs, labels_of(runs), strict=True)):
        rows = run.sql(
            QUESTIONS[question].sql, alone=alone, outcomes=[*map(str, OUTCOMES)], **parameters
        )
        for chart, same in groupby(rows, itemgetter("chart")):
            for place, (name, own) in enumerate(groupby(same, itemgetter("line"))):
                line = _Line(number, place, "" if alone else label, name, list(own))
                charts.setdefault(chart, []).append(line)
    order = sorted(charts, key=lambda chart: (-sum(each.total for each in charts[chart]), chart))
    return {chart: charts[chart] for chart in order}


def requests(runs: Sequence[Results]) -> Iterator[Drawn]:
    """Yield, for each operation, a chart of the requests due in each second, by outcome."""
    width, alone = round_step(max(_end(runs) / _BUCKETS, 1e-3)), len(runs) == 1
    for operation, lines in _lines(runs, "requests", width=width).items():
        look: Look = "area" if alone else "step"
        series = [
            each.series(look, plural(each.total, "request"), OUTCOMES[each.name] if alone else "")
            for each in lines
        ]
        title = f"{_about(operation).capitalize()} a second, by when they were due"
        # Upper areas are drawn first.
        drawn = series[::-1] if alone else series
        chart = Chart(title, drawn, Unit.RATE, y_title="requests a second", key=operation)
        yield _over_time(runs, chart)


def each_request(runs: Sequence[Results]) -> Iterator[Drawn]:
    """Yield charts with a dot for each request, at its due time and its duration.

    Of many requests only the slowest are drawn.

    Answered requests are solid dots and others are rings, so that colour is not the only
    difference.
    """
    width = _end(runs) / _MOMENTS or 1.0
    for operation, lines in _lines(runs, "each", width=width).items():
        for (number, label), same in groupby(lines, lambda line: (line.run, line.label)):
            series = []
            for each in same:
                look: Look = "dots" if each.name == Outcome.ANSWERED else "rings"
                words = plural(each.total, "request")
                series.append(Series(each.name, each.points, look, OUTCOMES[each.name], words))
            title = f"{label}: {_about(operation)}" if label else _about(operation).capitalize()
            chart = Chart(
                f"{title}, until they ended", series, Unit.SECONDS, key=operation, log=True,
                span=(0.0, _end(runs)), x_title="when it was due, since the start",
                y_title="time from when it was due until it ended",
            )  # fmt: skip
            yield _over_time([runs[number]], chart)


def distribution(runs: Sequence[Results]) -> Iterator[Drawn]:
    """Yield, for each operation, a chart of response times by percentile.

    A chart has a line for each group or, if there are several runs, for each run.

    A request without an answer has an infinite time, at which the line ends.
    """
    question = "by-group-operation" if len(runs) == 1 else "by-operation"
    p99 = [{row["part"]: row["p99"] for row in run.query(question)} for run in runs]
    for operation, lines in _lines(runs, "distribution").items():
        series = []
        for each in lines[:_MOST_LINES]:
            told, part = each.rows[0], f"{each.name}.{operation}" if each.name else operation
            points = [(0.0, told["least"]), *each.points]
            words = f"p99 {in_words(Unit.SECONDS, p99[each.run][part])}"
            if told["never"]:
                words = f"{in_words(Unit.SHARE, told['never'])} never"
            ended = [point for point in points if math.isfinite(point[1])]
            series.append(each.series("line", words, points=ended))
        title = f"Response of {_about(operation)}, by percentile"
        yield Chart(
            title, series, Unit.SECONDS, x="percentile", log=True, key=operation,
            x_title="share of requests", y_title="response time",
        )  # fmt: skip


def back(runs: Sequence[Results]) -> Iterator[Drawn]:
    """Yield a chart of the number of each group's clients that had been served, over time."""
    found = _lines(runs, "back").get("back", [])
    if len(found) > _MOST_LINES:
        found = [each for each in found if each.rows[0]["discovers"]]
    series, limits = [], {}
    for each in found:
        clients = each.rows[0]["clients"]
        points = [(0.0, 0.0), *each.points, (runs[each.run].ended, float(each.total))]
        words = f"{each.total:,} of {plural(clients, 'client')}"
        series.append(each.series("step", words, points=points))
        if each.total < clients:
            limits[float(clients)] = plural(clients, "client")
    title = "Clients that were back: had been served completely"
    if series:
        chart = Chart(title, series, limits=[*limits.items()], y_title="clients")
        yield _over_time(runs, chart)


def servers(runs: Sequence[Results]) -> Iterator[Drawn]:
    """Yield charts of the servers' memory and other metrics over time, with their limits.

    A line has a gap while its server did not answer.
    """
    told = _lines(runs, "servers")
    told |= _lines(runs, "over-idle") if len(runs) > 1 else {}
    shown = {
        "over-idle": ("Memory of all servers together, over idle", Unit.BYTES, ""),
        **MEASURED,
        "cpu.seconds": ("Cores in use", Unit.NUMBER, "cores"),
    }
    for figure, (title, unit, noun) in shown.items():
        lines = told.get(figure, [])
        series = [
            each.series("line", peak_words(each.points, unit, noun), points=with_gaps(each.points))
            for each in lines
        ]
        limits = {y for each in told.get(limit_of(figure), []) for _, y in each.points if y > 0}
        dashed = [(y, f"limit {in_words(unit, y, noun)}") for y in sorted(limits)]
        if any(y for each in lines for _, y in each.points) or (lines and figure == "over-idle"):
            axis = noun or "memory"
            chart = Chart(title, series, unit, limits=dashed, y_title=axis, key=figure)
            yield _over_time(runs, chart)


def outcomes(runs: Sequence[Results]) -> Iterator[Drawn]:
    """Yield a chart of bars with the requests' outcomes, one bar for each group or each run."""
    bars = []
    for run, label in zip(runs, labels_of(runs), strict=True):
        for row in run.query("by-group" if len(runs) == 1 else "all"):
            told = [each for each in OUTCOMES if row[each]]
            words = ", ".join(f"{row[each]:,} {each}" for each in told)
            words += f" of {plural(row['requests'], 'request')}"
            name = row["part"] if len(runs) == 1 else label
            bars.append(Bar(name, [(row[each], OUTCOMES[each]) for each in told], words))
    if bars:
        yield Bars("What became of requests", bars[:_MOST_BARS])


CHARTS: dict[str, Callable[[Sequence[Results]], Iterator[Drawn]]] = {
    "requests": requests,
    "each": each_request,
    "outcomes": outcomes,
    "distribution": distribution,
    "back": back,
    "servers": servers,
}
"""Every kind of chart by name."""


# -- common parts -------------------------------------------------------------------------------


def _about(operation: str) -> str:
    return ABOUT.get(operation, operation)


def _end(runs: Sequence[Results]) -> float:
    return max(run.ended for run in runs) or 1.0


def _over_time(runs: Sequence[Results], chart: Chart) -> Chart:
    """Return a chart over the runs' time, on which phases and shocks are marked."""
    end, phases, at = _end(runs), runs[0].document.get("phases") or {}, 0.0
    bands = []
    for name in ("warm_up", "measure", "hold", "drain"):
        until = at + (phases.get(name) or 0.0)
        if name != "measure" and at < min(until, end):
            bands.append((at, until, name.replace("_", "-")))
        at = until
    marks: dict[tuple[float, str], None] = {}
    for shock in (each for run in runs for each in run.run.get("shocks") or ()):
        marks[shock["at"], str(shock["what"])] = None
        ready = shock.get("ready_seconds")
        if ready is not None and ready > shock["at"] + 0.01 * end:
            marks[ready, "ready"] = None
    x_title = chart.x_title or "time since the start"
    x_title += ", with the warm-up" if phases.get("warm_up") else ""
    span, shown = chart.span or (0.0, end), [*marks][:_MOST_MARKS]
    return replace(chart, span=span, x_title=x_title, bands=bands, marks=shown)


def sweep_chart(
    title: str, along: str, lines: Iterable[tuple[str, Sequence[tuple[float, Sequence[float]]]]]
) -> Chart:
    """Return the chart of a sweep: a figure's median and range for each value of a setting.

    Args:
        title: The name of the figure.
        along: The ``--set`` path of the setting on the horizontal axis.
        lines: For each combination of the other settings: its name, and each value on the
            horizontal axis with the measurements made there.
    """
    series = []
    for number, (name, measured) in enumerate(lines):
        told = [(x, sorted(values)) for x, values in sorted(measured) if values]
        points = [(x, values[(len(values) - 1) // 2]) for x, values in told]
        between = [(x, values[0], values[-1]) for x, values in told]
        series.append(Series(name, points, colour=colour_of(number), dash=number, between=between))
    return Chart(title, series, Unit.SECONDS, x=Unit.NUMBER, x_title=along)
