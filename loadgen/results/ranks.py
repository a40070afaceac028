"""Exact statistical tests of whether two small samples differ, mostly based on ranks.

The samples of figures are not normally distributed, and some values are infinite.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect, bisect_left
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Distance = tuple[float, tuple[float, float] | None]
    """Result of comparing two sides: probability of the difference if both were equal, and
    interval.

    The 90 % interval is of the second side's distance from the first; None for fewer than five
    repeats.
    """

LEVEL = 0.05
"""Probability at which equal runs are taken for different, or different runs for equal."""
FEWEST_REPEATS = 5


def distance(first: Sequence[float], second: Sequence[float]) -> Distance:
    """Compare two samples by Mann and Whitney's exact test; return probability and interval."""
    pooled = sorted([*first, *second])
    # Twice the rank of each value; equal values share the middle of their ranks.
    ranks = {value: bisect_left(pooled, value) + bisect(pooled, value) + 1 for value in pooled}
    found = sum(ranks[value] for value in first)
    even = len(first) * (len(pooled) + 1)
    ways = _ways([ranks[value] for value in pooled], len(first))
    as_far = sum(count for total, count in ways.items() if abs(total - even) >= abs(found - even))
    return as_far / math.comb(len(pooled), len(first)), _interval(first, second)


def _ways(ranks: Iterable[int], chosen: int) -> Counter[int]:
    """Count the ways to choose ``chosen`` of the ranks, for each sum that they can have."""
    ways: list[Counter[int]] = [Counter({0: 1}), *(Counter() for _ in range(chosen))]
    for rank in ranks:
        for size in range(chosen, 0, -1):
            for total, count in ways[size - 1].items():
                ways[size][total + rank] += count
    return ways[chosen]


def _interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float] | None:
    """Return Hodges and Lehmann's 90 % interval of the distance; None for fewer than five values.

    Both bounds are taken from the sorted differences of each value of one group to each of the
    other. The distance is beyond a bound with a probability of at most 5 %.
    """
    if min(len(first), len(second)) < FEWEST_REPEATS:
        return None
    ways = _ways(range(1, len(first) + len(second) + 1), len(first))
    smallest = len(first) * (len(first) + 1) // 2
    allowed, left_out = LEVEL * sum(ways.values()), 0
    while (allowed := allowed - ways[smallest + left_out]) >= 0:
        left_out += 1
    apart = sorted(_differences(product(first, second)))
    return apart[left_out - 1], apart[-left_out]


def _differences(pairs: Iterable[tuple[float, float]]) -> list[float]:
    """Return the second value minus the first for each pair; 0 if both are infinite."""
    return [0.0 if b == a else b - a for a, b in pairs]


def paired_distance(first: Sequence[float], second: Sequence[float]) -> Distance:
    """Compare paired samples by Student's t-test of the mean of their differences.

    Ranks of so few pairs could show no difference. Pairs with an infinite value have no mean, and
    are compared by :func:`distance`.
    """
    differences = _differences(zip(first, second, strict=True))
    if not all(map(math.isfinite, differences)):
        return distance(first, second)
    if (count := len(differences)) < 2:
        return 1.0, None
    mean, error = statistics.fmean(differences), statistics.stdev(differences) / math.sqrt(count)
    probability = _beyond(abs(mean) / error, count - 1) if error else float(not mean)
    if count < FEWEST_REPEATS:
        return probability, None
    grid = range(100_000)
    t = bisect_left(grid, -2 * LEVEL, key=lambda t: -_beyond(t / 10_000, count - 1)) / 10_000
    return probability, (mean - t * error, mean + t * error)


def _beyond(t: float, freedom: int) -> float:
    """Return the two-sided tail probability of Student's t-distribution beyond ``t``."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    found = term if freedom > 1 else 0.0
    for even in range(3 if odd else 2, freedom - 1, 2):
        term *= math.cos(angle) ** 2 * (even - 1) / even
        found += term
    found *= math.sin(angle)
    return 1 - (2 / math.pi * (angle + found) if odd else found)


def adjusted(probabilities: Sequence[float]) -> list[float]:
    """Adjust the probabilities of many tests by Benjamini and Hochberg, keeping their order."""
    count = len(probabilities)
    order = sorted(range(count), key=lambda index: probabilities[index], reverse=True)
    found, least = [1.0] * count, 1.0
    for place, index in enumerate(order):
        least = min(least, probabilities[index] * count / (count - place))
        found[index] = least
    return found
