"""Quantiles of the last ten minutes."""

import math

from limiter.metrics.wait_times import MAX_TRACKED_MILLIS, WINDOW_SECONDS, WaitTimes
from tests.support.clocks.manual_clock import ManualClock


def test_before_the_first_wait_quantiles_are_nan() -> None:
    waits = WaitTimes(ManualClock())
    assert all(math.isnan(value) for value in waits.quantiles([0.5, 1.0]))
    assert (waits.count, waits.sum_millis) == (0, 0)


def test_an_immediate_grant_counts_as_a_wait_of_0_ms() -> None:
    waits = WaitTimes(ManualClock())
    waits.record(0.0)
    assert waits.quantiles([0.5, 1.0]) == [0.0, 0.0]
    assert (waits.count, waits.sum_millis) == (1, 0)


def test_fractions_of_a_millisecond_are_dropped() -> None:
    waits = WaitTimes(ManualClock())
    waits.record(0.0019)
    waits.record(0.0009)
    assert waits.quantiles([1.0]) == [1.0]
    assert waits.sum_millis == 1


def test_quantiles_are_within_1_percent_and_do_not_exceed_the_longest_wait() -> None:
    waits = WaitTimes(ManualClock())
    for millis in range(1, 1001):
        waits.record(millis / 1000 + 0.0001)
    half, most, longest = waits.quantiles([0.5, 0.95, 1.0])
    assert abs(half - 500) <= 5
    assert abs(most - 950) <= 9.5
    assert longest == 1000.0


def test_waits_expire_from_the_quantiles_but_not_from_count_and_sum() -> None:
    clock = ManualClock()
    waits = WaitTimes(clock)
    waits.record(2.0)
    clock.advance(4 * WINDOW_SECONDS)
    waits.record(0.001)
    still_there = waits.quantiles([1.0])
    clock.advance(WINDOW_SECONDS)
    assert still_there == [2000.0]
    assert waits.quantiles([1.0]) == [1.0]
    # No long waits
    clock.advance(1000 * WINDOW_SECONDS)
    assert math.isnan(waits.quantiles([1.0])[0])
    assert (waits.count, waits.sum_millis) == (2, 2001)


def test_waits_of_the_same_length_can_be_recorded_together() -> None:
    together, singly = WaitTimes(ManualClock()), WaitTimes(ManualClock())
    for seconds, times in ((0.0, 5), (0.25, 30), (4.0, 1)):
        together.record(seconds, times)
        for _ in range(times):
            singly.record(seconds)
    quantiles = [0.1, 0.5, 0.95, 1.0]
    assert together.quantiles(quantiles) == singly.quantiles(quantiles) == [0, 250, 250, 4000]
    assert (together.count, together.sum_millis) == (singly.count, singly.sum_millis) == (36, 11500)


def test_a_wait_beyond_the_range_counts_as_the_maximum() -> None:
    waits = WaitTimes(ManualClock())
    waits.record(1e9)
    assert waits.quantiles([0.5, 1.0]) == [float(MAX_TRACKED_MILLIS)] * 2
    assert waits.sum_millis == 1_000_000_000_000
