"""Upstream's 29 cases of AsyncDualMemoryLimiterImplTest, and the cases of UtilTest about permits.

``hold`` corresponds to upstream's withAcquiredPermits and withUpdatedPermits: the function is the
block, the releaser the block's end, the error handler an ``except`` around the block. The cases
about writing under a permit (7 to 13) are in tests/unit/broker/listing/test_handler_catalogue.py.

AsyncDualMemoryLimiterUtilTest case 6, a null permit counting as acquired, has no meaning here: a
wait ends with a permit or an error. The nearest case is a hold that was never granted, which
releases no bytes.

Under both policies; each request has a separate owner, because policy fair has a share per owner.
"""

import asyncio
from contextlib import AsyncExitStack

import pytest

from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireError,
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
)
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit, MemoryPermit
from limiter.permits.permit import Permit
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
BOTH = pytest.mark.parametrize("limit_type", [HEAP, DIRECT], ids=["heap", "direct"])
FIFO, FAIR = AdmissionRules(AdmissionPolicy.FIFO), AdmissionRules(AdmissionPolicy.FAIR)
RULES = pytest.mark.parametrize("rules", [FIFO, FAIR], ids=["fifo", "fair"])


def dual(
    max_bytes: int = 1000,
    queue: int = 10,
    timeout_seconds: float = 5.0,
    rules: AdmissionRules = FIFO,
) -> tuple[AsyncDualMemoryLimiter, ManualClock]:
    clock = ManualClock()
    limit = MemoryLimit(max_bytes, queue, timeout_seconds)
    return AsyncDualMemoryLimiter(limit, limit, clock, rules=rules), clock


def ample(rules: AdmissionRules) -> AsyncDualMemoryLimiter:
    """The limiter of UtilTest."""
    return dual(10_000, 100, 5.0, rules)[0]


def nothing_leaked(limiter: AsyncDualMemoryLimiter) -> bool:
    return all(limiter.acquired_permits(limit_type) == 0 for limit_type in LimitType)


# -- AsyncDualMemoryLimiterImplTest ---------------------------------------------------------------


@RULES
@BOTH
async def test_a_permit_has_its_size_and_its_budget(limit_type, rules) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest cases 1 and 2."""
    limiter, _ = dual(rules=rules)
    permit = await limiter.acquire(limit_type, 100)
    assert (permit.size, permit.limit_type) == (100, limit_type)
    limiter.release(permit)
    assert permit.size == 0
    assert nothing_leaked(limiter)


@RULES
@BOTH
async def test_several_permits_fit_side_by_side(limit_type, rules) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest cases 3 and 4."""
    limiter, _ = dual(rules=rules)
    permits = [await limiter.acquire(limit_type, 100, owner=number) for number in range(5)]
    assert [permit.size for permit in permits] == [100] * 5
    assert limiter.acquired_permits(limit_type) == 500


@RULES
async def test_an_exhausted_heap_budget_does_not_block_direct_memory(rules: AdmissionRules) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest case 5."""
    limiter, _ = dual(rules=rules)
    await limiter.acquire(HEAP, 1000)
    waiter = limiter.request(DIRECT, 500)
    assert waiter.result().size == limiter.acquired_permits(DIRECT) == 500


@RULES
@BOTH
async def test_a_request_waits_until_a_release(limit_type, rules) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest cases 6 and 7."""
    limiter, _ = dual(rules=rules)
    holder = await limiter.acquire(limit_type, 1000, owner="holder")
    waiting = await started(limiter.acquire(limit_type, 100, owner="waiting"))
    assert not waiting.done()
    limiter.release(holder)
    assert (await waiting).size == 100


@RULES
@BOTH
async def test_a_full_queue_refuses_a_request(limit_type: LimitType, rules: AdmissionRules) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest cases 8 and 9."""
    limiter, _ = dual(queue=2, rules=rules)
    await limiter.acquire(limit_type, 1000, owner="holder")
    waiting = [limiter.request(limit_type, 100, owner=number) for number in range(2)]
    with pytest.raises(PermitAcquireQueueFullError):
        limiter.request(limit_type, 100, owner="third")
    assert limiter.queue_size(limit_type) == 2
    assert not any(waiter.done for waiter in waiting)


@RULES
@BOTH
async def test_a_waiter_is_refused_after_its_timeout(
    limit_type: LimitType, rules: AdmissionRules
) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest cases 10 and 11."""
    limiter, clock = dual(timeout_seconds=0.1, rules=rules)
    await limiter.acquire(limit_type, 1000, owner="holder")
    waiting = await started(limiter.acquire(limit_type, 100, owner="waiting"))
    clock.advance(0.1)
    with pytest.raises(PermitAcquireTimeoutError):
        await waiting


@RULES
@BOTH
async def test_a_waiter_that_is_no_longer_wanted_is_cancelled(limit_type, rules) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest cases 12 and 13."""
    limiter, _ = dual(timeout_seconds=0.5, rules=rules)
    holder = await limiter.acquire(limit_type, 1000, owner="holder")
    unwanted: list[bool] = []
    waiting = await started(limiter.acquire(limit_type, 100, lambda: bool(unwanted), "waiting"))
    unwanted.append(True)
    limiter.release(holder)
    with pytest.raises(PermitAcquireCancelledError):
        await waiting
    assert nothing_leaked(limiter)


@RULES
@BOTH
@pytest.mark.parametrize(("before", "after"), [(100, 200), (200, 100)])
async def test_an_update_stays_in_the_budget_of_its_permit(
    limit_type, before, after, rules
) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest cases 14, 15, 16 and 17."""
    limiter, _ = dual(rules=rules)
    permit = await limiter.acquire(limit_type, before)
    updated = await limiter.update(permit, after)
    assert (updated.size, updated.limit_type) == (after, limit_type)
    assert limiter.acquired_permits(limit_type) == after


@pytest.mark.parametrize("foreign", [object(), Permit(100)], ids=["object", "a semaphore's"])
async def test_a_foreign_permit_is_refused_immediately_and_changes_nothing(foreign: object) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest cases 18 and 19; the type checker says so first."""
    limiter, _ = dual()
    await limiter.acquire(HEAP, 100)
    with pytest.raises(TypeError, match="Invalid permit type"):
        await limiter.update(foreign, 10)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Invalid permit type"):
        limiter.release(foreign)  # type: ignore[arg-type]
    assert limiter.acquired_permits(HEAP) == 100


@RULES
@pytest.mark.parametrize("max_bytes", [1000, 50], ids=["ample", "scarce"])
@pytest.mark.parametrize(
    ("tasks", "rounds", "kinds"),
    [(10, 100, [HEAP]), (10, 100, [DIRECT]), (20, 50, [HEAP, DIRECT])],
    ids=["heap", "direct", "mixed"],
)
async def test_many_concurrent_tasks_finish_within_the_limit(
    tasks, rounds, kinds, max_bytes, rules
) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest cases 20, 21 and 22; tasks share scarce memory."""
    limiter, _ = dual(max_bytes, rules=rules)
    finished = 0

    async def work(owner: int, limit_type: LimitType) -> None:
        nonlocal finished
        for _ in range(rounds):
            async with limiter.hold(limit_type, 10, owner):
                await asyncio.sleep(0)
            finished += 1

    await asyncio.gather(*(work(number, kinds[number % len(kinds)]) for number in range(tasks)))
    assert finished == tasks * rounds
    statistics = limiter.statistics()
    assert statistics.heap.high_water_permits == (min(100, max_bytes) if HEAP in kinds else 0)
    assert nothing_leaked(limiter)


@RULES
@BOTH
async def test_after_close_a_request_is_refused(
    limit_type: LimitType, rules: AdmissionRules
) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest case 23: the clock is the test's."""
    limit = MemoryLimit(1000, 10, 5.0)
    limiter = AsyncDualMemoryLimiter(limit, limit, rules=rules)
    limiter.close()
    with pytest.raises(PermitAcquireClosedError):
        await limiter.acquire(limit_type, 1)


@RULES
@BOTH
async def test_closing_a_limiter_does_not_affect_another_limiter_on_the_same_clock(
    limit_type, rules
) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest case 24: the clock was given."""
    closed, clock = dual(rules=rules)
    limit = MemoryLimit(1000, 10, 5.0)
    other = AsyncDualMemoryLimiter(limit, limit, clock, rules=rules)
    for limiter in (closed, other):
        await limiter.acquire(limit_type, 1000, owner="holder")
        limiter.request(limit_type, 100, "waiting")
    closed.close()
    with pytest.raises(PermitAcquireClosedError):
        await closed.acquire(limit_type, 1)
    clock.advance(5.0)
    assert (closed.queue_size(limit_type), other.queue_size(limit_type)) == (0, 0)


@RULES
async def test_acquired_and_available_permits_are_separate_for_each_budget(
    rules: AdmissionRules,
) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest cases 25 and 26."""
    limiter, _ = dual(rules=rules)
    await limiter.acquire(HEAP, 250)
    await limiter.acquire(DIRECT, 350)
    assert (limiter.acquired_permits(HEAP), limiter.available_permits(HEAP)) == (250, 750)
    assert (limiter.acquired_permits(DIRECT), limiter.available_permits(DIRECT)) == (350, 650)


@RULES
@BOTH
async def test_releases_serve_all_waiters(limit_type: LimitType, rules: AdmissionRules) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest cases 27 and 28."""
    limiter, _ = dual(rules=rules)
    holders = [await limiter.acquire(limit_type, 200, owner=number) for number in range(5)]
    waiting = [limiter.request(limit_type, 150, number) for number in range(5, 8)]
    assert not any(waiter.done for waiter in waiting)
    for holder in holders:
        limiter.release(holder)
    assert [waiter.result().size for waiter in waiting] == [150] * 3
    assert limiter.acquired_permits(limit_type) == 450


@RULES
@pytest.mark.parametrize("others", [0, 99_900], ids=["granted", "waiting"])
@pytest.mark.parametrize("turns", [0, 1], ids=["not yet asked", "asked"])
async def test_releasing_the_old_permit_during_an_update_leaks_nothing(
    turns: int, others: int, rules: AdmissionRules
) -> None:
    """Upstream: AsyncDualMemoryLimiterImplTest case 29; also where the growth has to wait."""
    limiter, _ = dual(100_000, rules=rules)
    for _ in range(100):
        other = await limiter.acquire(HEAP, others, owner="other")
        outer = await limiter.acquire(HEAP, 100, owner="outer")
        inner = asyncio.get_running_loop().create_task(limiter.update(outer, 200))
        for _ in range(turns):
            await asyncio.sleep(0)
        limiter.release(outer)
        await settle()
        # The outer scope's permit is gone, and cannot grow
        assert inner.done() is (others == 0)
        limiter.release(other)
        updated = await inner
        assert (outer.size, updated.size, limiter.acquired_permits(HEAP)) == (0, 200, 200)
        limiter.release(updated)
    assert limiter.available_permits(HEAP) == 100_000
    assert nothing_leaked(limiter)


# -- AsyncDualMemoryLimiterUtilTest ---------------------------------------------------------------


@RULES
@BOTH
async def test_a_hold_releases_its_permits_at_the_end_of_its_block(
    limit_type: LimitType, rules: AdmissionRules
) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 1."""
    limiter = ample(rules)

    async def work() -> str:
        async with limiter.hold(limit_type, 100):
            assert limiter.acquired_permits(limit_type) == 100
            return "success"

    assert await work() == "success"
    assert nothing_leaked(limiter)


@RULES
async def test_a_refused_hold_raises_a_catchable_error_and_its_block_is_never_entered(
    rules,
) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 2."""
    limiter, clock = dual(10_000, 100, 5.0, rules)
    await limiter.acquire(HEAP, 10_000, owner="holder")
    seen: list[Exception] = []

    async def work() -> str:
        try:
            async with limiter.hold(HEAP, 100, "refused"):
                return "success"
        except PermitAcquireError as error:
            seen.append(error)
            return "handled"

    waiting = await started(work())
    clock.advance(5.0)
    assert await waiting == "handled"
    assert [type(error) for error in seen] == [PermitAcquireTimeoutError]
    assert limiter.acquired_permits(HEAP) == 10_000


@RULES
async def test_a_hold_that_was_never_granted_releases_nothing(rules: AdmissionRules) -> None:
    limiter = ample(rules)
    await limiter.acquire(HEAP, 100)
    async with AsyncExitStack() as stack:
        hold = stack.push_async_exit(limiter.hold(HEAP, 100))
    assert hold.size == 0
    assert limiter.acquired_permits(HEAP) == 100


@RULES
async def test_an_error_in_the_block_propagates_and_leaks_no_permits(rules) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest cases 3 and 17."""
    limiter = ample(rules)

    async def work() -> None:
        async with limiter.hold(HEAP, 100):
            raise ZeroDivisionError("in the block")

    with pytest.raises(ZeroDivisionError, match="in the block"):
        await work()
    assert limiter.available_permits(HEAP) == 10_000


@RULES
async def test_an_error_awaited_in_the_block_propagates_and_leaks_no_permits(rules) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 4."""
    limiter = ample(rules)
    awaited: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work() -> str:
        async with limiter.hold(HEAP, 100):
            return await awaited

    working = await started(work())
    held = limiter.acquired_permits(HEAP)
    awaited.set_exception(ZeroDivisionError("later"))
    with pytest.raises(ZeroDivisionError, match="later"):
        await working
    assert held == 100
    assert limiter.available_permits(HEAP) == 10_000


@RULES
async def test_an_error_after_a_resize_propagates_and_leaks_no_permits(rules) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 18."""
    limiter = ample(rules)
    held = 0

    async def work() -> None:
        nonlocal held
        async with limiter.hold(HEAP, 100) as hold:
            await hold.resize(200)
            held = limiter.acquired_permits(HEAP)
            raise ZeroDivisionError("after the resize")

    with pytest.raises(ZeroDivisionError, match="after the resize"):
        await work()
    assert held == 200
    assert limiter.available_permits(HEAP) == 10_000


@RULES
async def test_a_hold_lasts_until_the_awaited_work_in_its_block_ends(rules: AdmissionRules) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 5."""
    limiter = ample(rules)
    awaited: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work() -> str:
        async with limiter.hold(HEAP, 100):
            return await awaited

    working = await started(work())
    held = limiter.acquired_permits(HEAP)
    awaited.set_result("done")
    assert await working == "done"
    assert held == 100
    assert nothing_leaked(limiter)


@RULES
async def test_a_waiter_for_direct_memory_that_is_no_longer_wanted_is_cancelled(
    rules: AdmissionRules,
) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 11: its flag, read by the limiter."""
    limiter, _ = dual(100, 100, 5.0, rules)
    holder = await limiter.acquire(DIRECT, 100, owner="holder")
    unwanted: list[bool] = []
    waiting = await started(limiter.acquire(DIRECT, 50, lambda: bool(unwanted), "waiting"))
    unwanted.append(True)
    assert not waiting.done()
    limiter.release(holder)
    with pytest.raises(PermitAcquireCancelledError):
        await waiting
    assert nothing_leaked(limiter)


@RULES
@pytest.mark.parametrize("max_bytes", [10_000, 100], ids=["ample", "scarce"])
async def test_twenty_concurrent_holds_return_their_own_results_and_each_is_released_once(
    max_bytes: int, rules: AdmissionRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 14; holds share scarce memory."""
    limiter, _ = dual(max_bytes, 100, 5.0, rules)
    released: list[int] = []

    def counting(permit: MemoryPermit) -> None:
        released.append(permit.size)
        AsyncDualMemoryLimiter.release(limiter, permit)

    monkeypatch.setattr(limiter, "release", counting)

    async def work(number: int) -> int:
        async with limiter.hold(HEAP, 50, number):
            await asyncio.sleep(0)
            return number

    results = await asyncio.gather(*(work(number) for number in range(20)))
    assert results == list(range(20))
    assert released == [50] * 20
    assert nothing_leaked(limiter)


@RULES
@pytest.mark.parametrize(("first", "second"), [(50, 100), (100, 50)])
async def test_ten_thousand_resized_holds_leak_no_permits(first, second, rules) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest cases 15 and 16."""
    limiter = ample(rules)
    for _ in range(10_000):
        async with limiter.hold(HEAP, first) as hold:
            await hold.resize(second)
    assert limiter.available_permits(HEAP) == 10_000
    assert limiter.statistics().heap.high_water_permits == 100


# -- leaks of upstream ----------------------------------------------------------------------------


async def test_a_cancelled_task_leaves_the_queue_of_waiters() -> None:
    """A leak of upstream's dual limiter: the future does not reach the semaphore."""
    limiter, _ = dual()
    holder = await limiter.acquire(HEAP, 1000)
    waiting = await started(limiter.acquire(HEAP, 100))
    waiting.cancel()
    await settle()
    limiter.release(holder)
    assert limiter.queue_size(HEAP) == 0
    assert nothing_leaked(limiter)
