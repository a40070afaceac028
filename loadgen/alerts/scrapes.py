"""What Prometheus would have scraped of servers, and functions of more than one scrape."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Labels = tuple[tuple[str, str], ...]
    Vector = dict[Labels, float]
    Points = list[tuple[float, float]]
    Page = Mapping[str, Vector]
    Matches = Callable[[Mapping[str, str]], bool]

NAME = "__name__"
_NEAR = 1.1
"""A series that begins or ends within so many of its steps of a range is taken to fill it."""


@dataclass(frozen=True)
class Scrapes:
    """Pages of all targets together, one after each interval; before and behind them all is quiet.

    A target that does not answer has no series in that page, as where Prometheus marks them stale.

    Attributes:
        every: Seconds from one to the next.
        pages: Series by the name of their metric; at least one page.
    """

    every: float
    pages: Sequence[Page]

    def instant(self, number: int, metric: str, matches: Matches | None = None) -> Vector:
        """Return the series of a page that a selector takes.

        The first page was seen ever before, and the last one ever after.
        """
        series = self.pages[min(max(number, 0), len(self.pages) - 1)].get(metric, {})
        return series if matches is None else {s: v for s, v in series.items() if matches(dict(s))}

    def window(
        self, number: int, seconds: float, metric: str, matches: Matches | None
    ) -> dict[Labels, Points]:
        """Return the points of each series in the time that ends with a page."""
        found: defaultdict[Labels, Points] = defaultdict(list)
        for back in range(math.ceil(seconds / self.every) - 1, -1, -1):
            for series, value in self.instant(number - back, metric, matches).items():
                found[series].append((-back * self.every, value))
        return found


def increase(points: Points, seconds: float) -> float | None:
    """Return how much a counter rose in a range that ends now, as Prometheus reckons it.

    It began again from 0 where it fell. What its points leave open at both ends is extrapolated:
    by half a step at most where they end early, and never below 0.
    """
    if len(points) < 2:
        return None
    (first, begin), (last, _) = points[0], points[-1]
    values = [value for _, value in points]
    rise = sum(b - a if b >= a else b for a, b in pairwise(values))
    spans, step = last - first, (last - first) / (len(points) - 1)
    before, behind = first + seconds, -last
    before = before if before < step * _NEAR else step / 2
    behind = behind if behind < step * _NEAR else step / 2
    if rise > 0 and begin >= 0:
        before = min(before, spans * begin / rise)
    return rise * (spans + before + behind) / spans


def rate(points: Points, seconds: float) -> float | None:
    """Return by how much a counter rose a second."""
    rise = increase(points, seconds)
    return None if rise is None else rise / seconds


def over_time(reckon: Callable[[list[float]], float]) -> Callable[[Points, float], float | None]:
    """Return a function of the values in a range."""
    return lambda points, seconds: reckon([value for _, value in points])
