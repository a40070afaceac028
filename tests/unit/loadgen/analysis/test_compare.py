from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.analysis.compare import Comparison, FinishedRun, compare
from loadgen.analysis.comparison_text import (
    difference_text,
    document_of,
    markdown_of,
    sentences,
    table_of,
)
from loadgen.analysis.rank_test import rank_test
from loadgen.errors import UsageError

PERCENTILES = ("p50", "p90", "p99", "p999", "p9999", "max")


def run(label: str, median: float = 1.0, *, number: int = 0, **changes: Any) -> FinishedRun:
    scenario = {"kind": "storm", "clients": 10, "service_url": f"pulsar://127.0.0.1:{number}"}
    summary = {
        "label": label,
        "answered": 10_000,
        "refused": {},
        "wrong": 0,
        "timeout": 0,
        "disconnected": 0,
        "unreachable": 0,
        "latency_seconds": dict.fromkeys(PERCENTILES, median),
        "service_latency_seconds": None,
        "processes": {},
        "generator_limited": False,
        "interrupted": False,
        **changes.pop("summary", {}),
    }
    executor = changes.pop("executor", "process")
    description = {"executor": executor, "scenario": {**scenario, **changes}}
    return FinishedRun(f"out/runs/{label}-{number}", description, summary)


def repeats(label: str, medians: list[float], **changes: Any) -> list[FinishedRun]:
    return [run(label, each, number=n, **changes) for n, each in enumerate(medians)]


def row(comparison: Comparison, figure: str) -> Any:
    (found,) = [each for each in comparison.rows if each.figure == figure]
    return found


def told(comparison: Comparison) -> str:
    return " ".join(sentences(comparison))


SLOW = [2.0, 2.1, 2.2, 2.3, 2.4, 2.5]
FAST = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]


def test_repeats_are_told_by_their_label_whatever_their_addresses() -> None:
    # When
    comparison = compare([*repeats("a", FAST), *repeats("b", SLOW)])
    # Then
    assert [(each.label, len(each.runs)) for each in comparison.groups] == [("a", 6), ("b", 6)]
    median = row(comparison, "response p50")
    assert [side.median for side in median.sides] == [1.25, 2.25]
    assert (median.sides[0].least, median.sides[0].most) == (1.0, 1.5)
    assert difference_text(median.differences[1]) == "+80.0 %"
    assert difference_text(row(comparison, "answered").differences[1]) == "the same"
    assert "6 differences shown, of 9 figures." in told(comparison)


def test_what_lies_within_the_spread_is_no_difference() -> None:
    # When both sides overlap
    comparison = compare([*repeats("a", FAST), *repeats("b", [1.05, 1.15, 1.25, 1.35, 1.45, 1.0])])
    # Then
    assert difference_text(row(comparison, "response p50").differences[1]) == "no difference shown"
    assert told(comparison) == "No difference shown."


def test_too_few_repeats_say_how_many_are_needed() -> None:
    # When two runs of each side differ as clearly as can be
    comparison = compare([*repeats("a", FAST[:2]), *repeats("b", SLOW[:2])])
    # Then
    assert told(comparison).startswith("No difference shown. To show one that every repeat has, ")
    assert "each side needs 5 repeats" in told(comparison)
    assert "there are 2 and 2" in told(comparison)


def test_a_difference_in_one_figure_alone_is_shown_with_the_repeats_that_are_asked_for() -> None:
    # Given that many figures vary by chance, in the same way on both sides, and one differs
    def runs(label: str, refused: int) -> list[FinishedRun]:
        return [
            run(label, each, number=n, summary={"refused": {"full": refused + n}})
            for n, each in enumerate(FAST[:needed])
        ]

    needed = 6
    comparison = compare([*runs("a", 0), *runs("b", 100)])
    # Then
    assert comparison.enough <= needed
    assert difference_text(row(comparison, "refused: full").differences[1]) == "41 times"
    assert difference_text(row(comparison, "response p99").differences[1]) == "no difference shown"


def test_what_would_be_shown_alone_is_not_shown_among_many_that_differ_by_chance() -> None:
    # Given four repeats a side, of which one figure of many is always larger
    def runs(label: str, refused: int, order: list[float]) -> list[FinishedRun]:
        return [
            run(label, each, number=n, summary={"refused": {"full": refused + n}})
            for n, each in enumerate(order)
        ]

    assert rank_test([0, 1, 2, 3], [100, 101, 102, 103]) < 0.05
    # When
    comparison = compare([*runs("a", 0, FAST[:4]), *runs("b", 100, FAST[3::-1])])
    # Then
    difference = row(comparison, "refused: full").differences[1]
    assert difference.probability > 0.05
    assert difference_text(difference) == "no difference shown"


def test_the_baseline_stands_first() -> None:
    runs = [*repeats("a", FAST), *repeats("b", SLOW), *repeats("c", SLOW)]
    comparison = compare(runs, baseline="b")
    assert [group.label for group in comparison.groups] == ["b", "a", "c"]
    median = row(comparison, "response p50")
    texts = [difference_text(each) for each in median.differences[1:]]
    assert texts == ["-44.4 %", "no difference shown"]
    with pytest.raises(UsageError, match="'x' is no label of these runs: a, b, c"):
        compare(runs, baseline="x")


def test_runs_of_two_executors_are_compared_and_told_apart() -> None:
    # When both have the same label
    comparison = compare([*repeats("a", FAST), *repeats("a", SLOW, executor="virtual")])
    # Then
    assert [(each.executor, len(each.runs)) for each in comparison.groups] == [
        ("process", 6),
        ("virtual", 6),
    ]
    assert comparison.unlike == []
    assert "Their executors are process and virtual, in this order." in told(comparison)
    assert markdown_of(comparison).startswith("| | a (6 runs by process) | a (6 runs by virtual) |")


def test_unlike_runs_are_refused_by_what_differs_unless_forced() -> None:
    # Given
    runs = [*repeats("a", FAST), *repeats("b", SLOW, clients=20, pattern="x")]
    # When
    with pytest.raises(UsageError, match="not alike in clients, pattern: compare runs of one"):
        compare(runs)
    comparison = compare(runs, force=True)
    # Then
    assert comparison.unlike == ["clients", "pattern"]
    assert "These runs are not alike in clients, pattern." in told(comparison)


def test_one_label_with_two_scenarios_is_two_groups() -> None:
    with pytest.raises(UsageError, match="not alike in clients"):
        compare([*repeats("a", FAST), *repeats("a", SLOW, clients=20)])


def test_refusals_that_some_runs_lack_are_zero_and_what_some_did_not_measure_is_no_row() -> None:
    # Given
    broker = {"heap": None, "direct": {"limit_bytes": 9, "high_water_bytes": 5}, "cpu_seconds": 1.0}
    watched = run("a", summary={"processes": {"broker": broker}, "refused": {"full": 3}})
    # When
    comparison = compare([watched, run("b")])
    # Then
    assert [side.median for side in row(comparison, "refused: full").sides] == [3, 0]
    met_later = compare([run("b"), watched])
    assert [each.figure for each in met_later.rows][:3] == ["answered", "refused", "refused: full"]
    assert not [each for each in comparison.rows if each.figure.startswith("broker")]
    alone = compare([watched])
    assert [each.figure for each in alone.rows][-2:] == [
        "broker: direct held at most",
        "broker: processor time",
    ]


def test_runs_whose_figures_are_not_to_be_relied_on_are_named() -> None:
    doubtful = run("a", summary={"generator_limited": True, "wrong": 2, "interrupted": True})
    assert told(compare([doubtful, run("b", number=1)])).count("Not to be relied on: ") == 3


def test_one_group_has_medians_and_no_differences() -> None:
    comparison = compare(repeats("a", FAST))
    assert told(comparison) == ""
    assert row(comparison, "response p50").differences == [None]


def test_people_and_programs_get_the_same_rows() -> None:
    # Given
    comparison = compare([*repeats("a|b", FAST), *repeats("c", SLOW)])
    # When
    table, text, document = table_of(comparison), markdown_of(comparison), document_of(comparison)
    # Then
    assert table.row_count == len(document["rows"]) == len(comparison.rows)
    lines = text.splitlines()
    assert lines[0] == "| | a\\|b (6 runs) | c (6 runs) | difference |"
    assert (
        "| response p50 | 1.25 s (1.00 s to 1.50 s) | 2.25 s (2.00 s to 2.50 s) | +80.0 % |"
        in lines
    )
    runs = [f"out/runs/c-{n}" for n in range(6)]
    assert document["groups"][1] == {"label": "c", "executor": "process", "runs": runs}


@settings(max_examples=25)
@given(st.lists(st.floats(0.1, 10.0), min_size=12, max_size=12), st.permutations(range(12)))
def test_runs_of_one_kind_that_are_dealt_at_random_seldom_differ(values, order) -> None:
    # Given the same twelve values dealt to two sides, and dealt the other way round
    dealt = [values[place] for place in order]
    there = compare([*repeats("a", dealt[:6]), *repeats("b", dealt[6:])])
    back = compare([*repeats("a", dealt[6:]), *repeats("b", dealt[:6])])
    # Then both say the same
    for one, other in zip(there.rows, back.rows, strict=True):
        assert one.differences[1].shown is other.differences[1].shown
        assert one.differences[1].probability == other.differences[1].probability
