"""Rules of AsyncDualMemoryLimiter and MemoryHold beyond upstream's cases."""

import pytest

from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
)
from limiter.memory.dual_limiter import (
    AsyncDualMemoryLimiter,
    DualStatistics,
    LimitType,
    MemoryHold,
    MemoryLimit,
)
from limiter.permits.permit import AcquireOutcome, SemaphoreStatistics
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY


def dual(
    heap_bytes: int = 1000, direct_bytes: int = 1000, queue: int = 10
) -> AsyncDualMemoryLimiter:
    return AsyncDualMemoryLimiter(
        MemoryLimit(heap_bytes, queue, 5.0), MemoryLimit(direct_bytes, queue, 5.0), ManualClock()
    )


async def test_an_update_without_waiting_grows_a_permit_that_fits() -> None:
    limiter = dual()
    permit = await limiter.acquire(HEAP, 100)
    grown = limiter.try_update(permit, 1000)
    assert grown is not None
    assert (grown.size, permit.size) == (1000, 0)


async def test_an_update_without_waiting_that_does_not_fit_changes_nothing() -> None:
    limiter = dual()
    permit, _ = await limiter.acquire(HEAP, 100), await limiter.acquire(HEAP, 900)
    grown = limiter.try_update(permit, 101)
    assert grown is None
    assert permit.size == 100
    assert (limiter.acquired_permits(HEAP), limiter.queue_size(HEAP)) == (1000, 0)


async def test_an_update_without_waiting_does_not_overtake_a_waiter() -> None:
    limiter = dual()
    permit, _ = await limiter.acquire(HEAP, 100), await limiter.acquire(HEAP, 800)
    limiter.request(HEAP, 500)
    assert limiter.try_update(permit, 150) is None
    assert limiter.queue_size(HEAP) == 1


async def test_an_update_without_waiting_raises_if_too_large_or_if_the_queue_is_full() -> None:
    limiter = dual(queue=1)
    permit, _ = await limiter.acquire(HEAP, 100), await limiter.acquire(HEAP, 900)
    limiter.request(HEAP, 1)
    with pytest.raises(PermitTooLargeError):
        limiter.try_update(permit, 1001)
    with pytest.raises(PermitAcquireQueueFullError):
        limiter.try_update(permit, 101)
    assert permit.size == 100


async def test_a_hold_that_fails_to_grow_keeps_and_then_releases_its_old_amount() -> None:
    clock = ManualClock()
    limit = MemoryLimit(1000, 10, 5.0)
    limiter = AsyncDualMemoryLimiter(limit, limit, clock)
    await limiter.acquire(HEAP, 800)
    sizes = []

    async def work() -> None:
        async with limiter.hold(HEAP, 100) as hold:
            try:
                await hold.resize(300)
            finally:
                sizes.append(hold.size)

    working = await started(work())
    clock.advance(5.0)
    with pytest.raises(PermitAcquireTimeoutError):
        await working
    assert sizes == [100]
    assert limiter.acquired_permits(HEAP) == 800


async def test_a_hold_cancelled_during_growth_releases_everything() -> None:
    limiter = dual()
    other = await limiter.acquire(HEAP, 900)

    async def work() -> None:
        async with limiter.hold(HEAP, 100) as hold:
            await hold.resize(300)

    working = await started(work())
    limiter.release(other)
    working.cancel()
    await settle()
    assert working.cancelled()
    assert limiter.acquired_permits(HEAP) == 0


async def test_a_hold_can_be_resized_only_inside_its_block() -> None:
    hold: MemoryHold = dual().hold(HEAP, 100)
    assert hold.size == 0
    with pytest.raises(RuntimeError, match="outside"):
        await hold.resize(200)


async def test_a_hold_that_was_never_entered_releases_nothing() -> None:
    limiter = dual()
    await limiter.hold(HEAP, 100).__aexit__(None, None, None)
    assert limiter.acquired_permits(HEAP) == 0


async def test_cancel_owner_applies_to_both_budgets() -> None:
    limiter = dual(100, 200)
    await limiter.acquire(HEAP, 100, owner="gone")
    await limiter.acquire(DIRECT, 200, owner="gone")
    waiting = limiter.request(HEAP, 1, owner="gone")
    limiter.cancel_owner("gone")
    assert isinstance(waiting.error, PermitAcquireCancelledError)
    assert [limiter.acquired_permits(one) for one in LimitType] == [0, 0]


async def test_an_abandoned_request_holds_no_permits() -> None:
    limiter = dual(100)
    granted, waiting = limiter.request(HEAP, 100), limiter.request(HEAP, 50)
    limiter.abandon(HEAP, granted)
    assert waiting.done
    limiter.abandon(HEAP, waiting)
    assert limiter.acquired_permits(HEAP) == 0


async def test_statistics_and_observer_distinguish_the_budgets() -> None:
    seen: list[tuple[LimitType, AcquireOutcome]] = []
    limiter = dual(100, 200, queue=3)
    await limiter.acquire(HEAP, 1)  # not observed yet
    limiter.statistics()  # earlier grants have been reported
    limiter.observe_with(
        lambda limit_type, outcome, _, count: seen.extend([(limit_type, outcome)] * count)
    )
    await limiter.acquire(HEAP, 10)
    await limiter.acquire(DIRECT, 20)
    statistics = limiter.statistics()
    assert seen == [(HEAP, AcquireOutcome.GRANTED), (DIRECT, AcquireOutcome.GRANTED)]
    assert statistics == DualStatistics(
        SemaphoreStatistics(100, 11, 89, 0, 3, 11), SemaphoreStatistics(200, 20, 180, 0, 3, 20)
    )


async def test_a_single_budget_may_be_unbounded() -> None:
    limiter = dual(0, 100)
    permit = await limiter.acquire(HEAP, 10**12)
    assert permit.size == 10**12
    assert limiter.acquired_permits(HEAP) == 0
    with pytest.raises(PermitTooLargeError):
        await limiter.acquire(DIRECT, 101)
