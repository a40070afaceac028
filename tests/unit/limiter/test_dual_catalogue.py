"""Upstream's cases of AsyncDualMemoryLimiterImplTest and AsyncDualMemoryLimiterUtilTest.

"Impl" and "Util" and a number in a docstring are the case. Not here: Util 6 (there is no null
permit), 7, 9, 10, 12 and 13 (writing is the connection's, see tests/unit/proto), and Impl 23 and
24 about threads, of which only the refusal after close has an equivalent.
"""

from __future__ import annotations

import asyncio

import pytest

from limiter.dual import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
)
from tests.support.manual_clock import ManualClock
from tests.support.settle import settle, started

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
BOTH = pytest.mark.parametrize("limit_type", [HEAP, DIRECT])


def dual(
    max_bytes: int = 1000, queue: int = 10, timeout_seconds: float = 5.0
) -> tuple[AsyncDualMemoryLimiter, ManualClock]:
    clock = ManualClock()
    limit = MemoryLimit(max_bytes, queue, timeout_seconds)
    return AsyncDualMemoryLimiter(limit, limit, clock), clock


def nothing_leaked(limiter: AsyncDualMemoryLimiter) -> bool:
    return all(limiter.acquired_permits(limit_type) == 0 for limit_type in LimitType)


@BOTH
async def test_a_permit_knows_its_size_and_its_budget(limit_type: LimitType) -> None:
    """Impl 1 and 2."""
    limiter, _ = dual()
    # When
    permit = await limiter.acquire(limit_type, 100)
    # Then
    assert (permit.size, permit.limit_type) == (100, limit_type)
    limiter.release(permit)
    assert permit.size == 0
    assert nothing_leaked(limiter)


@BOTH
async def test_several_permits_fit_side_by_side(limit_type: LimitType) -> None:
    """Impl 3 and 4."""
    limiter, _ = dual()
    # When
    permits = [await limiter.acquire(limit_type, 100) for _ in range(5)]
    # Then
    assert sum(permit.size for permit in permits) == limiter.acquired_permits(limit_type) == 500


async def test_an_exhausted_heap_does_not_hold_up_direct_memory() -> None:
    """Impl 5."""
    # Given
    limiter, _ = dual()
    await limiter.acquire(HEAP, 1000)
    # When
    permit = await limiter.acquire(DIRECT, 500)
    # Then
    assert permit.size == 500


@BOTH
async def test_a_request_waits_until_a_release(limit_type: LimitType) -> None:
    """Impl 6 and 7."""
    # Given
    limiter, _ = dual()
    holder = await limiter.acquire(limit_type, 1000)
    waiting = await started(limiter.acquire(limit_type, 100))
    assert not waiting.done()
    # When
    limiter.release(holder)
    # Then
    assert (await waiting).size == 100


@BOTH
async def test_a_full_queue_refuses(limit_type: LimitType) -> None:
    """Impl 8 and 9."""
    # Given
    limiter, _ = dual(queue=2)
    await limiter.acquire(limit_type, 1000)
    for _ in range(2):
        limiter.request(limit_type, 100)
    # When, Then
    with pytest.raises(PermitAcquireQueueFullError):
        await limiter.acquire(limit_type, 100)
    assert limiter.queue_size(limit_type) == 2


@BOTH
async def test_a_wait_times_out(limit_type: LimitType) -> None:
    """Impl 10 and 11."""
    # Given
    limiter, clock = dual(timeout_seconds=0.1)
    await limiter.acquire(limit_type, 1000)
    waiting = await started(limiter.acquire(limit_type, 100))
    # When
    clock.advance(0.1)
    # Then
    with pytest.raises(PermitAcquireTimeoutError):
        await waiting


@BOTH
async def test_a_request_nobody_wants_is_cancelled(limit_type: LimitType) -> None:
    """Impl 12 and 13."""
    # Given
    limiter, _ = dual(timeout_seconds=0.5)
    holder = await limiter.acquire(limit_type, 1000)
    unwanted: list[bool] = []
    waiting = await started(limiter.acquire(limit_type, 100, lambda: bool(unwanted)))
    # When
    unwanted.append(True)
    limiter.release(holder)
    # Then
    with pytest.raises(PermitAcquireCancelledError):
        await waiting
    assert nothing_leaked(limiter)


@BOTH
@pytest.mark.parametrize(("before", "after"), [(100, 200), (200, 100)])
async def test_an_update_stays_in_its_budget(
    limit_type: LimitType, before: int, after: int
) -> None:
    """Impl 14 to 17."""
    # Given
    limiter, _ = dual()
    permit = await limiter.acquire(limit_type, before)
    # When
    updated = await limiter.update(permit, after)
    # Then
    assert (updated.size, updated.limit_type) == (after, limit_type)
    assert limiter.acquired_permits(limit_type) == after


async def test_a_foreign_object_is_refused_at_once_and_changes_nothing() -> None:
    """Impl 18 and 19; here the type checker says so first."""
    # Given
    limiter, _ = dual()
    await limiter.acquire(HEAP, 100)
    # When, Then
    with pytest.raises(AttributeError):
        await limiter.update(object(), 10)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        limiter.release(object())  # type: ignore[arg-type]
    assert limiter.acquired_permits(HEAP) == 100


@pytest.mark.parametrize(
    ("tasks", "rounds", "kinds"),
    [(10, 100, [HEAP]), (10, 100, [DIRECT]), (20, 50, [HEAP, DIRECT])],
)
async def test_many_tasks_finish(tasks: int, rounds: int, kinds: list[LimitType]) -> None:
    """Impl 20, 21 and 22."""
    # Given
    limiter, _ = dual(50, queue=100)

    async def work(limit_type: LimitType) -> None:
        for _ in range(rounds):
            async with limiter.hold(limit_type, 10):
                await asyncio.sleep(0)

    # When
    await asyncio.gather(*(work(kinds[number % len(kinds)]) for number in range(tasks)))
    # Then
    assert nothing_leaked(limiter)


@BOTH
async def test_after_close_nobody_is_granted(limit_type: LimitType) -> None:
    """Impl 23 and 24."""
    # Given
    limiter, _ = dual()
    # When
    limiter.close()
    # Then
    with pytest.raises(PermitAcquireClosedError):
        await limiter.acquire(limit_type, 1)


async def test_the_getters_tell_the_budgets_apart() -> None:
    """Impl 25 and 26."""
    # Given
    limiter, _ = dual()
    # When
    await limiter.acquire(HEAP, 250)
    await limiter.acquire(DIRECT, 350)
    # Then
    assert (limiter.acquired_permits(HEAP), limiter.available_permits(HEAP)) == (250, 750)
    assert (limiter.acquired_permits(DIRECT), limiter.available_permits(DIRECT)) == (350, 650)


@BOTH
async def test_releases_grant_all_who_wait(limit_type: LimitType) -> None:
    """Impl 27 and 28."""
    # Given
    limiter, _ = dual()
    holders = [await limiter.acquire(limit_type, 200) for _ in range(5)]
    waiting = [limiter.request(limit_type, 150) for _ in range(3)]
    # When
    for holder in holders:
        limiter.release(holder)
    # Then
    assert [waiter.result().size for waiter in waiting] == [150] * 3


async def test_an_outer_release_while_an_update_is_under_way_leaks_nothing() -> None:
    """Impl 29."""
    # Given
    limiter, _ = dual(100_000)
    for _ in range(100):
        outer = await limiter.acquire(HEAP, 100)
        inner = asyncio.get_running_loop().create_task(limiter.update(outer, 200))
        # When
        limiter.release(outer)
        limiter.release(await inner)
    # Then
    assert limiter.available_permits(HEAP) == 100_000
    assert nothing_leaked(limiter)


@BOTH
async def test_a_hold_ends_with_its_block(limit_type: LimitType) -> None:
    """Util 1 and 5."""
    # Given
    limiter, _ = dual()
    # When
    async with limiter.hold(limit_type, 100) as hold:
        await asyncio.sleep(0)
        held = hold.size, limiter.acquired_permits(limit_type)
    # Then
    assert held == (100, 100)
    assert nothing_leaked(limiter)


async def test_a_hold_that_is_refused_never_enters_its_block() -> None:
    """Util 2, 8 and 11."""
    # Given
    limiter, clock = dual(100, timeout_seconds=0.1)
    await limiter.acquire(DIRECT, 100)
    entered = []

    async def work() -> None:
        async with limiter.hold(DIRECT, 50):
            entered.append(True)

    waiting = await started(work())
    # When
    clock.advance(0.1)
    # Then
    with pytest.raises(PermitAcquireTimeoutError):
        await waiting
    assert not entered
    assert limiter.acquired_permits(DIRECT) == 100


@pytest.mark.parametrize("grows_first", [False, True])
async def test_an_error_in_the_block_passes_through_and_leaks_nothing(grows_first: bool) -> None:
    """Util 3, 4, 17 and 18."""
    # Given
    limiter, _ = dual()

    async def work() -> None:
        async with limiter.hold(HEAP, 100) as hold:
            if grows_first:
                await hold.resize(200)
            raise ZeroDivisionError

    # When
    with pytest.raises(ZeroDivisionError):
        await work()
    # Then
    assert nothing_leaked(limiter)


async def test_twenty_holds_at_once_each_get_their_own_result() -> None:
    """Util 14."""
    # Given
    limiter, _ = dual(100, queue=20)

    async def work(number: int) -> int:
        async with limiter.hold(HEAP, 50):
            await asyncio.sleep(0)
            return number

    # When
    results = await asyncio.gather(*(work(number) for number in range(20)))
    # Then
    assert results == list(range(20))
    assert nothing_leaked(limiter)


@pytest.mark.parametrize(("first", "second"), [(50, 100), (100, 50)])
async def test_ten_thousand_resized_holds_leak_nothing(first: int, second: int) -> None:
    """Util 15 and 16."""
    # Given
    limiter, _ = dual(10_000)
    # When
    for _ in range(10_000):
        async with limiter.hold(HEAP, first) as hold:
            await hold.resize(second)
    # Then
    assert limiter.available_permits(HEAP) == 10_000


async def test_a_cancelled_task_leaves_no_place_in_the_queue() -> None:
    """What upstream's dual limiter leaks: its future does not reach the semaphore."""
    # Given
    limiter, _ = dual()
    holder = await limiter.acquire(HEAP, 1000)
    waiting = await started(limiter.acquire(HEAP, 100))
    # When
    waiting.cancel()
    await settle()
    limiter.release(holder)
    # Then
    assert limiter.queue_size(HEAP) == 0
    assert nothing_leaked(limiter)
