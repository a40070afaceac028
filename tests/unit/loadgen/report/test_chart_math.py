"""The arithmetic of charts keeps what a reader would miss."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.report.chart_math import (
    buckets,
    growth,
    nice_axis,
    percentile_curve,
    percentile_position,
    round_step,
    running_count,
    thin,
)
from loadgen.results.latency import nearest_rank


@pytest.mark.parametrize(
    ("at_least", "step"), [(0.9, 1.0), (1.1, 2.0), (2.1, 5.0), (21, 25), (26, 50), (7, 10)]
)
def test_steps_are_round(at_least: float, step: float) -> None:
    assert round_step(at_least) == pytest.approx(step)


def test_axis_covers_its_highest_value() -> None:
    axis = nice_axis(56 * 1024 * 1024, ticks=4, unit=1024 * 1024)
    assert axis.high >= 56 * 1024 * 1024
    assert [tick // (1024 * 1024) for tick in axis.ticks] == [0, 20, 40, 60]


def test_share_stays_on_the_axis() -> None:
    axis = nice_axis(10.0)
    assert (axis.share(-1), axis.share(5), axis.share(11)) == (0.0, 0.5, 1.0)


def test_thinning_keeps_a_peak_of_one_sample() -> None:
    points = [(float(at), 0.0) for at in range(10_000)]
    points[6_789] = (6789.0, 42.0)
    thinned = thin(points, 100)
    assert len(thinned) <= 102
    assert (6789.0, 42.0) in thinned


def test_short_series_is_not_thinned() -> None:
    points = [(0.0, 1.0), (1.0, 2.0)]
    assert thin(points, 100) == points


def test_running_count_ends_with_all() -> None:
    counted = running_count([1.0, 2.0, 2.0, 9.0], end=10.0, limit=10)
    assert counted[2] == (2.0, 3.0)
    assert counted[-1] == (10.0, 4.0)


def test_percentile_curve_goes_from_fastest_to_slowest() -> None:
    curve = percentile_curve([float(value) for value in range(1, 1001)])
    assert curve[0] == (0.0, 1.0)
    assert curve[-1] == (pytest.approx(3.0), 1000.0)
    at_median = max(y for x, y in curve if x <= percentile_position(0.5))
    assert at_median == pytest.approx(500, rel=0.05)


def test_the_percentile_curve_meets_the_median_of_an_even_number_of_values() -> None:
    values = [1.0, 2.0, 3.0, 4.0]
    curve = percentile_curve(values)
    at_median = [y for x, y in curve if x == pytest.approx(percentile_position(0.5))]
    assert at_median == [nearest_rank(values, 0.5)] == [2.0]


def test_percentile_curve_of_nothing_is_empty() -> None:
    assert percentile_curve([]) == []


def test_last_bucket_takes_the_rest() -> None:
    assert buckets([0.0, 0.9, 1.0, 99.0], width=1.0, count=3) == [2, 1, 1]


@given(
    st.lists(st.floats(0.05, 3.0), min_size=2, max_size=50),
    st.floats(0.0, 4.0),
)
def test_the_growth_of_what_grows_evenly_is_its_rate(steps: list[float], rate: float) -> None:
    # Given
    moments = list(accumulate(steps))
    points = [(at, 100.0 + rate * at) for at in moments]
    # When
    found = growth(points, over=1.0)
    # Then
    assert [at for at, _ in found] == moments[1:]
    assert [value for _, value in found] == pytest.approx([rate] * len(found), abs=1e-9)


def test_growth_is_taken_over_the_time_that_is_asked_for() -> None:
    # Given a total of which every other look sees nothing new
    points = [(step / 4, step // 2 / 2) for step in range(13)]
    # When, Then
    assert {value for at, value in growth(points, over=1.0) if at >= 1} == {1.0}
    assert {value for _, value in growth(points, over=0.25)} == {0.0, 2.0}
