"""Upstream's cases of AsyncSemaphoreImplTest; the docstrings number them in its order."""

from __future__ import annotations

import asyncio

import pytest

from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
)
from limiter.permit import UNBOUNDED_PERMITS
from limiter.semaphore import AsyncSemaphore
from tests.support.manual_clock import ManualClock
from tests.support.settle import settle, started


def bounded(
    limit: int, queue: int = 10, timeout_seconds: float = 5.0
) -> tuple[AsyncSemaphore, ManualClock]:
    clock = ManualClock()
    return AsyncSemaphore(limit, queue, timeout_seconds, clock), clock


def unbounded(timeout_seconds: float = 5.0) -> tuple[AsyncSemaphore, ManualClock]:
    return bounded(0, 10, timeout_seconds)


@pytest.mark.parametrize(("limit", "size"), [(1, 1), (10, 5)])
async def test_a_request_that_fits_is_granted(limit: int, size: int) -> None:
    """Cases 1 and 2."""
    semaphore, _ = bounded(limit)
    # When
    permit = await semaphore.acquire(size)
    # Then
    assert permit.size == size
    assert semaphore.available_permits == limit - size


async def test_a_release_grants_who_waits() -> None:
    """Case 3."""
    # Given
    semaphore, _ = bounded(5)
    holder = await semaphore.acquire(5)
    waiting = await started(semaphore.acquire(3))
    assert not waiting.done()
    # When
    semaphore.release(holder)
    # Then
    assert (await waiting).size == 3


async def test_a_full_queue_refuses_at_once() -> None:
    """Case 4."""
    # Given
    semaphore, _ = bounded(1, 2)
    await semaphore.acquire(1)
    waiting = [await started(semaphore.acquire(1)) for _ in range(2)]
    # When
    with pytest.raises(PermitAcquireQueueFullError, match="Semaphore queue is full") as caught:
        await semaphore.acquire(1)
    # Then
    assert caught.value.queue_size == 2
    assert not any(task.done() for task in waiting)
    semaphore.close()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_request_that_waits_too_long_times_out() -> None:
    """Case 5."""
    # Given
    semaphore, clock = bounded(1, 10, 0.1)
    await semaphore.acquire(1)
    waiting = await started(semaphore.acquire(1))
    # When
    clock.advance(0.2)
    # Then
    with pytest.raises(PermitAcquireTimeoutError, match="timed out") as caught:
        await waiting
    assert caught.value.waited_seconds == pytest.approx(0.1)


async def test_a_request_nobody_wants_any_more_is_cancelled_when_its_turn_comes() -> None:
    """Case 6."""
    # Given
    semaphore, _ = bounded(1)
    holder = await semaphore.acquire(1)
    unwanted: list[bool] = []
    waiting = await started(semaphore.acquire(1, lambda: bool(unwanted)))
    # When
    unwanted.append(True)
    semaphore.release(holder)
    # Then
    with pytest.raises(PermitAcquireCancelledError, match="was cancelled"):
        await waiting
    assert semaphore.acquired_permits == 0


async def test_a_negative_request_is_an_error_at_once() -> None:
    """Cases 7 and 12."""
    # Given
    semaphore, _ = bounded(10)
    permit = await semaphore.acquire(5)
    sentence = "^Invalid negative permits value: -1$"
    # When, Then
    with pytest.raises(ValueError, match=sentence):
        semaphore.request(-1)
    with pytest.raises(ValueError, match=sentence):
        semaphore.request_update(permit, -1)
    assert permit.size == semaphore.acquired_permits == 5


async def test_a_request_above_the_limit_is_an_error_at_once() -> None:
    """Cases 8 and 13."""
    # Given
    semaphore, _ = bounded(10)
    permit = await semaphore.acquire(5)
    sentence = "^Requested permits=11 is larger than maxPermits=10$"
    # When, Then
    with pytest.raises(PermitTooLargeError, match=sentence) as caught:
        semaphore.request(11)
    with pytest.raises(PermitTooLargeError, match=sentence):
        semaphore.request_update(permit, 11)
    assert (caught.value.requested, caught.value.limit) == (11, 10)
    assert permit.size == semaphore.acquired_permits == 5


async def test_close_refuses_who_waits_and_who_comes() -> None:
    """Case 9."""
    # Given
    semaphore, _ = bounded(5)
    holder = await semaphore.acquire(3)
    waiting = await started(semaphore.acquire(5))
    # When
    semaphore.close()
    # Then
    with pytest.raises(PermitAcquireClosedError, match="Semaphore is closed"):
        await waiting
    with pytest.raises(PermitAcquireClosedError):
        await semaphore.acquire(1)
    semaphore.release(holder)
    assert semaphore.acquired_permits == 0


async def test_growth_is_charged_and_holds_up_others() -> None:
    """Case 10."""
    # Given
    semaphore, _ = bounded(10)
    permit = await semaphore.acquire(5)
    # When
    grown = await semaphore.update(permit, 8)
    await semaphore.acquire(2)
    waiting = await started(semaphore.acquire(1))
    # Then
    assert (grown.size, permit.size) == (8, 0)
    assert not waiting.done()
    semaphore.release(grown)
    assert (await waiting).size == 1


async def test_shrinking_is_granted_at_once() -> None:
    """Case 11."""
    # Given
    semaphore, _ = bounded(10)
    permit = await semaphore.acquire(8)
    # When
    shrunk = await semaphore.update(permit, 5)
    # Then
    assert (shrunk.size, semaphore.acquired_permits) == (5, 5)


async def test_an_update_to_nothing_gives_everything_back() -> None:
    """Case 14."""
    # Given
    semaphore, _ = bounded(10)
    permit = await semaphore.acquire(5)
    # When
    await semaphore.update(permit, 0)
    # Then
    assert (await semaphore.acquire(10)).size == 10


async def test_many_tasks_take_turns() -> None:
    """Case 15."""
    # Given
    semaphore, _ = bounded(10, 100)
    most = 0

    async def rounds() -> None:
        nonlocal most
        for _ in range(10):
            permit = await semaphore.acquire(1)
            most = max(most, semaphore.acquired_permits)
            await asyncio.sleep(0)
            semaphore.release(permit)

    # When
    await asyncio.gather(*(rounds() for _ in range(20)))
    # Then
    assert most == semaphore.statistics().high_water_permits == 10
    assert semaphore.acquired_permits == 0


async def test_a_timeout_lets_the_followers_go_on() -> None:
    """Case 16."""
    # Given
    semaphore, clock = bounded(5, 10, 0.25)
    holder = await semaphore.acquire(5)
    large = await started(semaphore.acquire(5))
    # When
    clock.advance(0.25)
    small = await started(semaphore.acquire(3))
    semaphore.release(holder)
    # Then
    with pytest.raises(PermitAcquireTimeoutError):
        await large
    assert (await small).size == 3


async def test_a_small_request_never_overtakes_a_large_one() -> None:
    """Case 17."""
    # Given
    semaphore, _ = bounded(10)
    holders = [await semaphore.acquire(2) for _ in range(5)]
    three, four, two = [await started(semaphore.acquire(size)) for size in (3, 4, 2)]
    order = []
    # When
    for holder in holders[1:]:
        semaphore.release(holder)
        await settle()
        order.append((three.done(), four.done(), two.done()))
    semaphore.release(holders[0])
    await settle()
    order.append((three.done(), four.done(), two.done()))
    # Then
    none, first, second, all_of_them = (
        (False, False, False),
        (True, False, False),
        (True, True, False),
        (True, True, True),
    )
    assert order == [none, first, first, second, all_of_them]


@pytest.mark.parametrize(("sizes"), [[1], [100], [10] * 100])
async def test_unbounded_grants_everything_at_once(sizes: list[int]) -> None:
    """Cases 18, 19 and 20."""
    semaphore, _ = unbounded()
    # When
    waiters = [semaphore.request(size) for size in sizes]
    # Then
    assert [waiter.result().size for waiter in waiters] == sizes


async def test_unbounded_counts_nothing() -> None:
    """Cases 21 to 24."""
    # Given
    semaphore, _ = unbounded()
    permits = [await semaphore.acquire(100) for _ in range(10)]
    # When
    semaphore.release(permits[0])
    await semaphore.acquire(100)
    # Then
    assert semaphore.available_permits == UNBOUNDED_PERMITS
    assert semaphore.acquired_permits == 0
    assert semaphore.queue_size == 0


@pytest.mark.parametrize(("before", "after"), [(10, 50), (100, 0)])
async def test_unbounded_updates_are_granted_at_once(before: int, after: int) -> None:
    """Cases 25 and 26."""
    # Given
    semaphore, _ = unbounded()
    permit = await semaphore.acquire(before)
    # When
    updated = semaphore.request_update(permit, after).result()
    # Then
    assert updated.size == after


async def test_unbounded_permits_do_not_time_out() -> None:
    """Case 27."""
    # Given
    semaphore, clock = unbounded(0.1)
    permit = await semaphore.acquire(1000)
    # When
    clock.advance(0.15)
    # Then
    assert permit.size == 1000


async def test_unbounded_never_asks_whether_a_request_is_wanted() -> None:
    """Case 28."""
    semaphore, _ = unbounded()
    # When
    permit = await semaphore.acquire(1, lambda: True)
    # Then
    assert permit.size == 1


async def test_a_cancelled_update_leaves_the_old_permit_as_it_was() -> None:
    """Case 29."""
    # Given
    semaphore, _ = bounded(10)
    permit = await semaphore.acquire(5)
    # When
    with pytest.raises(PermitAcquireCancelledError):
        await semaphore.update(permit, 10, lambda: True)
    # Then
    assert (permit.size, semaphore.acquired_permits) == (5, 5)
    updated = await semaphore.update(permit, 10)
    assert semaphore.acquired_permits == 10
    semaphore.release(permit)
    assert semaphore.acquired_permits == 10
    semaphore.release(updated)
    assert semaphore.acquired_permits == 0


async def test_cancelling_the_head_grants_its_followers() -> None:
    """Case 30; upstream notices after half the timeout, here it is the same turn."""
    # Given
    semaphore, _ = bounded(10, 10, 0.2)
    await semaphore.acquire(5)
    head = await started(semaphore.acquire(10))
    follower = await started(semaphore.acquire(5))
    # When
    head.cancel()
    await settle()
    # Then
    assert head.cancelled()
    assert (await follower).size == 5
    assert semaphore.acquired_permits == 10
