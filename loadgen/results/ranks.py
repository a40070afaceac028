"""Tests of few figures by their ranks alone, exact: they are not normal, and some are infinite."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations_with_replacement, product
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


def signed_rank_test(differences: Sequence[float]) -> float:
    """Return the probability that pairs which do not differ look so different (Wilcoxon)."""
    apart = sorted(abs(one) for one in differences if one)
    ranks = _doubled_ranks(apart)
    everything, up = (
        sum(map(ranks.__getitem__, apart)),
        sum(ranks[one] for one in differences if one > 0),
    )
    ways = _sums([ranks[one] for one in apart])
    far = abs(2 * up - everything)
    as_far = sum(count for total, count in ways.items() if abs(2 * total - everything) >= far)
    return float(as_far / 2 ** len(apart))


def middle_interval(differences: Sequence[float]) -> tuple[float, float] | None:
    """Return where the middle of pairs' differences lies, 90 %; None of fewer than five pairs.

    As of :func:`shift_interval`, of the means of every two differences and of each with itself.
    """
    if len(differences) < FEWEST_REPEATS:
        return None
    ways = _sums(range(1, len(differences) + 1))
    allowed, left_out = LEVEL * 2 ** len(differences), 0
    while (allowed := allowed - ways[left_out]) >= 0:
        left_out += 1
    every_two = combinations_with_replacement(differences, 2)
    means = sorted(0.0 if a == -b else (a + b) / 2 for a, b in every_two)
    return means[left_out - 1], means[-left_out]


def _sums(ranks: Iterable[int]) -> Counter[int]:
    """Count the ways to choose any of the ranks, by their sum."""
    ways = Counter({0: 1})
    for rank in ranks:
        ways.update({total + rank: count for total, count in ways.items()})
    return ways


def adjusted(probabilities: Sequence[float]) -> list[float]:
    """Return probabilities that many tests share (Benjamini and Hochberg), in the same order."""
    count = len(probabilities)
    order = sorted(range(count), key=lambda index: probabilities[index], reverse=True)
    found, least = [1.0] * count, 1.0
    for place, index in enumerate(order):
        least = min(least, probabilities[index] * count / (count - place))
        found[index] = least
    return found
