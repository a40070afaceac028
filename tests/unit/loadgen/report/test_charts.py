"""Axes: round labels, places, and amounts in words."""

import pytest

from loadgen.report.charts import (
    linear_axis,
    logarithmic_axis,
    percentile_axis,
)
from loadgen.results.units import Unit


@pytest.mark.parametrize(
    ("high", "unit", "labels"),
    [
        (97, Unit.COUNT, ["0", "20", "40", "60", "80", "100"]),
        (1.5, Unit.COUNT, ["0", "1", "2"]),
        (0.9, Unit.SECONDS, ["0", "200 ms", "400 ms", "600 ms", "800 ms", "1 s"]),
        (50 * 2**20, Unit.BYTES, ["0", "10 MB", "20 MB", "30 MB", "40 MB", "50 MB"]),
        (45.0, Unit.RATE, ["0", "10/s", "20/s", "30/s", "40/s", "50/s"]),
        (1.0, Unit.SHARE, ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
    ],
)
def test_a_linear_axis_has_round_labels(high: float, unit: Unit, labels: list[str]) -> None:
    axis = linear_axis(high, unit)
    assert [label for _, label in axis.ticks] == labels
    assert axis.high >= high


def test_an_exact_axis_ends_at_its_bounds_and_labels_values_between() -> None:
    axis = linear_axis(8.3, Unit.SECONDS, low=-0.4, exact=True)
    assert (axis.low, axis.high) == (-0.4, 8.3)
    assert [label for _, label in axis.ticks] == ["0", "2 s", "4 s", "6 s", "8 s"]


def test_an_axis_without_values_has_a_range() -> None:
    assert linear_axis(0.0, Unit.COUNT, exact=True).share(0.0) == 0.0
    assert logarithmic_axis([], Unit.SECONDS).high > logarithmic_axis([], Unit.SECONDS).low


def test_a_logarithmic_axis_spans_at_most_six_whole_powers_of_ten() -> None:
    axis = logarithmic_axis([0.002, 3.0], Unit.SECONDS)
    assert [label for _, label in axis.ticks] == ["1 ms", "10 ms", "100 ms", "1 s", "10 s"]
    assert axis.share(0.1) == pytest.approx(0.5)
    assert logarithmic_axis([1e-12, 1e6], Unit.SECONDS).low == 1.0


def test_values_beyond_an_axis_are_drawn_at_its_end() -> None:
    axis = logarithmic_axis([0.1, 1.0], Unit.SECONDS)
    assert (axis.share(0.0), axis.share(1e9)) == (0.0, 1.0)


def test_a_percentile_axis_is_spaced_by_the_number_of_nines() -> None:
    axis = percentile_axis(3.0)
    assert [label for _, label in axis.ticks] == ["0 %", "50 %", "90 %", "99 %", "99.9 %"]
    assert axis.ticks[3][0] == pytest.approx(2.0)
