"""Charts and their axes as plain data, which :mod:`loadgen.report.drawing` draws as SVG.

A chart is a :class:`Chart` (lines, areas and dots over two axes) or a :class:`Bars`. Colours are
CSS classes: a style sheet defines them for light and dark pages and for print.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from loadgen.results.units import Unit, in_words
from loadgen.units import MB_BYTES, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Point = tuple[float, float]
Look = Literal["line", "step", "area", "dots", "rings"]

WIDTH, HEIGHT = 560, 270
MOST_POINTS, MOST_DOTS = 400, 1_500
_AROUND, _LATE = 4, 4
COLOURS = 6
"""The number of colours; further series begin again, with other dashes."""


@dataclass(frozen=True)
class Series:
    """A line, area or cloud of dots in a chart; a point whose value is not finite is a gap.

    Attributes:
        colour: A class of the style sheet: ``c0`` to ``c5``, ``good``, ``bad``, ``soft``, ``ink``.
        words: Words after the name in the legend, such as a peak or a count.
        dash: Number of the dash pattern.
        between: A band around the line, as points with x, the lowest and the highest value.
    """

    name: str
    points: Sequence[Point]
    look: Look = "line"
    colour: str = "c0"
    words: str = ""
    dash: int = 0
    between: Sequence[tuple[float, float, float]] = ()


@dataclass(frozen=True)
class Chart:
    """A chart with one or several series over two axes.

    Attributes:
        x: Unit of the horizontal axis; ``percentile`` is the scale of HdrHistogram's plots, on
            which x is ``-log10(1 - share)``.
        limits: Values at which horizontal lines mark a limit, with their names.
        bands: Shaded spans of the horizontal axis, with their names.
        marks: Moments of events with their names.
        span: The smallest span of the horizontal axis, as its two ends.
        x_title, y_title: The title along each axis, with a unit if the labels have no unit.
        key: The name of the chart among charts of its kind.
    """

    title: str
    series: Sequence[Series]
    unit: Unit = Unit.COUNT
    x: Unit | Literal["percentile"] = Unit.SECONDS
    log: bool = False
    limits: Sequence[tuple[float, str]] = ()
    bands: Sequence[tuple[float, float, str]] = ()
    marks: Sequence[tuple[float, str]] = ()
    span: tuple[float, float] | None = None
    x_title: str = ""
    y_title: str = ""
    width: int = WIDTH
    height: int = HEIGHT
    key: str = ""

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The horizontal and the vertical axis of the chart.

        They span all points and bands. They also span limits, except those far above the points.
        """
        points = [p for each in self.series for p in each.points if math.isfinite(p[1])]
        xs = [*(x for x, _ in points), *(self.span or ())] or [0.0, 1.0]
        x_axis = (
            linear_axis(max(xs), self.x, low=min(xs), exact=True)
            if isinstance(self.x, Unit)
            else percentile_axis(max(xs))
        )
        ys = [y for _, y in points]
        ys += [high for each in self.series for _, _, high in each.between]
        peak = max(ys, default=0.0)
        # A limit far above all lines would press them onto the axis.
        ys += [limit for limit, _ in self.limits if not peak or limit <= 20 * peak]
        if self.log:
            return x_axis, logarithmic_axis([each for each in ys if each > 0], self.unit)
        top = max(ys, default=1.0) or 1.0
        return x_axis, linear_axis(top, self.unit, low=min([0.0, *ys]))


class Bar(NamedTuple):
    """A horizontal bar of colored parts beside each other, each with a value.

    Attributes:
        words: Text below the name of the bar.
    """

    name: str
    parts: Sequence[tuple[float, str]]
    words: str = ""


@dataclass(frozen=True)
class Bars:
    """A chart of horizontal bars on a common scale."""

    title: str
    bars: Sequence[Bar]
    width: int = WIDTH
    key: str = ""


def colour_of(number: int) -> str:
    """Return the CSS class with the color of a chart's series, by the series' number."""
    return f"c{number % COLOURS}"


def thin(points: Sequence[Point], limit: int) -> list[Point]:
    """Return about ``limit`` points of a line: the lowest and highest point of each stretch.

    So a peak of a single sample stays visible, which would be lost if every n-th point were kept.
    """
    if len(points) <= limit:
        return list(points)
    size = math.ceil(len(points) / max(1, limit // 2))
    kept: list[Point] = []
    for begin in range(0, len(points), size):
        stretch = points[begin : begin + size]
        kept += sorted({min(stretch, key=lambda p: p[1]), max(stretch, key=lambda p: p[1])})
    return kept


def stretches(points: Iterable[Point]) -> list[list[Point]]:
    """Return the pieces into which its gaps divide a line."""
    parts = groupby(points, key=lambda point: all(map(math.isfinite, point)))
    return [list(part) for whole, part in parts if whole]


def drawable(series: Series, *, log: bool) -> Series:
    """Return a series with only as many points as can be drawn, keeping its gaps.

    On a logarithmic axis, points that are not positive are left out.
    """
    parts = stretches(series.points)
    dotted = series.look in ("dots", "rings")
    if log and not dotted:  # zero has no place on a logarithmic axis
        parts = [[p for p in part if p[1] > 0] for part in parts]
    if series.look != "area":
        most = (MOST_DOTS if dotted else MOST_POINTS) / max(1, sum(map(len, parts)))
        parts = [thin(part, max(2, round(most * len(part)))) for part in parts]
    gap = [(math.nan, math.nan)] if series.look == "line" else []
    points = [point for part in parts if part for point in (*gap, *part)][len(gap) :]
    between = [each for each in series.between if all(map(math.isfinite, each))]
    return replace(series, points=points, between=between)


def with_gaps(points: Sequence[Point]) -> list[Point]:
    """Return a line's points, with a gap wherever no point follows within four usual steps."""
    steps = [later[0] - earlier[0] for earlier, later in pairwise(points)]
    found = list(points[:1])
    for number, (step, point) in enumerate(zip(steps, points[1:], strict=True)):
        around = steps[max(0, number - _AROUND) : number + _AROUND + 1]
        if step > _LATE * statistics.median_low(around):
            found.append((point[0] - step / 2, math.nan))
        found.append(point)
    return found


def peak_words(points: Iterable[Point], unit: Unit, noun: str = "") -> str:
    """Return words on the highest value of a line, for a chart's legend."""
    found = [y for _, y in points if math.isfinite(y)]
    return f"at most {in_words(unit, max(found), noun)}" if found else "nothing"


# -- axes -----------------------------------------------------------------------------------------

_TICKS = 5
_STEPS = (1.0, 2.0, 5.0, 10.0)
_TIMES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
_PERCENTILES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


class Axis(NamedTuple):
    """The axis of a chart: the values at its two ends, and its labels."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Return a value's position on the axis, from 0 at the low end to 1 at the high end."""
        low, high = self.low, self.high
        if self.log:
            value, low, high = (math.log10(max(each, 1e-12)) for each in (value, low, high))
        return min(1.0, max(0.0, (value - low) / (high - low)))


def linear_axis(high: float, unit: Unit, *, low: float = 0.0, exact: bool = False) -> Axis:
    """Return a linear axis whose labels are round numbers.

    The axis ends at labels, unless its ends are to be ``exact``.
    """
    one = MB_BYTES if unit is Unit.BYTES and high >= MB_BYTES else 1.0
    step = round_step(max(high - low, 1e-9) / one / _TICKS) * one
    if unit is Unit.COUNT:
        step = max(1.0, step)
    first, last = math.ceil(round(low / step, 9)), math.floor(round(high / step, 9))
    if not exact:
        first, last = math.floor(round(low / step, 9)), math.ceil(round(high / step, 9))
        low, high = first * step, max(last, first + 1) * step
    ticks = tuple((n * step, tick_label(n * step, unit)) for n in range(first, last + 1))
    return Axis(low, high if high > low else low + 1.0, ticks or ((low, tick_label(low, unit)),))


def logarithmic_axis(values: Sequence[float], unit: Unit) -> Axis:
    """Return a logarithmic axis that spans positive values, with at most six powers of ten."""
    top = math.ceil(round(math.log10(max(values, default=1.0)), 9))
    bottom = math.floor(round(math.log10(min(values, default=0.1)), 9))
    bottom = max(min(bottom, top - 1), top - 6)
    ticks = tuple((10.0**n, tick_label(10.0**n, unit)) for n in range(bottom, top + 1))
    return Axis(10.0**bottom, 10.0**top, ticks, log=True)


def percentile_axis(high: float) -> Axis:
    """Return an axis of percentiles, with equal distances between 0, 90, 99 and 99.9 %.

    Source: the scale of HdrHistogram's percentile plots.
    """
    high = max(high, 1.0)
    found = [(-math.log10(1 - each), f"{each * 100:.10g} %") for each in _PERCENTILES]
    return Axis(0.0, high, tuple(each for each in found if each[0] <= high))


def round_step(at_least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, ... that is at least ``at_least``.

    Smaller numbers of this kind, such as 0.1, 0.2 and 0.5, are included.
    """
    power = 10.0 ** math.floor(math.log10(at_least))
    return next(step * power for step in _STEPS if step * power >= at_least * (1 - 1e-9))


def tick_label(value: float, unit: Unit) -> str:
    """Return the shortest text of a round value, for a label on an axis."""
    if unit is Unit.SHARE:
        return f"{value * 100:.4g} %"
    if not value:
        return "0"
    if unit is Unit.SECONDS:
        name = next((each for each, size in _TIMES.items() if abs(value) >= size), "µs")
        return f"{value / _TIMES[name]:,.10g} {name}"
    if unit is Unit.BYTES:
        return f"{value / MB_BYTES:,.4g} MB" if value >= MB_BYTES / 10 else format_bytes(value)
    return f"{value:,.10g}{'/s' if unit is Unit.RATE else ''}"
