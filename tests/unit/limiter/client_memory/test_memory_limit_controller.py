"""Client memory: admission, waiting and order; upstream's cases are named."""

import asyncio
from dataclasses import FrozenInstanceError

import pytest

from limiter.client_memory.errors import (
    MemoryBufferIsFullError,
    MemoryReserveCancelledError,
    MemoryReserveClosedError,
    MemoryReserveQueueFullError,
    MemoryReserveTimeoutError,
)
from limiter.client_memory.memory_limit_controller import DEFAULT_LIMIT_BYTES, MemoryLimitController
from limiter.client_memory.reservation import MemoryLimitStatistics, Reservation, ReserveOutcome
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started


class Pool:
    """A controller on a manual clock, and the observer's reports."""

    def __init__(self, limit_bytes: int = 100, max_waiters: int = 10) -> None:
        self.clock = ManualClock()
        self.outcomes: list[tuple[ReserveOutcome, float]] = []
        self.memory = MemoryLimitController(
            limit_bytes,
            max_waiters,
            self.clock,
            lambda outcome, seconds: self.outcomes.append((outcome, seconds)),
        )

    def fill(self, count: int) -> list[Reservation]:
        """Return ``count`` admitted reservations of one byte."""
        return [self.memory.reserve_nowait(1) for _ in range(count)]


@pytest.fixture
def pool() -> Pool:
    return Pool(100)


# -- upstream's cases -------------------------------------------------------------------------


def test_a_single_request_may_exceed_the_limit_and_the_next_may_not(pool: Pool) -> None:
    """MemoryLimitControllerTest.testLimit."""
    held = pool.fill(101)
    assert pool.memory.current_usage == 101
    assert pool.memory.try_reserve(1) is None
    assert pool.memory.current_usage == 101
    held.pop().release()
    assert pool.memory.current_usage == 100
    assert pool.memory.try_reserve(1) is not None
    assert pool.memory.current_usage == 101


async def test_a_single_release_serves_all_waiters_that_fit(pool: Pool) -> None:
    """MemoryLimitControllerTest.testBlocking."""
    pool.fill(98)
    holder = pool.memory.reserve_nowait(3)
    waiting = [await started(pool.memory.reserve(1)) for _ in range(3)]
    assert not any(task.done() for task in waiting)
    holder.release()
    await settle()
    assert all(task.done() for task in waiting)
    assert pool.memory.current_usage == 101


async def test_each_released_byte_serves_a_single_waiter(pool: Pool) -> None:
    """MemoryLimitControllerTest.testStepRelease."""
    held = pool.fill(101)
    waiting = [await started(pool.memory.reserve(1)) for _ in range(3)]
    for served in (1, 2, 3):
        held.pop().release()
        await settle()
        assert [task.done() for task in waiting] == [True] * served + [False] * (3 - served)
    assert pool.memory.current_usage == 101


@pytest.mark.parametrize("limit_bytes", [0, -1])
def test_without_a_limit_usage_is_counted_and_its_fraction_is_zero(limit_bytes: int) -> None:
    """MemoryLimitControllerTest, limit 0: the fraction was not a number once."""
    pool = Pool(limit_bytes)
    held = [pool.memory.reserve_nowait(1 << 40) for _ in range(3)]
    assert not pool.memory.is_memory_limited
    assert pool.memory.current_usage == 3 << 40
    assert pool.memory.current_usage_fraction == 0.0
    for reservation in held:
        reservation.release()
    assert pool.memory.current_usage == 0


async def test_a_negative_size_is_rejected_immediately(pool: Pool) -> None:
    """MemoryLimitControllerTest, negative sizes: usage once fell without waking a waiter."""
    sentence = "^A reservation cannot be negative: -1 bytes$"
    with pytest.raises(ValueError, match=sentence):
        pool.memory.try_reserve(-1)
    with pytest.raises(ValueError, match=sentence):
        pool.memory.reserve_nowait(-1)
    with pytest.raises(ValueError, match=sentence):
        pool.memory.force_reserve(-1)
    with pytest.raises(ValueError, match=sentence):
        await pool.memory.reserve(-1)
    assert pool.memory.current_usage == pool.memory.statistics().reservations == 0
    assert pool.outcomes == []


# -- admission --------------------------------------------------------------------------------


def test_the_default_limit_is_64_mib() -> None:
    assert MemoryLimitController().statistics().limit_bytes == DEFAULT_LIMIT_BYTES == 67_108_864


async def test_a_request_larger_than_the_limit_is_served(pool: Pool) -> None:
    holder = pool.memory.reserve_nowait(1_000)
    oversized = await started(pool.memory.reserve(5_000))
    holder.release()
    assert (await oversized).size == 5_000
    assert pool.memory.current_usage_fraction == 50.0


@pytest.mark.parametrize("size", [0, 1])
def test_above_the_limit_even_a_request_of_zero_bytes_is_refused(pool: Pool, size: int) -> None:
    pool.memory.force_reserve(101)
    assert pool.memory.try_reserve(size) is None


def test_an_immediate_refusal_reports_size_usage_and_limit(pool: Pool) -> None:
    pool.memory.force_reserve(101)
    with pytest.raises(MemoryBufferIsFullError) as caught:
        pool.memory.reserve_nowait(7)
    figures = (caught.value.size_bytes, caught.value.usage_bytes, caught.value.limit_bytes)
    assert figures == (7, 101, 100)


def test_a_forced_reservation_is_counted_even_beyond_the_limit(pool: Pool) -> None:
    pool.memory.force_reserve(101)
    arrived = pool.memory.force_reserve(500)
    assert arrived.size == 500
    assert pool.memory.current_usage == 601
    assert pool.memory.is_memory_limited


# -- waiting ----------------------------------------------------------------------------------


async def test_waiters_are_served_in_request_order_regardless_of_size(pool: Pool) -> None:
    held = pool.fill(101)
    large = await started(pool.memory.reserve(500))
    small = await started(pool.memory.reserve(1))
    held.pop().release()
    await settle()
    assert (large.done(), small.done()) == (True, False)
    (await large).release()
    assert (await small).size == 1


async def test_a_new_request_does_not_overtake_a_waiter(pool: Pool) -> None:
    held = pool.fill(101)
    waiting = await started(pool.memory.reserve(1))
    held.pop().release()
    newcomer = pool.memory.try_reserve(1)
    assert newcomer is None
    assert (await waiting).size == 1


def test_a_new_request_inside_a_callback_does_not_overtake_waiters(pool: Pool) -> None:
    holder = pool.memory.force_reserve(101)
    first, second = pool.memory.request(50), pool.memory.request(50)
    newcomers: list[object] = []
    pool.memory.register_trigger(lambda: newcomers.append(pool.memory.try_reserve(1)), 0.5)
    holder.release()
    assert newcomers == [None]
    assert (first.done, second.done) == (True, True)


def test_a_callback_that_releases_memory_does_not_change_the_order_of_waiters(pool: Pool) -> None:
    holder, other = pool.memory.force_reserve(51), pool.memory.force_reserve(50)
    first, second = pool.memory.request(100), pool.memory.request(1)
    settled_before: list[bool] = []

    def release_more() -> None:
        settled_before.append(first.done)
        other.release()

    pool.memory.register_trigger(release_more, 0.9)
    holder.release()
    assert settled_before == [True]
    assert second.done


async def test_a_release_wakes_no_waiter_that_must_keep_waiting(pool: Pool) -> None:
    holder = pool.memory.force_reserve(150)
    first, second = pool.memory.request(1), pool.memory.request(1)
    holder.resize(101)
    assert not first.done
    holder.resize(100)
    assert (first.done, second.done) == (True, False)


async def test_the_queue_of_waiters_is_bounded() -> None:
    pool = Pool(100, max_waiters=2)
    holder = pool.memory.force_reserve(101)
    waiting = [await started(pool.memory.reserve(1)) for _ in range(2)]
    with pytest.raises(MemoryReserveQueueFullError) as caught:
        await pool.memory.reserve(1)
    assert caught.value.waiters == 2
    assert pool.outcomes[-1] == (ReserveOutcome.QUEUE_FULL, 0.0)
    assert pool.memory.statistics().rejected_total == 1
    holder.release()
    assert [(await task).size for task in waiting] == [1, 1]


def test_a_queue_of_waiters_must_have_room_for_at_least_1() -> None:
    with pytest.raises(ValueError, match="max_waiters is at least 1, not 0"):
        MemoryLimitController(100, 0)


async def test_a_waiter_is_refused_after_its_timeout(pool: Pool) -> None:
    holder = pool.memory.force_reserve(101)
    waiting = await started(pool.memory.reserve(1, timeout_seconds=30.0))
    patient = await started(pool.memory.reserve(2))
    pool.clock.advance(29.9)
    assert pool.memory.statistics().waiters == 2
    pool.clock.advance(0.1)
    with pytest.raises(MemoryReserveTimeoutError) as caught:
        await waiting
    assert caught.value.waited_seconds == pytest.approx(30.0)
    assert pool.memory.statistics().timeouts_total == 1
    holder.release()
    assert (await patient).size == pool.memory.current_usage == 2


def test_a_timeout_of_zero_ends_before_time_passes(pool: Pool) -> None:
    pool.memory.force_reserve(101)
    waiter = pool.memory.request(1, timeout_seconds=0.0)
    pool.clock.advance(0.0)
    assert isinstance(waiter.error, MemoryReserveTimeoutError)


async def test_without_a_timeout_a_waiter_waits_indefinitely(pool: Pool) -> None:
    holder = pool.memory.force_reserve(101)
    waiting = await started(pool.memory.reserve(1))
    pool.clock.advance(1e9)
    assert pool.memory.statistics().waiters == 1
    holder.release()
    await waiting


async def test_a_served_waiter_does_not_time_out(pool: Pool) -> None:
    holder = pool.memory.force_reserve(101)
    waiting = await started(pool.memory.reserve(1, timeout_seconds=30.0))
    holder.release()
    pool.clock.advance(60.0)
    assert (await waiting).size == 1
    assert pool.memory.statistics().timeouts_total == 0


# -- leaving ----------------------------------------------------------------------------------


async def test_a_cancelled_waiter_leaves_the_queue(pool: Pool) -> None:
    holder = pool.memory.force_reserve(101)
    leaving = await started(pool.memory.reserve(1))
    staying = await started(pool.memory.reserve(2))
    leaving.cancel()
    await settle()
    assert leaving.cancelled()
    assert pool.memory.statistics().waiters == 1
    holder.release()
    assert (await staying).size == pool.memory.current_usage == 2
    assert [outcome for outcome, _ in pool.outcomes][1:] == [
        ReserveOutcome.CANCELLED,
        ReserveOutcome.RESERVED,
    ]


async def test_a_waiter_cancelled_in_the_turn_of_its_grant_leaks_no_memory(pool: Pool) -> None:
    holder = pool.memory.force_reserve(101)
    leaving = await started(pool.memory.reserve(200))
    staying = await started(pool.memory.reserve(2))
    holder.release()
    assert pool.memory.current_usage == 200
    leaving.cancel()
    await settle()
    assert leaving.cancelled()
    assert (await staying).size == pool.memory.current_usage == 2


async def test_memory_freed_in_the_turn_of_a_cancellation_serves_the_next_waiter(
    pool: Pool,
) -> None:
    holder = pool.memory.force_reserve(101)
    leaving = await started(pool.memory.reserve(200))
    staying = await started(pool.memory.reserve(2))
    # Cancelled first, before the task has had a turn.
    leaving.cancel()
    holder.release()
    assert pool.memory.current_usage == 2
    assert (await staying).size == 2
    await settle()
    assert leaving.cancelled()
    outcomes = [outcome for outcome, _ in pool.outcomes]
    assert outcomes.count(ReserveOutcome.CANCELLED) == 1


async def test_a_waiter_cancelled_in_the_turn_of_its_timeout_ends_once(pool: Pool) -> None:
    pool.memory.force_reserve(101)
    leaving = await started(pool.memory.reserve(1, timeout_seconds=30.0))
    leaving.cancel()
    pool.clock.advance(30.0)
    await settle()
    assert leaving.cancelled()
    assert [outcome for outcome, _ in pool.outcomes][1:] == [ReserveOutcome.TIMED_OUT]


def test_a_request_can_be_abandoned_without_a_task(pool: Pool) -> None:
    granted = pool.memory.request(101)
    waiting = pool.memory.request(1)
    pool.memory.abandon(waiting)
    pool.memory.abandon(granted)
    pool.memory.abandon(granted)
    assert granted.result().released
    with pytest.raises(MemoryReserveCancelledError):
        waiting.result()
    assert pool.memory.current_usage == pool.memory.statistics().waiters == 0


# -- closing ----------------------------------------------------------------------------------


async def test_close_refuses_waiters_and_later_requests(pool: Pool) -> None:
    """The C++ client's close; the Java controller has none."""
    pool.memory.force_reserve(101)
    waiting = [await started(pool.memory.reserve(1)) for _ in range(2)]
    pool.memory.close()
    assert pool.memory.statistics().waiters == 0
    pool.memory.close()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(answer) for answer in answers] == [MemoryReserveClosedError] * 2
    with pytest.raises(MemoryReserveClosedError):
        await pool.memory.reserve(1)
    with pytest.raises(MemoryReserveClosedError):
        pool.memory.try_reserve(1)
    assert [outcome for outcome, _ in pool.outcomes].count(ReserveOutcome.CLOSED) == 4


def test_a_reservation_held_at_close_can_be_resized_and_released(pool: Pool) -> None:
    held = pool.memory.force_reserve(50)
    pool.memory.close()
    arrived = pool.memory.force_reserve(10)
    held.resize(60)
    assert pool.memory.current_usage == 70
    held.release()
    arrived.release()
    assert pool.memory.current_usage == 0


def test_a_closed_controller_runs_no_trigger(pool: Pool) -> None:
    runs: list[int] = []
    pool.memory.register_trigger(lambda: runs.append(1), 0.95, repeat_seconds=1.0)
    pool.memory.force_reserve(95)
    pool.memory.close()
    pool.memory.force_reserve(100).release()
    pool.clock.advance(60.0)
    assert runs == [1]


# -- observers --------------------------------------------------------------------------------


def test_every_request_ends_in_a_single_outcome_with_its_waiting_time() -> None:
    pool = Pool(100, max_waiters=2)
    holder = pool.memory.reserve_nowait(90)
    pool.memory.force_reserve(11)
    pool.memory.try_reserve(1)
    pool.memory.request(1, timeout_seconds=2.0)
    pool.memory.request(1)
    pool.clock.advance(5.0)
    holder.release()
    assert pool.outcomes == [
        (ReserveOutcome.RESERVED, 0.0),
        (ReserveOutcome.FORCED, 0.0),
        (ReserveOutcome.BUFFER_FULL, 0.0),
        (ReserveOutcome.TIMED_OUT, 2.0),
        (ReserveOutcome.RESERVED, 5.0),
    ]


def test_the_high_water_mark_stays_when_usage_falls(pool: Pool) -> None:
    pool.memory.force_reserve(150).release()
    pool.memory.force_reserve(10)
    assert pool.memory.statistics().high_water_bytes == 150


def test_statistics_are_a_snapshot() -> None:
    pool = Pool(100, max_waiters=5)
    pool.memory.register_trigger(lambda: None)
    small, _ = pool.memory.reserve_nowait(20), pool.memory.force_reserve(130)
    pool.memory.try_reserve(1)
    waiter = pool.memory.request(1, timeout_seconds=1.0)
    pool.clock.advance(1.0)
    assert isinstance(waiter.error, MemoryReserveTimeoutError)
    small.release()
    pool.memory.request(1)
    pool.clock.advance(2.0)
    figures = pool.memory.statistics()
    pool.memory.close()
    assert figures == MemoryLimitStatistics(
        limit_bytes=100,
        usage_bytes=130,
        prefetched_bytes=0,
        promised_bytes=0,
        high_water_bytes=150,
        waiters=1,
        oldest_waiter_seconds=2.0,
        max_waiters=5,
        consumers_waiting=0,
        reservations=1,
        rejected_total=1,
        timeouts_total=1,
        waits_total=1,
        wait_seconds_total=1.0,
        triggers_fired_total=1,
        triggers_failed_total=0,
        turns_passed_on_total=0,
    )
    with pytest.raises(FrozenInstanceError):
        figures.waiters = 0  # type: ignore[misc]


def test_a_controller_shows_its_state(pool: Pool) -> None:
    pool.memory.force_reserve(101)
    pool.memory.request(1)
    assert repr(pool.memory) == "<MemoryLimitController 101/100 bytes with 1 waiting>"


def test_a_limit_must_be_a_whole_number() -> None:
    with pytest.raises(TypeError, match="limit_bytes is a whole number of bytes, not inf"):
        MemoryLimitController(float("inf"))  # type: ignore[arg-type]
