"""Limits of messages and bytes in a time, as recorded of a real broker."""

import sys

import pytest

from broker.policies.effective import NO_RATE, Rate
from broker.policies.rate_limiter import (
    MOST_CONSUMERS,
    ConsumerIdentifier,
    RateLimiter,
    SubscribeRateLimiter,
)
from tests.support.clocks.manual_clock import ManualClock


def test_a_rate_of_five_dispatches_five_immediately_and_then_five_each_second() -> None:
    clock = ManualClock(0.0)
    limiter = RateLimiter(Rate(messages=5), clock)
    sent = []
    while len(sent) < 12:
        messages, _ = limiter.available()
        limiter.take(messages, 100 * messages)
        sent.extend([clock.now()] * messages)
        clock.advance(limiter.seconds_until_more())
    assert sent[:12] == [0.0] * 5 + [1.0] * 5 + [2.0] * 2


def test_twenty_publishes_at_five_per_second_complete_after_three_seconds() -> None:
    clock = ManualClock(0.0)
    limiter = RateLimiter(Rate(messages=5), clock, least_wait_seconds=0)
    for _ in range(20):
        clock.advance(limiter.seconds_until_more())
        limiter.take(1, 10)
    assert clock.now() == pytest.approx(3.0)


def test_bytes_taken_beyond_the_limit_are_paid_back_before_more_are_available() -> None:
    clock = ManualClock(0.0)
    limiter = RateLimiter(Rate(size_bytes=1_000), clock)
    limiter.take(1, 3_500)
    assert limiter.available() == (sys.maxsize, 0)
    assert limiter.seconds_until_more() == pytest.approx(2.501)
    clock.advance(3)
    assert limiter.available() == (sys.maxsize, 500)
    assert limiter.seconds_until_more() == 0


def test_a_relative_limit_follows_the_publish_rates_with_the_tokens_left() -> None:
    clock, published = ManualClock(0.0), [(0.0, 0.0)]
    rate = Rate(messages=5, size_bytes=100, relative=True)
    limiter = RateLimiter(rate, clock, published=lambda: published[-1])
    assert limiter.available() == (5, 100)
    published.append((20.9, 300.0))
    assert limiter.available() == (5, 100)
    clock.advance(10)
    assert limiter.available() == (25, 400)


def test_a_longer_period_refills_slower_and_never_above_the_limit() -> None:
    clock = ManualClock(0.0)
    limiter = RateLimiter(Rate(messages=6, period_seconds=60), clock)
    limiter.take(6, 0)
    assert limiter.seconds_until_more() == pytest.approx(10.0)
    clock.advance(600)
    assert limiter.available() == (6, sys.maxsize)


@pytest.mark.parametrize(("seconds_a_look", "most"), [(0.0, 5), (3_600.0, 5_000)])
def test_no_check_admits_more_than_the_limit_whatever_the_clock_does(
    seconds_a_look: float, most: int
) -> None:
    clock = ManualClock(0.0)
    limiter = RateLimiter(Rate(messages=5), clock)
    passed = 0
    for _ in range(1_000):
        messages, _ = limiter.available()
        assert 0 <= messages <= 5
        limiter.take(messages, 0)
        passed += messages
        clock.advance(seconds_a_look)
    assert passed == most


def test_a_limiter_without_a_rate_never_limits() -> None:
    limiter = RateLimiter(NO_RATE, ManualClock())
    limiter.take(1_000_000, 1_000_000)
    assert not limiter.limited
    assert limiter.available() == (sys.maxsize, sys.maxsize)
    assert limiter.seconds_until_more() == 0


# -- subscriptions --------------------------------------------------------------------------------

CONSUMER = ConsumerIdentifier("127.0.0.1", "c", 1)


def test_a_rate_of_two_in_ten_seconds_admits_two_and_then_one_each_five_seconds() -> None:
    clock = ManualClock(0.0)
    limiter = SubscribeRateLimiter(Rate(2, period_seconds=10), clock)
    taken = []
    for _ in range(22):
        if limiter.take(CONSUMER):
            taken.append(clock.now())
            if len(taken) == 1:
                continue
        clock.advance(1)
    assert taken == [0, 0, 5, 10, 15, 20]


@pytest.mark.parametrize(
    "other",
    [
        CONSUMER._replace(host="10.0.0.1"),
        CONSUMER._replace(name="d"),
        CONSUMER._replace(consumer_id=2),
    ],
)
def test_the_subscribe_rate_counts_each_host_name_and_id_separately(
    other: ConsumerIdentifier,
) -> None:
    limiter = SubscribeRateLimiter(Rate(1, period_seconds=1000), ManualClock())
    assert limiter.take(CONSUMER)
    assert not limiter.take(CONSUMER)
    assert limiter.take(other)


def test_a_changed_limit_resets_the_subscribe_count_and_an_equal_limit_does_not() -> None:
    limiter = SubscribeRateLimiter(Rate(1, period_seconds=1000), ManualClock())
    limiter.take(CONSUMER)
    limiter.change(Rate(1, period_seconds=1000))
    assert not limiter.take(CONSUMER)
    limiter.change(Rate(2, period_seconds=1000))
    assert [limiter.take(CONSUMER) for _ in range(3)] == [True, True, False]
    limiter.change(Rate(-1, period_seconds=30))
    assert limiter.take(CONSUMER)


def test_the_number_of_remembered_consumers_is_bounded() -> None:
    limiter = SubscribeRateLimiter(Rate(1, period_seconds=1000), ManualClock())
    for consumer_id in range(MOST_CONSUMERS + 1):
        limiter.take(CONSUMER._replace(consumer_id=consumer_id))
    # The consumer unused for the longest time starts afresh.
    assert len(limiter) == MOST_CONSUMERS
    assert not limiter.take(CONSUMER._replace(consumer_id=1))
    assert limiter.take(CONSUMER._replace(consumer_id=0))
