"""Tests of few figures by their ranks alone, exact: they are not normal, and some are infinite.

Of pairs, the differences are looked at: so few signs and ranks would show nothing where many
figures share a level, however far apart all pairs are.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LEVEL = 0.05
"""The probability with which equal runs may look so different, and unlike ones so alike."""
FEWEST_REPEATS = 5


def rank_test(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided probability that equal sides differ by so much (Mann and Whitney)."""
    pooled = sorted([*first, *second])
    ranks = _doubled_ranks(pooled)
    found = sum(ranks[value] for value in first)
    even = len(first) * (len(pooled) + 1)
    ways = _ways([ranks[value] for value in pooled], len(first))
    as_far = sum(count for total, count in ways.items() if abs(total - even) >= abs(found - even))
    return as_far / math.comb(len(pooled), len(first))


def _doubled_ranks(ordered: Sequence[float]) -> dict[float, int]:
    """Return twice the rank of each value; equal ones share the middle of theirs."""
    ranks, place = {}, 1
    for value, count in Counter(ordered).items():
        ranks[value] = 2 * place + count - 1
        place += count
    return ranks


def _ways(ranks: Iterable[int], chosen: int) -> Counter[int]:
    """Count the ways to choose so many of the ranks, by their sum."""
    ways: list[Counter[int]] = [Counter({0: 1}), *(Counter() for _ in range(chosen))]
    for rank in ranks:
        for size in range(chosen, 0, -1):
            for total, count in ways[size - 1].items():
                ways[size][total + rank] += count
    return ways[chosen]


def shift_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float] | None:
    """Return how far the second side lies from the first, 90 %; None of fewer than five repeats.

    Each end is an order statistic of the differences of all pairs, and is passed with 5 % at most.
    """
    if min(len(first), len(second)) < FEWEST_REPEATS:
        return None
    ways = _ways(range(1, len(first) + len(second) + 1), len(first))
    smallest = len(first) * (len(first) + 1) // 2
    allowed, left_out = LEVEL * sum(ways.values()), 0
    while (allowed := allowed - ways[smallest + left_out]) >= 0:
        left_out += 1
    apart = sorted(0.0 if b == a else b - a for a, b in product(first, second))
    return apart[left_out - 1], apart[-left_out]


def paired_test(differences: Sequence[float]) -> float:
    """Return the two-sided probability that pairs which do not differ look so different.

    Student's test of the mean; where one of a pair never was, Wilcoxon's of signed ranks.
    """
    if not any(differences):
        return 1.0
    if not all(map(math.isfinite, differences)):
        return _signed_rank_test(differences)
    if len(differences) < 2:
        return 1.0
    spread = statistics.stdev(differences) / math.sqrt(len(differences))
    mean = statistics.fmean(differences)
    return _beyond(abs(mean) / spread, len(differences) - 1) if spread else 0.0


def mean_interval(differences: Sequence[float]) -> tuple[float, float] | None:
    """Return where the mean difference of pairs lies, 90 %; None of fewer than five pairs."""
    if len(differences) < FEWEST_REPEATS or not all(map(math.isfinite, differences)):
        return None
    low, high = 0.0, 10.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        wide = _beyond(middle, len(differences) - 1) < 2 * LEVEL
        low, high = (low, middle) if wide else (middle, high)
    reach = high * statistics.stdev(differences) / math.sqrt(len(differences))
    mean = statistics.fmean(differences)
    return mean - reach, mean + reach


def _beyond(t: float, freedom: int) -> float:
    """Return the probability of Student's distribution beyond ``t`` on either side."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    found = term if freedom > 1 else 0.0
    for even in range(3 if odd else 2, freedom - 1, 2):
        term *= math.cos(angle) ** 2 * (even - 1) / even
        found += term
    found *= math.sin(angle)
    return 1 - (2 / math.pi * (angle + found) if odd else found)


def _signed_rank_test(differences: Sequence[float]) -> float:
    apart = sorted(abs(one) for one in differences if one)
    ranks = _doubled_ranks(apart)
    everything = sum(ranks[one] for one in apart)
    up = sum(ranks[one] for one in differences if one > 0)
    ways = Counter({0: 1})
    for one in apart:
        ways.update({total + ranks[one]: count for total, count in ways.items()})
    far = abs(2 * up - everything)
    as_far = sum(count for total, count in ways.items() if abs(2 * total - everything) >= far)
    return float(as_far / 2 ** len(apart))


def adjusted(probabilities: Sequence[float]) -> list[float]:
    """Return probabilities that many tests share (Benjamini and Hochberg), in the same order."""
    count = len(probabilities)
    order = sorted(range(count), key=lambda index: probabilities[index], reverse=True)
    found, least = [1.0] * count, 1.0
    for place, index in enumerate(order):
        least = min(least, probabilities[index] * count / (count - place))
        found[index] = least
    return found
