"""The Mann-Whitney U test and the correction of Benjamini and Hochberg, for few repeats.

Figures of repeats are few and not normal: ranks alone are compared. The test is exact: it counts
all ways in which the ranks could have fallen, ties included.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Beyond so many values the counting would take seconds; nobody repeats a run that often.
MOST_VALUES = 60


def rank_test(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided probability that equal sides differ by so much.

    Args:
        first: Figures of one side, at least one.
        second: Those of the other.

    Raises:
        ValueError: They are more than ``MOST_VALUES``.
    """
    pooled = sorted([*first, *second])
    if len(pooled) > MOST_VALUES:
        raise ValueError(f"{len(pooled)} values are more than {MOST_VALUES}")
    ranks = _doubled_midranks(pooled)
    found = sum(ranks[value] for value in first)
    # Twice the rank sum that both sides share evenly.
    even = len(first) * (len(pooled) + 1)
    ways = _ways([ranks[value] for value in pooled], len(first))
    as_far = sum(count for total, count in ways.items() if abs(total - even) >= abs(found - even))
    return as_far / math.comb(len(pooled), len(first))


def _doubled_midranks(ordered: Sequence[float]) -> dict[float, int]:
    """Return twice the rank of each value; equal ones share the middle of theirs."""
    ranks, place = {}, 1
    for value, count in Counter(ordered).items():
        ranks[value] = 2 * place + count - 1
        place += count
    return ranks


def _ways(ranks: Sequence[int], chosen: int) -> Counter[int]:
    """Count the ways to choose so many of the ranks, by their sum."""
    ways: list[Counter[int]] = [Counter({0: 1}), *(Counter() for _ in range(chosen))]
    for rank in ranks:
        for size in range(chosen, 0, -1):
            for total, count in ways[size - 1].items():
                ways[size][total + rank] += count
    return ways[chosen]


def adjusted(probabilities: Sequence[float]) -> list[float]:
    """Return probabilities that many tests share (Benjamini and Hochberg), in the same order."""
    count = len(probabilities)
    order = sorted(range(count), key=lambda index: probabilities[index], reverse=True)
    found, least = [1.0] * count, 1.0
    for place, index in enumerate(order):
        least = min(least, probabilities[index] * count / (count - place))
        found[index] = least
    return found


def repeats_needed(level: float, tests: int = 1) -> int:
    """Return how many repeats each side needs before one of so many tests can be significant."""
    repeats = 1
    while 2 * tests / math.comb(2 * repeats, repeats) > level:
        repeats += 1
    return repeats
