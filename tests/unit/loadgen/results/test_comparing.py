"""Runs agree where intervals show agreement, not where a difference is unproven."""

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.errors import UsageError
from loadgen.results.comparing import (
    FinishedRun,
    Word,
    compare,
    finished_run,
    markdown_of,
)
from loadgen.results.ranks import adjusted, distance, paired_distance
from tests.support.runs.recorded_run import record_run, request

NEAR = (0.001, 0.0011, 0.0009, 0.001, 0.00105)


def run(title: str, p50: float | None, level: str = "fine", **said: Any) -> FinishedRun:
    total = {
        "answered": 100,
        "refused": 0,
        "wrong": 0,
        "timeout": 0,
        "disconnected": 0,
        "unreachable": 0,
    }
    summary = {
        "name": "s", "title": title, "verdict": {"level": level, "word": level}, "total": total,
        "reasons": [], "service": [], "back": [], "servers": {},
        "splits": {
            "by-group-operation": [
                {"part": "a.list", "requests": 1, "response_seconds": {"p50": p50, "p99": 9.9}}
            ]
        },
        **said,
    }  # fmt: skip
    return FinishedRun(title, {"document": {"name": title, "clients": []}}, summary)


def sides(first: Sequence[float | None], second: Sequence[float | None]) -> list[FinishedRun]:
    return [*(run("x", p50) for p50 in first), *(run("y", p50) for p50 in second)]


def word(first: Sequence[float | None], second: Sequence[float | None]) -> Word:
    (row,) = [r for r in compare(sides(first, second)).rows if r.figure == "a.list response p50"]
    assert row.differences[1] is not None
    return row.differences[1].word


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (NEAR, NEAR, Word.AGREE),
        (NEAR, [20 * value for value in NEAR], Word.DIFFER),
        # So few repeats prove no agreement, however close.
        (NEAR[:4], NEAR[:4], Word.OPEN),
        (NEAR[:3], [20 * value for value in NEAR[:3]], Word.OPEN),
        # Medians alike, repeats far apart: neither is shown.
        ((0.1, 0.3, 0.5, 0.7, 0.9), (0.1, 0.2, 0.5, 0.8, 0.9), Word.OPEN),
        # A shown difference within the margin is agreement all the same.
        ((1.0, 1.001, 1.002, 1.003, 1.004), (1.01, 1.011, 1.012, 1.013, 1.014), Word.AGREE),
        # Two sides that never recovered agree; never and a time differ.
        ([None] * 5, [None] * 5, Word.AGREE),
        (NEAR, [None] * 5, Word.DIFFER),
    ],
)
def test_two_groups_of_runs_agree_if_the_interval_lies_within_the_margin(
    first, second, expected
) -> None:
    assert word(first, second) is expected


def test_figures_that_are_zero_on_both_sides_do_not_count_as_agreement() -> None:
    found = compare(sides(NEAR, NEAR))
    figures = [r.figure for r in found.rows if r.differences[1].word is not Word.UNJUDGED]
    assert figures == ["answered", "a.list response p50"]  # Of one request p99 is the slowest.
    assert found.agreed() == (2, 2)
    assert "They agree in 2 of 2 figures" in markdown_of(found)
    assert "needs 5 repeats" in markdown_of(compare(sides(NEAR[:4], NEAR)))


def test_unreliable_and_wrong_runs_are_excluded_and_reported() -> None:
    found = compare([*sides(NEAR, NEAR), run("x", 99.0, "unreliable"), run("y", 1.0, "wrong")])
    assert [len(runs) for runs in found.groups.values()] == [5, 5]
    assert found.doubts == ["x: unreliable", "y: wrong"]
    assert "Left out: x: unreliable." in markdown_of(found)


def test_a_refusal_reason_missing_from_a_run_counts_as_zero() -> None:
    full = {"reasons": [{"outcome": "refused", "reason": "full", "requests": 7}]}
    runs = [*(run("x", 1.0) for _ in range(5)), *(run("y", 1.0, **full) for _ in range(5))]
    (row,) = [r for r in compare(runs).rows if r.figure == "refused: full"]
    assert [side.median for side in row.sides] == [0, 7]


@pytest.mark.parametrize(
    ("runs", "options", "sentence"),
    [
        ([run("x", 1.0)], {}, "nothing to compare: name runs of two labels"),
        ([run("x", 1.0), run("y", 1.0, "wrong")], {}, "beside 1 run that cannot be relied on"),
        ([run("x", 1.0), run("y", 1.0)], {"baseline": "z"}, "'z' is no label of these runs: x, y"),
        (
            [run("x", 1.0, "wrong"), run("y", 1.0), run("z", 1.0)],
            {},
            "the baseline x has no run that can be relied on: name another",
        ),
        ([run("x", 1.0)] * 31 + [run("y", 1.0)] * 31, {}, "more than 60 runs"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(runs, options, sentence) -> None:
    with pytest.raises(UsageError, match=sentence):
        compare(runs, **options)


def test_runs_of_different_loads_are_compared_only_by_force() -> None:
    other = FinishedRun("y", {"document": {"clients": [1], "servers": 2}}, run("y", 1.0).summary)
    with pytest.raises(UsageError, match="not alike in clients: compare"):
        compare([run("x", 1.0), other])
    assert compare([run("x", 1.0), other], force=True).unlike == ["clients"]
    assert list(compare([run("x", 1.0), other], "y", force=True).groups) == ["y", "x"]


@pytest.mark.parametrize(
    ("baseline", "first"), [(None, "key=b"), ("a", "key=a"), ("key=a", "key=a")]
)
def test_the_first_named_run_is_the_baseline_by_default(baseline: str | None, first: str) -> None:
    found = compare([run("key=b", 1.0), run("key=a", 1.0)], baseline)
    assert next(iter(found.groups)) == first
    assert [side.label for side in found.rows[0].sides] == list(found.groups)


def test_the_comparison_lists_the_runs_of_each_label() -> None:
    runs = [run(f"key={name}", 1.0)._replace(place=f"out/{name}-1") for name in "ab"]
    assert "\n- a: a-1\n- b: b-1\n" in markdown_of(compare(runs))


def test_runs_are_compared_by_their_tables_and_not_by_their_summary(tmp_path: Path) -> None:
    directory = record_run(tmp_path, [request()])
    (tmp_path / "summary.json").write_text("{}")
    found = finished_run(directory)
    assert (found.label, found.doubt, found.summary["total"]["answered"]) == ("scenario", None, 1)


def seeded(title: str, times: Sequence[float], seeds: Sequence[int]) -> list[FinishedRun]:
    """Return runs in virtual time, one per seed."""
    made = []
    for p50, seed in zip(times, seeds, strict=True):
        one = run(title, p50)
        document = {"name": title, "clients": [], "seed": seed}
        place = f"{title}-{seed}"
        made.append(one._replace(place=place, run={"document": document, "place": "virtual"}))
    return made


def test_runs_in_virtual_time_are_compared_in_pairs_of_the_same_seed() -> None:
    # Seeds matter much, the change a little, but always in one direction
    seeds = range(1, 7)
    first = [1.0 * seed for seed in seeds]
    second = [value + 0.3 + 0.01 * seed for value, seed in zip(first, seeds, strict=True)]
    paired = compare([*seeded("x", first, seeds), *reversed(seeded("y", second, seeds))])
    unpaired = compare(sides(first, second))
    words = [
        next(row for row in found.rows if row.figure == "a.list response p50").differences[1].word
        for found in (paired, unpaired)
    ]
    assert words == [Word.DIFFER, Word.OPEN]
    assert paired.paired
    assert not unpaired.paired
    assert "Paired by seed (1, 2, 3, 4, 5, 6)" in markdown_of(paired)


def test_runs_of_repeated_or_unmatched_seeds_are_excluded_and_reported() -> None:
    first = [*seeded("x", [1.0, 2.0], [1, 2]), *seeded("x", [1.0], [1])]
    first[-1] = first[-1]._replace(place="again")
    found = compare([*first, *seeded("y", [1.0, 2.0, 3.0], [1, 2, 3])])
    assert [[each.place for each in runs] for runs in found.groups.values()] == [
        ["x-1", "x-2"],
        ["y-1", "y-2"],
    ]
    assert found.doubts == [
        f"{place} in virtual time must occur exactly once under each label"
        for place in ("again: seed 1", "y-3: seed 3")
    ]


def test_runs_over_sockets_are_not_paired_by_seed() -> None:
    runs = [*seeded("x", NEAR, range(5)), *seeded("y", NEAR, range(5))]
    runs[0] = runs[0]._replace(run={**runs[0].run, "place": "processes"})
    assert not compare(runs).paired


@pytest.mark.parametrize(
    ("t", "freedom", "expected"),
    # From a table of Student's distribution.
    [(12.706, 1, 0.05), (2.920, 2, 0.1), (3.182, 3, 0.05), (2.571, 5, 0.05), (2.447, 6, 0.05)],
)
def test_pairs_are_judged_by_students_distribution(t: float, freedom: int, expected: float) -> None:
    # Pairs whose mean is t standard errors from zero
    count = freedom + 1
    spread = [1.0, -1.0] * (count // 2) + [0.0] * (count % 2)
    mean = t * stdev(spread) / math.sqrt(count)
    found, _ = pairs([mean + one for one in spread])
    assert found == pytest.approx(expected, rel=0.01)


def pairs(differences: list[float]) -> Any:
    """Return probability and interval of pairs with the given differences."""
    return paired_distance([0.0] * len(differences), differences)


def test_pairs_of_equal_differences_have_a_probability_of_zero_or_one() -> None:
    assert [pairs(each)[0] for each in ([0.0] * 6, [2.0], [2.0, 2.0])] == [1.0, 1.0, 0.0]


def test_pairs_with_infinite_values_are_compared_as_unpaired() -> None:
    for apart in ([math.inf] * 6, [math.inf, -math.inf, 0.0]):
        assert pairs(apart) == distance([0.0] * len(apart), apart)
    assert paired_distance([math.inf] * 5, [math.inf] * 5) == (1.0, (0.0, 0.0))


def test_the_interval_of_pairs_is_students_interval_of_their_mean_difference() -> None:
    assert pairs([1.0] * 4)[1] is None
    assert pairs([1.0] * 5)[1] == (1.0, 1.0)
    # 2.132 is Student's 95 % quantile of four degrees of freedom.
    reach = 2.132 * stdev([0.0, 1.0, 2.0, 3.0, 4.0]) / math.sqrt(5)
    found = pairs([0.0, 1.0, 2.0, 3.0, 4.0])[1]
    assert found == pytest.approx((2 - reach, 2 + reach), rel=1e-3)


@given(
    first=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    second=st.lists(st.integers(0, 5), min_size=1, max_size=4),
)
def test_the_rank_test_counts_every_possible_assignment_of_ranks(first, second) -> None:
    pooled = sorted(first + second)
    rank = {value: pooled.index(value) * 2 + pooled.count(value) + 1 for value in pooled}
    even = len(first) * (len(pooled) + 1)
    far = abs(sum(rank[value] for value in first) - even)
    ways = list(combinations([rank[value] for value in pooled], len(first)))
    expected = sum(abs(sum(way) - even) >= far for way in ways) / len(ways)
    assert distance(first, second)[0] == pytest.approx(expected)


def test_the_rank_interval_excludes_as_many_pairs_as_five_percent_allow() -> None:
    # Tables of the rank sum test: 4 for five against five, 27 for ten against ten.
    values = [float(n) for n in range(5)]
    _, found = distance(values, values)
    assert found == (sorted(b - a for a in values for b in values)[4], 2.0)
    ten = [float(2**n) for n in range(10)]
    apart = sorted(b - a for a in ten for b in ten)
    assert distance(ten, ten)[1] == (apart[27], apart[-28])
    assert distance(values, values[:4])[1] is None
    assert distance([math.inf] * 5, [math.inf] * 5)[1] == (0.0, 0.0)


def test_probabilities_are_adjusted_for_the_number_of_tests() -> None:
    assert adjusted([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
