"""Axes: round labels, places, and amounts in words."""

from __future__ import annotations

import math

import pytest

from loadgen.report.axes import (
    amount,
    linear_axis,
    logarithmic_axis,
    percentile_axis,
    percentile_place,
)


@pytest.mark.parametrize(
    ("high", "unit", "labels"),
    [
        (97, "count", ["0", "20", "40", "60", "80", "100"]),
        (1.5, "count", ["0", "1", "2"]),
        (0.9, "seconds", ["0", "200 ms", "400 ms", "600 ms", "800 ms", "1 s"]),
        (50 * 2**20, "bytes", ["0", "10 MB", "20 MB", "30 MB", "40 MB", "50 MB"]),
        (1.0, "share", ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
    ],
)
def test_a_linear_axis_has_round_labels(high: float, unit: str, labels: list[str]) -> None:
    axis = linear_axis(high, unit)  # type: ignore[arg-type]
    assert [label for _, label in axis.ticks] == labels
    assert axis.high >= high


def test_an_exact_axis_ends_where_it_is_told_and_labels_what_lies_between() -> None:
    axis = linear_axis(8.3, "seconds", low=-0.4, exact=True)
    assert (axis.low, axis.high) == (-0.4, 8.3)
    assert [label for _, label in axis.ticks] == ["0", "2 s", "4 s", "6 s", "8 s"]


def test_an_axis_of_nothing_has_a_width() -> None:
    assert linear_axis(0.0, "count", exact=True).share(0.0) == 0.0
    assert logarithmic_axis([], "seconds").high > logarithmic_axis([], "seconds").low


def test_a_logarithmic_axis_has_whole_powers_and_at_most_six_of_them() -> None:
    axis = logarithmic_axis([0.002, 3.0], "seconds")
    assert [label for _, label in axis.ticks] == ["1 ms", "10 ms", "100 ms", "1 s", "10 s"]
    assert axis.share(0.1) == pytest.approx(0.5)
    assert logarithmic_axis([1e-12, 1e6], "seconds").low == 1.0


def test_what_lies_beyond_an_axis_is_at_its_end() -> None:
    axis = logarithmic_axis([0.1, 1.0], "seconds")
    assert (axis.share(0.0), axis.share(1e9)) == (0.0, 1.0)


def test_shares_have_room_by_their_nines() -> None:
    axis = percentile_axis(3.0)
    assert [label for _, label in axis.ticks] == ["0 %", "50 %", "90 %", "99 %", "99.9 %"]
    assert percentile_place(0.99) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (math.inf, "seconds", "never"),
        (math.nan, "seconds", "-"),
        (None, "count", "-"),
        (0.0026, "seconds", "2.6 ms"),
        (1.25, "seconds", "1.25 s"),
        (2**20, "bytes", "1.0 MB"),
        (0.125, "share", "12.5 %"),
        (12345, "count", "12,345"),
    ],
)
def test_an_amount_has_its_unit(value: float | None, unit: str, words: str) -> None:
    assert amount(value, unit) == words  # type: ignore[arg-type]
