"""Permits per period, while a window is open: upstream's cases, on a manual clock."""

import pytest

from limiter.flow.flow_control import CooldownRules, TimedRateLimiter
from tests.support.clocks.manual_clock import ManualClock

MINUTE_SECONDS, HOUR_SECONDS = 60.0, 3_600.0


class Limited:
    """A limiter and a clock; the window is open for ten seconds, as in upstream's cases."""

    def __init__(self, permits: int, period_seconds: float = 1.0, window: float = 10.0) -> None:
        self.clock = ManualClock()
        self.limiter = TimedRateLimiter(permits, period_seconds, self.clock)
        self.limiter.open_window(window)

    def acquires(self, *sizes: int) -> list[int]:
        return [self.limiter.acquire(size) for size in sizes]

    @property
    def remaining(self) -> int:
        return self.limiter.remaining


# -- upstream's cases ------------------------------------------------------------------------------


def test_a_new_limiter_has_all_permits_of_its_period() -> None:
    """Upstream: TimedSingleThreadRateLimiterTest case 1."""
    limiter = TimedRateLimiter(100, 5.0, ManualClock())
    assert (limiter.permits, limiter.period_seconds, limiter.remaining) == (100, 5.0, 100)


@pytest.mark.parametrize("seconds", [1.0, 2.0, MINUTE_SECONDS])
def test_a_period_is_measured_in_seconds_and_its_end_is_exclusive(seconds: float) -> None:
    """Upstream: TimedSingleThreadRateLimiterTest case 2."""
    limited = Limited(1, seconds, window=HOUR_SECONDS)
    limited.acquires(1)
    limited.clock.advance(seconds)
    too_early = limited.acquires(1)
    limited.clock.advance(0.001)
    assert (limited.limiter.period_seconds, too_early, limited.acquires(1)) == (seconds, [0], [1])


def test_acquired_permits_are_subtracted_from_the_remaining_permits() -> None:
    """Upstream: TimedSingleThreadRateLimiterTest case 3."""
    limited = Limited(100)
    assert (limited.acquires(1), limited.remaining) == ([1], 99)
    assert (limited.acquires(10), limited.remaining) == ([10], 89)


@pytest.mark.parametrize(
    ("permits", "sizes", "granted"),
    [
        pytest.param(10, [8, 5], [8, 2], id="4: the rest, if fewer remain"),
        pytest.param(5, [5, 3], [5, 0], id="5: none, if none remain"),
        pytest.param(10, [0], [0], id="6: a request for none"),
        pytest.param(1_000, [100] * 11, [100] * 10 + [0], id="11: a high rate"),
        pytest.param(3, [1] * 4, [1, 1, 1, 0], id="12: a low rate"),
        pytest.param(1, [1, 1], [1, 0], id="17: a rate of 1"),
        pytest.param(10, [1_000], [10], id="18: a request above the rate"),
        pytest.param(10, [-5], [0], id="19: a negative request changes nothing"),
        pytest.param(100, [2] * 50, [2] * 50, id="21: many small requests"),
        pytest.param(50, [30, 25], [30, 20], id="22: two bursts"),
    ],
)
def test_a_period_grants_its_permits_and_no_more(
    permits: int, sizes: list[int], granted: list[int]
) -> None:
    """Upstream: TimedSingleThreadRateLimiterTest cases 4, 5, 6, 11, 12, 17, 18, 19, 21 and 22."""
    limited = Limited(permits)
    assert (limited.acquires(*sizes), limited.remaining) == (granted, permits - sum(granted))


@pytest.mark.parametrize(
    ("permits", "period_seconds", "used", "size"),
    [
        pytest.param(10, 0.100, 10, 5, id="7: all permits are available again"),
        pytest.param(10, 0.100, 6, 8, id="13: unused permits are lost"),
        pytest.param(5, 0.010, 5, 3, id="15: a very short period"),
    ],
)
def test_after_a_period_its_permits_are_available_again(
    permits: int, period_seconds: float, used: int, size: int
) -> None:
    """Upstream: TimedSingleThreadRateLimiterTest cases 7, 13 and 15."""
    limited = Limited(permits, period_seconds)
    limited.acquires(used)
    limited.clock.advance(2 * period_seconds)
    assert (limited.acquires(size), limited.remaining) == ([size], permits - size)


def test_before_the_period_ends_no_further_permits_are_granted() -> None:
    """Upstream: TimedSingleThreadRateLimiterTest case 8."""
    limited = Limited(10)
    limited.acquires(10)
    assert limited.acquires(5) == [0]
    limited.clock.advance(0.999)
    assert limited.acquires(5) == [0]


def test_after_the_window_every_request_is_granted() -> None:
    """Upstream: TimedSingleThreadRateLimiterTest case 9."""
    limited = Limited(10, window=0.500)
    within = limited.acquires(15)
    limited.clock.advance(1.0)
    assert (within, limited.acquires(1_000)) == ([10], [1_000])


def test_a_window_of_zero_seconds_does_not_limit() -> None:
    """Upstream: TimedSingleThreadRateLimiterTest case 10."""
    assert Limited(10, window=0.0).acquires(7_000) == [7_000]


def test_several_requests_in_a_period_share_its_permits() -> None:
    """Upstream: TimedSingleThreadRateLimiterTest case 14."""
    limited = Limited(20, 0.100)
    first = limited.acquires(*[5] * 5)
    limited.clock.advance(0.150)
    assert first == [5, 5, 5, 5, 0]
    assert (limited.acquires(10), limited.remaining) == ([10], 10)


def test_a_period_may_be_very_long() -> None:
    """Upstream: TimedSingleThreadRateLimiterTest case 16."""
    limited = Limited(10, HOUR_SECONDS)
    limited.clock.advance(9.0)
    assert (limited.acquires(7, 5), limited.remaining) == ([7, 3], 0)


def test_each_period_has_its_own_permits() -> None:
    """Upstream: TimedSingleThreadRateLimiterTest case 20."""
    limited = Limited(5, 0.050)
    seen = [(limited.acquires(5), limited.remaining)]
    for size in (3, 4, 5):
        limited.clock.advance(0.060)
        seen.append((limited.acquires(size), limited.remaining))
    assert seen == [([5], 0), ([3], 2), ([4], 1), ([5], 0)]


# -- beyond upstream's cases ----------------------------------------------------------------------


def test_without_a_window_requests_are_neither_limited_nor_counted() -> None:
    limiter = TimedRateLimiter(10, 1.0, ManualClock())
    assert (limiter.acquire(1_000), limiter.remaining) == (1_000, 10)


def test_a_negative_request_outside_a_window_is_granted_no_permits() -> None:
    assert TimedRateLimiter(10, 1.0, ManualClock()).acquire(-5) == 0


def test_a_window_is_open_up_to_and_including_its_last_moment() -> None:
    limited = Limited(1, HOUR_SECONDS, window=0.5)
    limited.clock.advance(0.5)
    at_the_end = limited.acquires(2)
    limited.clock.advance(0.001)
    assert (at_the_end, limited.acquires(2)) == ([1], [2])


def test_opening_a_window_refills_no_permits() -> None:
    limited = Limited(5)
    limited.acquires(5)
    limited.limiter.open_window(10.0)
    assert limited.acquires(1) == [0]


def test_opening_a_window_does_not_restart_the_period() -> None:
    limited = Limited(5, 1.0)
    limited.acquires(5)
    limited.clock.advance(0.9)
    limited.limiter.open_window(10.0)
    limited.clock.advance(0.2)
    assert limited.acquires(1) == [1]


def test_opening_a_window_again_extends_the_open_window() -> None:
    limited = Limited(1, HOUR_SECONDS, window=1.0)
    limited.clock.advance(0.9)
    limited.limiter.open_window(1.0)
    limited.clock.advance(0.9)
    assert limited.acquires(2) == [1]


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_opening_a_window_of_no_time_closes_the_open_window(seconds: float) -> None:
    limited = Limited(1)
    limited.limiter.open_window(seconds)
    assert limited.acquires(100) == [100]


def test_a_period_begins_with_the_first_request_after_the_previous_period() -> None:
    limited = Limited(5, 1.0)
    limited.clock.advance(1.7)
    limited.acquires(5)
    limited.clock.advance(0.9)
    assert limited.acquires(1) == [0]
    limited.clock.advance(0.2)
    assert limited.acquires(1) == [1]


def test_the_default_cooldown_is_5_permits_in_10_milliseconds_for_5_seconds() -> None:
    assert CooldownRules() == CooldownRules(5, 0.010, 5.0)


@pytest.mark.parametrize(("window", "limits"), [(5.0, True), (0.0, False), (-1.0, False)])
def test_rules_without_a_window_do_not_limit(window: float, limits: bool) -> None:
    assert CooldownRules(window_seconds=window).limits is limits
