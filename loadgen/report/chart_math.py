"""The arithmetic of charts: axes, thinning, running counts, percentiles, buckets; all pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.results.latency import nearest_rank

if TYPE_CHECKING:
    from collections.abc import Sequence

Point = tuple[float, float]

MOST_LABELS = 6
"""Steps of an axis whose labels stand side by side: so many have room on a phone."""
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_STEP_WITHOUT_LABEL = 2.5


@dataclass(frozen=True)
class Axis:
    """One axis of a chart: its range and where its labelled lines are."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """Return a value's place on the axis, 0 at its low end and 1 at its high end."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def nice_axis(high: float, *, low: float = 0.0, ticks: int = 5, unit: float = 1.0) -> Axis:
    """Return an axis that ends at or just above ``high``, with round steps.

    Args:
        high: Largest value shown.
        low: Smallest value shown; the axis begins exactly there.
        ticks: About how many labelled lines.
        unit: What counts as one in a round number (1 MB rather than 1,000,000 bytes).
    """
    span = max(high - min(low, 0.0), 1e-9) / unit
    step = round_step(span / max(1, ticks))
    count = math.ceil(round(high / unit / step, 9)) or 1
    marks = tuple(index * step * unit for index in range(count + 1))
    return Axis(low=low, high=max(marks[-1], low + 1e-9), ticks=marks)


def round_step(at_least: float) -> float:
    """Return the smallest of 1, 2, 2.5, 5 times a power of ten that is not below ``at_least``.

    2.5 itself is left out: rounded for a label, its multiples would read 2, 5, 8.
    """
    power = 10.0 ** math.floor(math.log10(at_least))
    steps = (step * power for step in _STEPS if step * power >= at_least * (1 - 1e-9))
    return next(step for step in steps if step != _STEP_WITHOUT_LABEL)


def thin(points: Sequence[Point], limit: int) -> list[Point]:
    """Return about ``limit`` points of a curve, each bucket's lowest and highest among them.

    A peak that lasted one sample stays visible, which a plain stride would lose.
    """
    if len(points) <= limit:
        return list(points)
    size = math.ceil(len(points) / max(1, limit // 2))
    kept: list[Point] = []
    for begin in range(0, len(points), size):
        bucket = points[begin : begin + size]
        extremes = {min(bucket, key=lambda p: p[1]), max(bucket, key=lambda p: p[1])}
        kept.extend(sorted(extremes))
    return kept


def growth(points: Sequence[Point], over: float) -> list[Point]:
    """Return how fast a total grew, a second, over about so long before each point."""
    found: list[Point] = []
    first = 0
    for at, value in points[1:]:
        while points[first + 1][0] <= at - over:
            first += 1
        before, then = points[first]
        if at > before:
            found.append((at, (value - then) / (at - before)))
    return found


def running_count(times: Sequence[float], end: float, limit: int) -> list[Point]:
    """Count the events that had happened by each moment, from sorted ``times``, up to ``end``."""
    if not times:
        return []
    steps = [0.0] + [end * index / limit for index in range(1, limit)] + [end]
    return [(at, float(bisect_right(times, at))) for at in steps]


def percentile_curve(latencies: Sequence[float], limit: int = 200) -> list[Point]:
    """Return (x, latency), x = -log10(1 - fraction): equal room for 0, 90, 99, 99.9 percent.

    Args:
        latencies: Sorted, in seconds.
        limit: About how many points.

    Source: the scale of HdrHistogram's percentile plots.
    """
    count = len(latencies)
    if not count:
        return []
    end = math.log10(max(count, 2))
    points = []
    for index in range(limit + 1):
        x = end * index / limit
        points.append((x, nearest_rank(latencies, 1 - 10.0**-x)))
    points[-1] = (end, latencies[-1])
    return points


def percentile_position(fraction: float) -> float:
    """Return the x of a fraction (0.99) on the scale of ``percentile_curve``."""
    return -math.log10(1 - fraction)


def buckets(values: Sequence[float], width: float, count: int) -> list[int]:
    """Count the values in each of ``count`` buckets of ``width``; the last takes the rest."""
    counts = [0] * count
    for value in values:
        counts[min(count - 1, max(0, int(value / width)))] += 1
    return counts
