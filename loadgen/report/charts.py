"""Descriptions of charts: what :mod:`loadgen.report.drawing` makes SVG of.

What a chart shows is a :class:`Chart` (lines, areas and dots over two axes) or :class:`Bars`.
Colours are CSS classes: one style sheet makes them light, dark and print.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Literal

from loadgen.results.units import Unit, in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Point = tuple[float, float]
Look = Literal["line", "step", "area", "dots", "rings"]

HEIGHT = 270
_AROUND, _LATE = 4, 4
COLOURS = 6
"""Colours of series; further ones begin again, with other dashes."""


@dataclass(frozen=True)
class Series:
    """One line, area or cloud of dots; where a point is not finite there is a gap.

    Attributes:
        colour: A class of the style sheet: ``c0`` to ``c5``, ``good``, ``bad``, ``soft``, ``ink``.
        words: Behind its name in the legend: a peak, a count.
        dash: Which of the dashes.
        between: A band around it: x, lowest, highest.
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
    """Series over two axes.

    Attributes:
        x: Unit of the horizontal axis; ``percentile`` is the scale of HdrHistogram's plots, where
            x is ``-log10(1 - share)``.
        limits: Values with what they are.
        bands: Spans of x that are shaded, with what they are.
        marks: Moments at which something happened, and what.
        span: Where the horizontal axis begins and ends at least.
        x_title, y_title: What stands along each axis, with its unit where its labels have none.
        key: What tells it from others of its kind.
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
    height: int = HEIGHT
    key: str = ""


@dataclass(frozen=True)
class Bar:
    """A bar: parts with a value and a colour, beside each other.

    Attributes:
        words: Below its name.
    """

    name: str
    parts: Sequence[tuple[float, str]]
    words: str = ""


@dataclass(frozen=True)
class Bars:
    """Horizontal bars with a common scale."""

    title: str
    bars: Sequence[Bar]
    key: str = ""


def colour_of(number: int) -> str:
    """Return the class that colours the series of so many."""
    return f"c{number % COLOURS}"


def thin(points: Sequence[Point], limit: int) -> list[Point]:
    """Return about so many points, the lowest and the highest of each stretch among them.

    A peak that lasted one sample stays visible, which a plain stride would lose.
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
    """Return the parts of a line between its gaps."""
    parts = groupby(points, key=lambda point: all(map(math.isfinite, point)))
    return [list(part) for whole, part in parts if whole]


def with_gaps(points: Sequence[Point]) -> list[Point]:
    """Return points with a gap wherever the next one came late: by four of the steps around it."""
    steps = [later[0] - earlier[0] for earlier, later in pairwise(points)]
    found = list(points[:1])
    for number, (step, point) in enumerate(zip(steps, points[1:], strict=True)):
        around = steps[max(0, number - _AROUND) : number + _AROUND + 1]
        if step > _LATE * statistics.median_low(around):
            found.append((point[0] - step / 2, math.nan))
        found.append(point)
    return found


def peak_words(points: Iterable[Point], unit: Unit, noun: str = "") -> str:
    """Return the highest value in words, for a legend."""
    found = [y for _, y in points if math.isfinite(y)]
    return f"at most {in_words(unit, max(found), noun)}" if found else "nothing"
