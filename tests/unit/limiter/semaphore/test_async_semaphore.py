"""Rules of AsyncSemaphore not covered by upstream's tests."""

import asyncio

import pytest

from limiter.clock import LoopClock
from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
)
from limiter.permits.permit import AcquireOutcome, SemaphoreStatistics
from limiter.semaphore.async_semaphore import AsyncSemaphore
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started


def semaphore_of(limit: int, queue: int = 10, timeout_seconds: float = 5.0) -> AsyncSemaphore:
    return AsyncSemaphore(limit, queue, timeout_seconds, ManualClock())


class Observed:
    """A semaphore whose observer records reports."""

    def __init__(self, limit: int, queue: int = 10, timeout_seconds: float = 5.0) -> None:
        self.clock = ManualClock()
        self.outcomes: list[tuple[AcquireOutcome, float]] = []
        self.semaphore = AsyncSemaphore(
            limit,
            queue,
            timeout_seconds,
            self.clock,
            lambda outcome, waited, count: self.outcomes.extend([(outcome, waited)] * count),
        )


@pytest.fixture
def semaphore() -> AsyncSemaphore:
    return semaphore_of(10)


async def test_a_request_that_fits_is_granted_within_the_call(semaphore: AsyncSemaphore) -> None:
    waiter = semaphore.request(10)
    assert waiter.result().size == 10
    assert semaphore.queue_size == 0


async def test_a_request_for_zero_permits_waits_while_none_are_available() -> None:
    semaphore = semaphore_of(5)
    holder = await semaphore.acquire(5)
    nothing = semaphore.request(0)
    assert not nothing.done
    semaphore.release(holder)
    assert nothing.result().size == 0


async def test_a_new_request_that_fits_waits_behind_a_larger_waiter() -> None:
    semaphore = semaphore_of(10)
    await semaphore.acquire(5)
    large = semaphore.request(6)
    small = semaphore.request(1)
    assert not large.done
    assert not small.done


async def test_a_permit_is_released_once(semaphore: AsyncSemaphore) -> None:
    permit = await semaphore.acquire(5)
    await semaphore.acquire(5)
    semaphore.release(permit)
    semaphore.release(permit)
    assert semaphore.acquired_permits == 5


async def test_releasing_a_superseded_permit_is_a_no_op(semaphore: AsyncSemaphore) -> None:
    permit = await semaphore.acquire(5)
    await semaphore.update(permit, 3)
    semaphore.release(permit)
    assert semaphore.acquired_permits == 3


async def test_growth_keeps_its_permit_and_waits_at_the_tail_of_the_queue(
    semaphore: AsyncSemaphore,
) -> None:
    permit, other = await semaphore.acquire(5), await semaphore.acquire(4)
    waiting = semaphore.request(2)
    growth = semaphore.request_update(permit, 6)
    assert not growth.done
    assert (permit.size, semaphore.acquired_permits) == (5, 9)
    semaphore.release(other)
    assert waiting.result().size == 2
    assert growth.result().size == 6
    assert semaphore.acquired_permits == 8


async def test_growth_of_a_permit_released_meanwhile_needs_its_full_size() -> None:
    semaphore = semaphore_of(10)
    permit, other = await semaphore.acquire(4), await semaphore.acquire(6)
    growth = semaphore.request_update(permit, 8)
    semaphore.release(permit)
    assert not growth.done
    semaphore.release(other)
    assert growth.result().size == semaphore.acquired_permits == 8


@pytest.mark.parametrize("size", [5, 3])
async def test_an_update_that_does_not_grow_is_granted_after_close_without_a_cancellation_check(
    semaphore: AsyncSemaphore, size: int
) -> None:
    permit = await semaphore.acquire(5)
    semaphore.close()
    updated = await semaphore.update(permit, size, lambda: True)
    assert updated.size == semaphore.acquired_permits == size


async def test_shrinking_a_permit_serves_a_waiter(semaphore: AsyncSemaphore) -> None:
    permit = await semaphore.acquire(10)
    waiting = semaphore.request(4)
    await semaphore.update(permit, 6)
    assert waiting.result().size == 4


async def test_a_refused_growth_keeps_the_old_permit() -> None:
    clock = ManualClock()
    semaphore = AsyncSemaphore(10, 1, 5.0, clock)
    permit = await semaphore.acquire(5)
    await semaphore.acquire(5)
    timed_out = await started(semaphore.update(permit, 6))
    with pytest.raises(PermitAcquireQueueFullError):
        await semaphore.update(permit, 7)
    clock.advance(5.0)
    with pytest.raises(PermitAcquireTimeoutError):
        await timed_out
    semaphore.close()
    with pytest.raises(PermitAcquireClosedError):
        await semaphore.update(permit, 8)
    assert (permit.size, semaphore.acquired_permits) == (5, 10)


async def test_a_request_times_out_once_and_not_before_its_deadline() -> None:
    observed = Observed(1, timeout_seconds=25.0)
    await observed.semaphore.acquire(1)
    waiter = observed.semaphore.request(1)
    observed.clock.advance(24.9)
    assert not waiter.done
    observed.clock.advance(0.2)
    assert isinstance(waiter.error, PermitAcquireTimeoutError)
    observed.clock.advance(100.0)
    assert [outcome for outcome, _ in observed.outcomes] == [
        AcquireOutcome.GRANTED,
        AcquireOutcome.TIMED_OUT,
    ]


async def test_a_settled_request_leaves_no_timer() -> None:
    observed = Observed(1)
    holder = await observed.semaphore.acquire(1)
    observed.semaphore.request(1)
    observed.semaphore.abandon(observed.semaphore.request(1))
    observed.semaphore.release(holder)
    assert [timer.cancelled for _, _, timer in observed.clock._timers] == [True, True]


async def test_a_granted_request_does_not_time_out() -> None:
    observed = Observed(1)
    holder = await observed.semaphore.acquire(1)
    waiter = observed.semaphore.request(1)
    observed.semaphore.release(holder)
    observed.clock.advance(100.0)
    assert waiter.result().size == 1
    assert observed.semaphore.acquired_permits == 1


async def test_a_head_that_is_no_longer_wanted_is_cancelled_even_when_no_permits_are_free() -> None:
    semaphore = semaphore_of(5)
    await semaphore.acquire(5)
    unwanted: list[bool] = []
    head = semaphore.request(1, lambda: bool(unwanted))
    unwanted.append(True)
    semaphore.request(1)
    assert isinstance(head.error, PermitAcquireCancelledError)
    assert semaphore.queue_size == 1


async def test_a_request_that_is_still_wanted_is_granted() -> None:
    semaphore = semaphore_of(5)
    permit = await semaphore.acquire(5, lambda: False)
    assert permit.size == 5


async def test_an_unbounded_queue_refuses_no_request() -> None:
    semaphore = semaphore_of(1, queue=0)
    await semaphore.acquire(1)
    waiters = [semaphore.request(1) for _ in range(1000)]
    assert semaphore.queue_size == 1000
    assert not any(waiter.done for waiter in waiters)


async def test_a_full_queue_has_room_again_when_a_waiter_is_abandoned() -> None:
    semaphore = semaphore_of(1, queue=1)
    await semaphore.acquire(1)
    semaphore.abandon(semaphore.request(1))
    waiter = semaphore.request(1)
    assert not waiter.done
    assert semaphore.queue_size == 1


# -- a grant meeting the waiter's cancellation ----------------------------------------------------


async def test_a_grant_coinciding_with_its_callers_cancellation_is_released() -> None:
    semaphore = semaphore_of(5)
    holder = await semaphore.acquire(5)
    caller = await started(semaphore.acquire(3))
    follower = await started(semaphore.acquire(4))
    semaphore.release(holder)
    caller.cancel()
    await settle()
    assert caller.cancelled()
    assert (await follower).size == semaphore.acquired_permits == 4


async def test_growth_coinciding_with_its_callers_cancellation_restores_the_old_permit() -> None:
    semaphore = semaphore_of(10)
    permit, other = await semaphore.acquire(4), await semaphore.acquire(6)
    caller = await started(semaphore.update(permit, 10))
    semaphore.release(other)
    caller.cancel()
    await settle()
    assert caller.cancelled()
    assert permit.size == semaphore.acquired_permits == 4
    semaphore.release(permit)
    assert semaphore.acquired_permits == 0


async def test_growth_of_an_owner_cancelled_in_the_turn_of_its_grant_releases_everything() -> None:
    semaphore = semaphore_of(10)
    permit, other = await semaphore.acquire(4, owner="cnx"), await semaphore.acquire(6)
    caller = await started(semaphore.update(permit, 10))
    follower = semaphore.request(10)
    semaphore.release(other)
    semaphore.owners.cancel("cnx")
    caller.cancel()
    await settle()
    assert permit.size == 0
    assert follower.result().size == semaphore.acquired_permits == 10


async def test_growth_of_a_permit_released_before_cancellation_releases_everything() -> None:
    semaphore = semaphore_of(10)
    permit, other = await semaphore.acquire(4), await semaphore.acquire(6)
    caller = await started(semaphore.update(permit, 10))
    semaphore.release(other)
    semaphore.release(permit)
    caller.cancel()
    await settle()
    assert semaphore.acquired_permits == 0


async def test_an_abandoned_update_is_undone_once(semaphore: AsyncSemaphore) -> None:
    permit = await semaphore.acquire(4)
    growth = semaphore.request_update(permit, 6)
    semaphore.abandon(growth)
    semaphore.abandon(growth)
    assert permit.size == semaphore.acquired_permits == 4


async def test_an_undone_shrink_does_not_revoke_permits_granted_meanwhile() -> None:
    semaphore = semaphore_of(10)
    permit = await semaphore.acquire(10)
    waiting = semaphore.request(7)
    shrink = semaphore.request_update(permit, 3)
    semaphore.abandon(shrink)
    assert waiting.result().size == 7
    assert (permit.size, semaphore.acquired_permits) == (3, 10)


# -- owners ---------------------------------------------------------------------------------------


async def test_cancel_owner_frees_places_and_permits_and_serves_waiters_in_the_same_turn() -> None:
    semaphore = semaphore_of(10)
    await semaphore.acquire(6, owner="gone")
    stays = await semaphore.acquire(4, owner="stays")
    waits = semaphore.request(9, owner="gone")
    follower = semaphore.request(6, owner="stays")
    semaphore.owners.cancel("gone")
    assert isinstance(waits.error, PermitAcquireCancelledError)
    assert follower.result().size == 6
    assert (stays.size, semaphore.acquired_permits, semaphore.queue_size) == (4, 10, 0)


async def test_cancel_owner_finds_grown_and_shrunk_permits(semaphore: AsyncSemaphore) -> None:
    first = await semaphore.acquire(2, owner="cnx")
    second = await semaphore.acquire(5, owner="cnx")
    await semaphore.update(first, 4)
    await semaphore.update(second, 1)
    semaphore.owners.cancel("cnx")
    assert semaphore.acquired_permits == 0


async def test_cancel_owner_of_an_unknown_owner_changes_nothing(semaphore: AsyncSemaphore) -> None:
    await semaphore.acquire(5, owner="cnx")
    semaphore.owners.cancel("stranger")
    assert semaphore.acquired_permits == 5


async def test_an_owner_has_no_account_after_all_its_permits_are_released() -> None:
    semaphore = semaphore_of(10)
    permit = await semaphore.acquire(10, owner="cnx")
    waiting = semaphore.request(1, owner="cnx")
    semaphore.release(permit)
    semaphore.release(waiting.result())
    assert list(semaphore.accounts()) == []


async def test_a_callback_of_a_refusal_may_abandon_further_waiters() -> None:
    semaphore = semaphore_of(1)
    await semaphore.acquire(1)
    first, second = semaphore.request(1, owner="cnx"), semaphore.request(1, owner="cnx")
    first.on_done(lambda: semaphore.abandon(second))
    semaphore.owners.cancel("cnx")
    assert isinstance(second.error, PermitAcquireCancelledError)
    assert semaphore.queue_size == 0


# -- observers ------------------------------------------------------------------------------------


async def test_the_observer_receives_each_outcome_with_its_waiting_time() -> None:
    observed = Observed(10, queue=1, timeout_seconds=5.0)
    semaphore, clock = observed.semaphore, observed.clock
    holder = await semaphore.acquire(10)
    waiting = semaphore.request(4)
    with pytest.raises(PermitAcquireQueueFullError):
        semaphore.request(1)
    with pytest.raises(PermitTooLargeError):
        semaphore.request(11)
    clock.advance(2.0)
    semaphore.release(holder)
    semaphore.request(10)
    clock.advance(5.0)
    semaphore.abandon(semaphore.request(10))
    semaphore.request(10)
    semaphore.close()
    with pytest.raises(PermitAcquireClosedError):
        semaphore.request(1)
    assert waiting.done
    assert observed.outcomes == [
        (AcquireOutcome.GRANTED, 0.0),
        (AcquireOutcome.QUEUE_FULL, 0.0),
        (AcquireOutcome.OVERSIZED, 0.0),
        (AcquireOutcome.GRANTED, 2.0),
        (AcquireOutcome.TIMED_OUT, 5.0),
        (AcquireOutcome.CANCELLED, 0.0),
        (AcquireOutcome.CLOSED, 0.0),
        (AcquireOutcome.CLOSED, 0.0),
    ]


async def test_statistics_are_a_snapshot() -> None:
    semaphore = semaphore_of(10, queue=3)
    permit = await semaphore.acquire(8)
    semaphore.request(5)
    statistics = semaphore.statistics()
    semaphore.release(permit)
    assert statistics == SemaphoreStatistics(10, 8, 2, 1, 3, 8)
    assert repr(semaphore) == "<AsyncSemaphore 5/10 with 0 waiting>"


async def test_the_clock_of_the_loop_is_used_by_default() -> None:
    semaphore = AsyncSemaphore(1, 10, 0.0)
    await semaphore.acquire(1)
    waiting = asyncio.get_running_loop().create_task(semaphore.acquire(1))
    with pytest.raises(PermitAcquireTimeoutError):
        await waiting
    assert isinstance(semaphore._waiting._clock, LoopClock)


async def test_a_permit_that_outlives_its_account_is_updated_for_its_owner() -> None:
    semaphore = AsyncSemaphore(10, 10, 0.0)
    permit = semaphore.request(5, owner="gone").result()
    semaphore.owners.cancel("gone")
    semaphore.request_update(permit, 3)
    assert (semaphore.owners.pinned_by("gone"), semaphore.statistics().holders) == (3, 1)
