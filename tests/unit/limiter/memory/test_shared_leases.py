"""Leases with many sharers: one charge, returned by the last sharer."""

import asyncio

import pytest

from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
)
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.shared_leases import SharedLeases
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started

DIRECT = LimitType.DIRECT_MEMORY


class Budget:
    """Leases on 1,000 bytes, with probes for tests."""

    def __init__(self, queue: int = 10) -> None:
        self.clock = ManualClock()
        limit = MemoryLimit(1000, queue, 5.0)
        self.limiter = AsyncDualMemoryLimiter(limit, limit, self.clock)
        self.leases = SharedLeases(self.limiter, DIRECT)

    @property
    def used(self) -> int:
        return self.limiter.acquired_permits(DIRECT)


@pytest.fixture
def budget() -> Budget:
    return Budget()


async def test_fifty_sharers_are_charged_once_and_the_last_releases_the_charge(
    budget: Budget,
) -> None:
    references = [await budget.leases.acquire("answer", 600, number) for number in range(50)]
    assert (budget.used, len(budget.leases)) == (600, 1)
    for reference in references[:-1]:
        reference.release()
    used_by_the_last = budget.used, references[-1].size
    references[-1].release()
    assert used_by_the_last == (600, 600)
    assert (budget.used, len(budget.leases), references[-1].size) == (0, 0, 0)


async def test_when_the_first_of_fifty_waiting_sharers_is_cancelled_the_rest_are_granted(
    budget: Budget,
) -> None:
    blocker = await budget.limiter.acquire(DIRECT, 1000)
    waiting = [await started(budget.leases.acquire("answer", 600, number)) for number in range(50)]
    waiting[0].cancel()
    await settle()
    budget.limiter.release(blocker)
    references = await asyncio.gather(*waiting[1:])
    assert waiting[0].cancelled()
    assert [reference.size for reference in references] == [600] * 49
    assert budget.used == 600


async def test_a_reference_is_released_once(budget: Budget) -> None:
    first = await budget.leases.acquire("answer", 600, "a")
    second = await budget.leases.acquire("answer", 600, "b")
    first.release()
    first.release()
    assert (budget.used, second.size, first.size) == (600, 600, 0)


async def test_a_refused_lease_fails_all_of_its_waiters_and_is_forgotten(budget: Budget) -> None:
    blocker = await budget.limiter.acquire(DIRECT, 1000)
    waiting = [await started(budget.leases.acquire("answer", 600, number)) for number in range(3)]
    budget.clock.advance(5.0)
    forgotten = len(budget.leases) == 0
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert forgotten
    assert [type(result) for result in results] == [PermitAcquireTimeoutError] * 3
    budget.limiter.release(blocker)
    assert (await budget.leases.acquire("answer", 600, "later")).size == 600


async def test_a_reference_after_a_refusal_and_before_its_delivery_opens_a_new_lease() -> None:
    budget = Budget()
    blocker = await budget.limiter.acquire(DIRECT, 1000)
    refused = await started(budget.leases.acquire("answer", 600, "early"))
    budget.clock.advance(5.0)
    late = budget.leases.reference("answer", 600, "late")
    with pytest.raises(PermitAcquireTimeoutError):
        await refused
    budget.limiter.release(blocker)
    assert late.size == 600
    assert len(budget.leases) == 1


@pytest.mark.parametrize(
    ("size", "error"), [(1001, PermitTooLargeError), (600, PermitAcquireQueueFullError)]
)
async def test_an_immediately_refused_lease_is_forgotten(size: int, error: type[Exception]) -> None:
    budget = Budget(queue=1)
    await budget.limiter.acquire(DIRECT, 1000)
    budget.limiter.request(DIRECT, 1)
    with pytest.raises(error):
        await budget.leases.acquire("answer", size, "a")
    assert len(budget.leases) == 0
    assert budget.leases._owned == {}


async def test_cancel_owner_releases_all_references_of_an_owner_in_the_same_turn(
    budget: Budget,
) -> None:
    mine = await budget.leases.acquire("mine", 400, "gone")
    ours = await budget.leases.acquire("ours", 600, "gone")
    kept = await budget.leases.acquire("ours", 600, "stays")
    follower = budget.limiter.request(DIRECT, 400)
    budget.leases.cancel_owner("gone")
    assert follower.done
    assert (mine.size, ours.size, kept.size) == (0, 0, 600)
    assert len(budget.leases) == 1


async def test_cancel_owner_ends_a_wait_and_frees_its_queue_place(budget: Budget) -> None:
    await budget.limiter.acquire(DIRECT, 1000)
    waiting = await started(budget.leases.acquire("answer", 600, "gone"))
    budget.leases.cancel_owner("gone")
    assert budget.limiter.queue_size(DIRECT) == 0
    with pytest.raises(PermitAcquireCancelledError):
        await waiting


async def test_a_released_reference_is_not_granted(budget: Budget) -> None:
    reference = budget.leases.reference("answer", 600, "a")
    reference.release()
    with pytest.raises(PermitAcquireCancelledError):
        await reference.granted()


async def test_a_late_sharer_joins_a_granted_lease_without_waiting(budget: Budget) -> None:
    await budget.leases.acquire("answer", 600, "early")
    late = budget.leases.reference("answer", 600, "late")
    await late.granted()
    assert (late.size, budget.used) == (600, 600)


async def test_a_lease_requested_after_the_last_release_is_a_new_lease(budget: Budget) -> None:
    (await budget.leases.acquire("answer", 600, "a")).release()
    again = await budget.leases.acquire("answer", 700, "b")
    assert again.size == budget.used == 700


async def test_a_grant_coinciding_with_the_last_sharers_cancellation_is_released() -> None:
    budget = Budget()
    blocker = await budget.limiter.acquire(DIRECT, 1000)
    waiting = await started(budget.leases.acquire("answer", 600, "a"))
    budget.limiter.release(blocker)
    waiting.cancel()
    await settle()
    assert waiting.cancelled()
    assert (budget.used, len(budget.leases)) == (0, 0)


async def test_leases_of_different_keys_are_charged_separately(budget: Budget) -> None:
    await budget.leases.acquire("one", 300, "a")
    await budget.leases.acquire("two", 400, "a")
    assert (budget.used, len(budget.leases)) == (700, 2)


async def test_two_growths_of_a_reference_are_both_cancelled_on_its_release() -> None:
    budget = Budget()
    reference = budget.leases.reference("list", 1, "one")
    await budget.limiter.acquire(DIRECT, 999)
    growing = [await started(reference.grow(size)) for size in (3, 2)]
    reference.release()
    ended = await asyncio.gather(*growing, return_exceptions=True)
    assert [type(error) for error in ended] == [PermitAcquireCancelledError] * 2
    assert budget.used == 999
