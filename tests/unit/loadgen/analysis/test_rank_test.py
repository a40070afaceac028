from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.analysis.rank_test import MOST_VALUES, adjusted, rank_test, repeats_needed

FIGURES = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=5)


def brute_force(first: list[float], second: list[float]) -> float:
    """Every way to deal the values to both sides, by the definition of U."""

    def u(ours: list[float], theirs: list[float]) -> float:
        return sum((a > b) + 0.5 * (a == b) for a in ours for b in theirs)

    pooled = [*first, *second]
    even = len(first) * len(second) / 2
    found = abs(u(first, second) - even)
    dealt = as_far = 0
    for places in combinations(range(len(pooled)), len(first)):
        ours = [pooled[place] for place in places]
        theirs = [value for place, value in enumerate(pooled) if place not in places]
        dealt += 1
        as_far += abs(u(ours, theirs) - even) >= found - 1e-9
    return as_far / dealt


@settings(max_examples=60)
@given(FIGURES, FIGURES)
def test_the_probability_is_that_of_all_ways_to_deal_the_values(first, second) -> None:
    assert rank_test(first, second) == pytest.approx(brute_force(first, second))
    assert rank_test(first, second) == pytest.approx(rank_test(second, first))


@pytest.mark.parametrize(
    ("first", "second", "probability"),
    [
        ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], 0.1),
        ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], 2 / 70),
        ([1.0, 3.0, 5.0], [2.0, 4.0, 6.0], 0.7),
        ([7.0] * 5, [7.0] * 5, 1.0),
    ],
)
def test_known_probabilities(first, second, probability: float) -> None:
    assert rank_test(first, second) == pytest.approx(probability)


def test_thirty_repeats_a_side_are_counted_and_more_are_refused() -> None:
    half = MOST_VALUES // 2
    assert rank_test([1.0] * half, [2.0] * half) < 1e-15
    with pytest.raises(ValueError, match="61 values are more than 60"):
        rank_test([1.0] * 31, [2.0] * 30)


def test_many_tests_share_the_chance_of_being_wrong() -> None:
    # The example of Benjamini and Hochberg's own procedure, in any order
    third = 0.04 * 4 / 3
    assert adjusted([0.04, 0.01, 0.03, 0.5]) == pytest.approx([third, 0.04, third, 0.5])
    assert adjusted([]) == []


@given(st.lists(st.floats(0.001, 1.0), min_size=1, max_size=20))
def test_sharing_keeps_the_order_and_never_flatters(probabilities: list[float]) -> None:
    found = adjusted(probabilities)
    for given_one, shared in zip(probabilities, found, strict=True):
        assert given_one - 1e-12 <= shared <= min(1.0, given_one * len(found)) + 1e-12
    by_given = sorted(zip(probabilities, found, strict=True))
    assert [shared for _, shared in by_given] == sorted(found)


@pytest.mark.parametrize(("tests", "repeats"), [(1, 4), (2, 5), (10, 6), (20, 6)])
def test_so_many_repeats_make_one_of_so_many_tests_significant(tests: int, repeats: int) -> None:
    assert repeats_needed(0.05, tests) == repeats
    ours, theirs = [float(n) for n in range(repeats)], [float(n + 100) for n in range(repeats)]
    assert rank_test(ours, theirs) * tests <= 0.05
    assert rank_test(ours[1:], theirs[1:]) * tests > 0.05
