"""The charts of a report: what each shows, of which process, in words an operator knows.

All charts over time share one time axis, from just before the clients start to the end of the
longest run; the two charts of a row share their y axis, so that broker and proxy compare at sight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.report.chart_math import (
    MOST_LABELS,
    Axis,
    buckets,
    growth,
    nice_axis,
    percentile_curve,
    percentile_position,
    round_step,
    running_count,
    thin,
)
from loadgen.report.charts import FORMATS, Bars, Curve, Panel, tick_label
from loadgen.report.figures import NOT_ACCOUNTED, NOT_MEASURED, SCRAPED
from loadgen.report.measures import MEASURES
from loadgen.results.summary import PROCESSES
from loadgen.units import MB_BYTES, format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.report.measures import Measure
    from loadgen.results.summary import ProcessMemory, Run, RunSummary

LEAD_SECONDS = 1.0
BUCKETS = 60
_GROWTH_SECONDS = 1.0
"""A total's growth is taken over so long: the kernel counts processor time in hundredths."""
_POINTS_PER_CURVE = 360
_LEAST_TOP = {"bytes": 4.0 * MB_BYTES, "count": 4.0, "cores": 1.0}
_PERCENTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)


@dataclass(frozen=True)
class Row:
    """Charts that stand side by side, with what they mean."""

    title: str
    meaning: str
    panels: Sequence[Panel]


def time_axis(runs: Sequence[Run]) -> Axis:
    """Return the one time axis of a report. Units: seconds since the clients' agreed start."""
    end = max((max(run.requests.finished_seconds, default=0.0) for run in runs), default=0.0)
    axis = nice_axis(max(end, 1.0), low=-LEAD_SECONDS, ticks=MOST_LABELS)
    return Axis(-LEAD_SECONDS, max(end * 1.03, axis.ticks[-2]), axis.ticks)


def time_rows(runs: Sequence[Run]) -> list[Row]:
    """Return all rows of charts over time that have anything to show."""
    axis = time_axis(runs)
    rows = [_measure_row(measure, runs, axis) for measure in MEASURES]
    return [row for row in rows if row.panels or row.meaning] + [_outcome_row(runs, axis)]


def time_labels(axis: Axis) -> list[tuple[float, str]]:
    """Return the labels of the time axis: round seconds."""
    return [(tick, tick_label("seconds", tick)) for tick in axis.ticks if tick <= axis.high]


def _measure_row(measure: Measure, runs: Sequence[Run], axis: Axis) -> Row:
    """Broker and proxy side by side on one y axis."""
    curves = {process: _curves(measure, runs, process, axis) for process in PROCESSES}
    limits = {process: _limits(measure, runs, process) for process in PROCESSES}
    values = [value for found in curves.values() for c in found for _, value in c.points]
    peak = _summary_peak(measure, runs)
    if not any(values) and not peak:
        return Row(measure.title, measure.nothing if values else "", ())
    # Air above the highest line leaves room for its letter and the limit's label.
    top = max([peak, *values, *(limit for found in limits.values() for limit in found)]) * 1.08
    unit = MB_BYTES if measure.unit == "bytes" else 1.0
    y = nice_axis(max(top, _LEAST_TOP[measure.unit]), ticks=4, unit=unit)
    panels = [
        Panel(
            key=f"{process}-{measure.key}",
            title=process.capitalize(),
            unit=measure.unit,
            x=axis,
            y=y,
            x_labels=time_labels(axis),
            curves=curves[process],
            limits=limits[process],
            description=f"{measure.title}, {process}, over time, one line per run",
        )
        for process in PROCESSES
        if curves[process]
    ]
    return Row(measure.title, measure.meaning, panels)


def _summary_peak(measure: Measure, runs: Sequence[Run]) -> float:
    """Return the highest peak in the runs' summaries, which scrapes may all have missed."""
    memories = [memory for run in runs for memory in run.summary.processes.values()]
    return max((measure.peak(memory) or 0.0 for memory in memories), default=0.0)


def _curves(measure: Measure, runs: Sequence[Run], process: str, axis: Axis) -> list[Curve]:
    curves = []
    for index, run in enumerate(runs):
        memory = run.summary.processes.get(process)
        series = run.series(process, measure.metric)
        if series is None:
            curves += [Curve(index, (), NOT_MEASURED)] * (memory is not None)
            continue
        if memory is not None and not measure.accounted(memory):
            curves.append(Curve(index, (), NOT_ACCOUNTED))
            continue
        base = measure.base(memory) if memory else 0.0
        base = series.values[0] if base is None else base
        rows = zip(series.at_seconds, series.values, strict=True)
        found = [(at, max(0.0, value - base)) for at, value in rows]
        found = growth(found, _GROWTH_SECONDS) if measure.rate else found
        points = [point for point in found if axis.low <= point[0] <= axis.high]
        words = _peak_words(measure, memory, points)
        curves.append(Curve(index, thin(points, _POINTS_PER_CURVE), words))
    return curves


def _peak_words(
    measure: Measure, memory: ProcessMemory | None, points: Sequence[tuple[float, float]]
) -> str:
    exact = measure.peak(memory) if memory else None
    if exact is not None:
        return f"peak {FORMATS[measure.unit](exact)}"
    highest = max((value for _, value in points), default=0.0)
    return f"{SCRAPED} {FORMATS[measure.unit](highest)}"


def _limits(measure: Measure, runs: Sequence[Run], process: str) -> list[float]:
    """Return each distinct limit of a process among the runs."""
    watched = [run.summary for run in runs if process in run.summary.processes]
    return sorted({limit for each in watched if (limit := measure.limit(each, process))})


def _outcome_row(runs: Sequence[Run], axis: Axis) -> Row:
    """Return how many clients had been answered, and how many refused, by each moment."""
    y = nice_axis(max(run.summary.requests for run in runs) * 1.08, ticks=5)
    each_once = all(run.summary.requests == run.summary.clients for run in runs)
    what = "Clients" if each_once else "Requests"
    panels = []
    for outcome in ("answered", "refused"):
        if outcome == "refused" and not any(outcome in run.requests.outcomes for run in runs):
            continue
        curves = []
        for index, run in enumerate(runs):
            times = run.requests.finish_times(outcome)
            end = max(run.requests.finished_seconds, default=0.0)
            words = f"{len(times):,} of {run.summary.requests:,}"
            curves.append(Curve(index, running_count(times, end, _POINTS_PER_CURVE), words))
        panels.append(
            Panel(
                key=f"clients-{outcome}",
                title=f"{what} {outcome}",
                unit="count",
                x=axis,
                y=y,
                x_labels=time_labels(axis),
                curves=curves,
                description=f"{what} {outcome} so far, one line per run",
            )
        )
    return Row("What the clients got", "How many had been answered or refused by then.", panels)


def percentile_panel(runs: Sequence[Run]) -> Panel | None:
    """Return the chart of all answered clients' latencies by percentile; None without answers."""
    found = [run.requests.latencies("answered") for run in runs]
    most, slowest = max(map(len, found)), max((v[-1] for v in found if v), default=0.0)
    if not most:
        return None
    curves = [
        Curve(index, percentile_curve(latencies), _latency_words(runs[index].summary))
        for index, latencies in enumerate(found)
    ]
    high = max(point[0] for curve in curves for point in curve.points)
    ticks = [percentile_position(p) for p in _PERCENTILES]
    labels = [
        (at, f"{p * 100:g} %") for at, p in zip(ticks, _PERCENTILES, strict=True) if at <= high
    ]
    return Panel(
        key="latency-percentiles",
        title="Slowest client among the fastest …",
        unit="seconds",
        x=Axis(0.0, max(high, 0.3), tuple(at for at, _ in labels)),
        y=nice_axis(slowest * 1.08, ticks=5),
        x_labels=labels,
        curves=curves,
        description="Latency by percentile, one line per run",
    )


def _latency_words(summary: RunSummary) -> str:
    if summary.latency_seconds is None:
        return "no answers"
    return f"median {format_seconds(summary.latency_seconds.p50)}"


def histograms(runs: Sequence[Run]) -> list[Bars]:
    """Return one histogram per run, all on one latency axis with equal buckets."""
    answered = [run.requests.latencies("answered") for run in runs]
    refused = [run.requests.latencies("refused") for run in runs]
    slowest = max((values[-1] for values in [*answered, *refused] if values), default=1.0)
    width = round_step(max(slowest, 0.001) / BUCKETS)
    count = int(slowest / width) + 1
    axis = nice_axis(count * width, ticks=MOST_LABELS)
    x = Axis(0.0, count * width, tuple(tick for tick in axis.ticks if tick <= count * width))
    bars = []
    for index, run in enumerate(runs):
        solid, hatched = (buckets(each[index], width, count) for each in (answered, refused))
        top = max(a + r for a, r in zip(solid, hatched, strict=True))
        bars.append(
            Bars(
                run=index,
                title=run.summary.label,
                x=x,
                y=nice_axis(max(top, 1), ticks=2),
                width=width,
                answered=solid,
                refused=hatched,
                note=f"{len(answered[index]):,} answered, {len(refused[index]):,} refused",
            )
        )
    return bars
