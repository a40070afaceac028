"""A trigger runs when usage rises to the threshold, and disturbs no reservation."""

import asyncio
import logging

import pytest

from limiter.client_memory.memory_limit_controller import SHRINK_THRESHOLD, MemoryLimitController
from limiter.client_memory.reservation import Reservation
from tests.support.clocks.manual_clock import ManualClock


class Pool:
    """A controller of 100 bytes whose trigger records the usage."""

    def __init__(self, limit_bytes: int = 100) -> None:
        self.clock = ManualClock()
        self.memory = MemoryLimitController(limit_bytes, clock=self.clock)
        self.seen: list[int] = []

    def note(self) -> None:
        self.seen.append(self.memory.current_usage)


@pytest.fixture
def pool() -> Pool:
    return Pool()


@pytest.mark.parametrize(
    ("before", "size", "runs"), [(0, 94, 0), (0, 95, 1), (94, 1, 1), (94, 0, 0), (95, 1, 0)]
)
def test_a_trigger_runs_when_its_threshold_is_crossed_from_below(pool, before, size, runs) -> None:
    """MemoryLimitControllerTest, trigger cases: once for each crossing."""
    pool.memory.force_reserve(before)
    pool.memory.register_trigger(pool.note, SHRINK_THRESHOLD)
    pool.memory.force_reserve(size)
    assert pool.seen == [before + size] * runs
    assert pool.memory.statistics().triggers_fired_total == runs


def test_a_trigger_runs_again_after_usage_fell_below(pool: Pool) -> None:
    """MemoryLimitControllerTest, trigger cases: once for each crossing."""
    pool.memory.register_trigger(pool.note)
    prefetched = pool.memory.force_reserve(96)
    pool.memory.force_reserve(4)
    prefetched.release()
    pool.memory.force_reserve(91)
    assert pool.seen == [96, 95]


def test_every_way_to_reserve_memory_can_cross_the_threshold(pool: Pool) -> None:
    pool.memory.register_trigger(pool.note)
    ways = [
        lambda: pool.memory.try_reserve(95),
        lambda: pool.memory.request(95).result(),
        lambda: pool.memory.force_reserve(95),
    ]
    for way in ways:
        reservation = way()
        assert isinstance(reservation, Reservation)
        reservation.release()
    pool.memory.force_reserve(1).adjust(94)
    assert pool.seen == [95, 95, 95, 95]


def test_memory_granted_to_a_waiter_can_cross_the_threshold(pool: Pool) -> None:
    holder = pool.memory.force_reserve(101)
    pool.memory.request(97)
    pool.memory.register_trigger(pool.note)
    holder.release()
    assert pool.seen == [97]


def test_a_callback_that_crosses_the_threshold_is_not_reentered(pool: Pool) -> None:
    depths: list[int] = []

    def crosses_again() -> None:
        depths.append(pool.memory.current_usage)
        held.release()
        pool.memory.force_reserve(95)

    pool.memory.register_trigger(crosses_again)
    held = pool.memory.force_reserve(60)
    pool.memory.force_reserve(40)
    assert depths == [100]
    assert pool.memory.current_usage == 135


def test_every_trigger_at_a_crossed_threshold_runs_in_order_of_registration(pool: Pool) -> None:
    calls: list[str] = []
    pool.memory.register_trigger(lambda: calls.append("first"), 0.5)
    pool.memory.register_trigger(lambda: calls.append("second"), 0.5)
    pool.memory.register_trigger(lambda: calls.append("higher"), 0.95)
    pool.memory.force_reserve(50)
    assert calls == ["first", "second"]


def test_a_removed_trigger_does_not_run(pool: Pool) -> None:
    trigger = pool.memory.register_trigger(pool.note)
    trigger.remove()
    trigger.remove()
    pool.memory.force_reserve(100)
    assert pool.seen == []


def test_a_trigger_removed_by_an_earlier_trigger_does_not_run(pool: Pool) -> None:
    pool.memory.register_trigger(lambda: second.remove())
    second = pool.memory.register_trigger(pool.note)
    pool.memory.force_reserve(100)
    assert pool.seen == []


@pytest.mark.parametrize("error", [ZeroDivisionError("no consumer"), asyncio.CancelledError()])
def test_an_error_of_a_trigger_is_logged_and_does_not_reach_the_reserving_caller(
    pool, error, caplog
) -> None:

    def fails() -> None:
        raise error

    pool.memory.register_trigger(fails)
    pool.memory.register_trigger(pool.note)
    with caplog.at_level(logging.ERROR, "limiter.client_memory.triggers"):
        reservation = pool.memory.try_reserve(100)
    assert reservation is not None
    assert pool.memory.current_usage == reservation.size == 100
    assert pool.seen == [100]
    assert "A memory trigger failed" in caplog.text
    figures = pool.memory.statistics()
    assert (figures.triggers_fired_total, figures.triggers_failed_total) == (2, 1)


def test_a_trigger_that_raised_runs_again_at_the_next_crossing(pool: Pool) -> None:
    pool.memory.register_trigger(lambda: pool.seen.append(1 // 0))
    pool.memory.force_reserve(95).release()
    pool.memory.force_reserve(95).release()
    assert pool.memory.statistics().triggers_failed_total == 2


# -- repetition -------------------------------------------------------------------------------


def test_a_trigger_does_not_repeat_by_default(pool: Pool) -> None:
    pool.memory.register_trigger(pool.note)
    pool.memory.force_reserve(100)
    pool.clock.advance(3600.0)
    assert pool.seen == [100]


def test_a_repeating_trigger_runs_while_usage_stays_above_the_threshold(pool: Pool) -> None:
    pool.memory.register_trigger(pool.note, 0.95, repeat_seconds=1.0)
    held = pool.memory.force_reserve(95)
    pool.clock.advance(2.5)
    held.adjust(-1)
    pool.clock.advance(60.0)
    assert pool.seen == [95, 95, 95]


def test_a_new_crossing_postpones_the_repetition(pool: Pool) -> None:
    pool.memory.register_trigger(pool.note, 0.95, repeat_seconds=1.0)
    held = pool.memory.force_reserve(95)
    pool.clock.advance(0.6)
    held.adjust(-1)
    held.adjust(1)
    pool.clock.advance(0.6)
    assert pool.seen == [95, 95]
    pool.clock.advance(0.4)
    assert pool.seen == [95, 95, 95]


def test_a_removed_trigger_does_not_repeat(pool: Pool) -> None:
    trigger = pool.memory.register_trigger(pool.note, 0.95, repeat_seconds=1.0)
    pool.memory.force_reserve(95)
    trigger.remove()
    pool.clock.advance(60.0)
    assert pool.seen == [95]
    assert not trigger.timer.armed


def test_a_trigger_that_removes_itself_does_not_repeat(pool: Pool) -> None:

    def once() -> None:
        pool.note()
        trigger.remove()

    trigger = pool.memory.register_trigger(once, 0.95, repeat_seconds=1.0)
    pool.memory.force_reserve(95)
    pool.clock.advance(60.0)
    assert pool.seen == [95]
    assert not trigger.timer.armed


# -- thresholds -------------------------------------------------------------------------------


def test_without_a_limit_no_trigger_runs() -> None:
    pool = Pool(0)
    pool.memory.register_trigger(pool.note)
    pool.memory.force_reserve(1_000_000)
    assert pool.seen == []


def test_a_threshold_is_rounded_down_to_whole_bytes_and_is_at_least_1() -> None:
    small, tiny = Pool(10), Pool(1)
    small.memory.register_trigger(small.note, 0.95)
    tiny.memory.register_trigger(tiny.note, 0.95)
    small.memory.force_reserve(9)
    tiny.memory.force_reserve(1)
    assert (small.seen, tiny.seen) == ([9], [1])


@pytest.mark.parametrize("threshold", [0.0, -0.5, float("nan")])
def test_a_threshold_of_zero_or_less_is_rejected(pool: Pool, threshold: float) -> None:
    with pytest.raises(ValueError, match="fraction above 0"):
        pool.memory.register_trigger(pool.note, threshold)


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_repetition_interval_of_zero_or_less_is_rejected(pool: Pool, seconds: float) -> None:
    with pytest.raises(ValueError, match="more than 0 seconds"):
        pool.memory.register_trigger(pool.note, 0.95, seconds)
