"""A response's memory: charged singly, or once for all senders of the same bytes."""

import pytest

from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
)
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.response_memory import PrivateMemory, ResponseMemory, SharedMemory
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import started

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY


class Budget:
    """1,000 bytes of each."""

    def __init__(self, kind: type[ResponseMemory] = SharedMemory) -> None:
        self.clock = ManualClock()
        limit = MemoryLimit(1000, 10, 5.0)
        self.limiter = AsyncDualMemoryLimiter(limit, limit, self.clock)
        self.memory = kind(self.limiter)

    @property
    def used(self) -> tuple[int, int]:
        return self.limiter.acquired_permits(HEAP), self.limiter.acquired_permits(DIRECT)


@pytest.fixture(params=[PrivateMemory, SharedMemory])
def budget(request: pytest.FixtureRequest) -> Budget:
    return Budget(request.param)


async def test_heap_memory_is_held_for_the_block(budget: Budget) -> None:
    memory = budget.memory
    async with memory.heap("listing", 100, "cnx"):
        inside = budget.used
    assert inside == (100, 0)
    assert budget.used == (0, 0)


async def test_direct_memory_is_held_until_released(budget: Budget) -> None:
    memory = budget.memory
    give_back = await memory.direct("answer", 100, "cnx")
    inside = budget.used
    give_back()
    give_back()
    assert inside == (0, 100)
    assert budget.used == (0, 0)


@pytest.mark.parametrize(("kind", "charged"), [(PrivateMemory, 300), (SharedMemory, 100)])
async def test_three_senders_of_the_same_bytes_are_charged_once_if_memory_is_shared(
    kind, charged
) -> None:
    budget = Budget(kind)
    memory = budget.memory
    async with (
        memory.heap("listing", 100, 1),
        memory.heap("listing", 100, 2),
        memory.heap("listing", 100, 3),
    ):
        returns = [await memory.direct("answer", 100, owner) for owner in (1, 2, 3)]
        used = budget.used
        for give_back in returns:
            give_back()
    assert used == (charged, charged)
    assert budget.used == (0, 0)


# -- direct memory ahead of an answer -------------------------------------------------------------


async def test_memory_acquired_ahead_pays_for_a_response_until_that_is_released(budget) -> None:
    ahead = await budget.memory.direct_ahead("question", 100, "cnx")
    give_back = ahead.pay("answer", 90)
    ahead.release()
    # The charge belongs to the answer
    assert give_back is not None
    assert budget.used == (0, 100)
    assert ahead.pay("answer", 90) is None
    give_back()
    assert budget.used == (0, 0)


async def test_memory_acquired_ahead_that_pays_for_no_response_is_released(budget: Budget) -> None:
    ahead = await budget.memory.direct_ahead("question", 100, "cnx")
    too_large = ahead.pay("answer", 101)
    ahead.release()
    ahead.release()
    assert too_large is None
    assert budget.used == (0, 0)


async def test_memory_acquired_ahead_by_a_cancelled_owner_pays_for_no_response(
    budget: Budget,
) -> None:
    memory = budget.memory
    ahead = await memory.direct_ahead("question", 100, "cnx")
    memory.cancel_owner("cnx")
    assert ahead.pay("answer", 100) is None
    assert budget.used == (0, 0)


async def test_owners_acquiring_the_same_memory_ahead_pay_for_the_same_response_once() -> None:
    budget = Budget()
    memory = budget.memory
    first, second, third = [await memory.direct_ahead("question", 100, one) for one in (1, 2, 3)]
    # The list of the third has changed
    paid = [first.pay("answer", 100), second.pay("answer", 100), third.pay("newer", 100)]
    third.release()
    assert paid[2] is None
    assert budget.used == (0, 100)
    for give_back in paid[:2]:
        assert give_back is not None
        give_back()
    assert budget.used == (0, 0)


async def test_a_response_already_paid_for_by_another_owner_is_not_paid_for_twice() -> None:
    budget = Budget()
    memory = budget.memory
    sending = await memory.direct("answer", 100, 1)
    ahead = await memory.direct_ahead("question", 100, 2)
    paid = ahead.pay("answer", 100)
    joined = memory.transient(DIRECT, "answer", 100, 2)
    assert paid is None
    assert joined is not None
    give_back = joined.stay()
    ahead.release()
    assert budget.used == (0, 100)
    sending()
    give_back()
    assert budget.used == (0, 0)


@pytest.mark.parametrize("sizes", [[300], [300, 500], [300, 150], [50]])
async def test_a_resized_hold_is_released_at_the_end_of_its_block(
    budget: Budget, sizes: list[int]
) -> None:
    memory = budget.memory
    used = []
    async with memory.heap("listing", 100, "cnx") as hold:
        for size in sizes:
            await hold.resize(size)
            used.append(budget.used[0])
    # Shared memory does not shrink
    most = [max([100, *sizes[: number + 1]]) for number in range(len(sizes))]
    assert used == (most if memory.shares else sizes)
    assert budget.used == (0, 0)


async def test_the_shared_amount_grows_once_for_all_holders_that_need_more() -> None:
    budget = Budget()
    memory = budget.memory
    async with memory.heap("listing", 100, 1) as one, memory.heap("listing", 100, 2) as two:
        await one.resize(250)
        await two.resize(240)
        used = budget.used[0]
    assert used == 250
    assert budget.used == (0, 0)


async def test_a_refused_growth_leaks_no_memory(budget: Budget) -> None:
    memory = budget.memory
    blocker = await budget.limiter.acquire(HEAP, 900)

    async def work() -> None:
        async with memory.heap("listing", 100, "cnx") as hold:
            await hold.resize(200)

    working = await started(work())
    budget.clock.advance(5.0)
    with pytest.raises(PermitAcquireTimeoutError):
        await working
    budget.limiter.release(blocker)
    assert budget.used == (0, 0)


async def test_cancel_owner_releases_everything_in_the_same_turn(budget: Budget) -> None:
    memory = budget.memory
    block = memory.heap("listing", 100, "gone")
    hold = await block.__aenter__()
    await hold.resize(300)
    await memory.direct("answer", 1000, "gone")
    waiting = await started(memory.direct("other answer", 500, "gone"))
    follower = await started(memory.direct("next answer", 1000, "stays"))
    memory.cancel_owner("gone")
    assert budget.used == (0, 1000)
    with pytest.raises(PermitAcquireCancelledError):
        await waiting
    await block.__aexit__(None, None, None)
    (await follower)()
    assert budget.used == (0, 0)


async def test_a_shared_hold_can_be_resized_only_inside_its_block() -> None:
    budget = Budget()
    block = SharedMemory(budget.limiter).heap("listing", 100, "cnx")
    with pytest.raises(RuntimeError, match="outside"):
        await block.resize(200)  # type: ignore[attr-defined]
    await block.__aexit__(None, None, None)
    assert budget.used == (0, 0)


# -- without waiting ------------------------------------------------------------------------------


async def test_free_direct_memory_is_granted_without_waiting(budget: Budget) -> None:
    memory = budget.memory
    give_back = memory.direct_at_once("update", 1_000, "cnx")
    assert give_back is not None
    assert budget.used == (0, 1_000)
    give_back()
    give_back()
    assert budget.used == (0, 0)


async def test_an_immediate_request_that_would_have_to_wait_is_refused_and_is_not_queued(
    budget: Budget,
) -> None:
    memory = budget.memory
    blocker = await budget.limiter.acquire(DIRECT, 901)
    assert memory.direct_at_once("update", 100, "cnx") is None
    assert budget.limiter.queue_size(DIRECT) == 0
    budget.limiter.release(blocker)
    assert budget.used == (0, 0)


async def test_an_immediate_request_does_not_overtake_a_waiter(budget: Budget) -> None:
    memory = budget.memory
    blocker = await budget.limiter.acquire(DIRECT, 500)
    waiting = await started(memory.direct("answer", 600, "patient"))
    hasty = memory.direct_at_once("update", 100, "hasty")
    assert hasty is None
    budget.limiter.release(blocker)
    give_back = await waiting
    assert budget.used == (0, 600)
    give_back()


async def test_an_immediate_request_at_a_full_queue_is_refused_without_an_error(
    budget: Budget,
) -> None:
    memory = budget.memory
    blocker = await budget.limiter.acquire(DIRECT, 1_000)
    waiting = [await started(memory.direct(number, 1, number)) for number in range(10)]
    assert memory.direct_at_once("update", 1, "cnx") is None
    budget.limiter.release(blocker)
    for each in waiting:
        (await each)()
    assert budget.used == (0, 0)


async def test_an_immediate_request_larger_than_the_limit_raises_an_error(budget: Budget) -> None:
    memory = budget.memory
    with pytest.raises(PermitTooLargeError):
        memory.direct_at_once("update", 1_001, "cnx")
    assert budget.used == (0, 0)


async def test_a_closed_limiter_refuses_an_immediate_request(budget: Budget) -> None:
    memory = budget.memory
    budget.limiter.close()
    assert memory.direct_at_once("update", 1, "cnx") is None


@pytest.mark.parametrize(("kind", "charged"), [(PrivateMemory, 200), (SharedMemory, 100)])
async def test_two_immediate_senders_of_the_same_bytes_are_charged_once_if_memory_is_shared(
    kind, charged
) -> None:
    budget = Budget(kind)
    memory = budget.memory
    returns = [memory.direct_at_once("update", 100, owner) for owner in (1, 2)]
    used = budget.used
    assert memory.shares is (kind is SharedMemory)
    assert used == (0, charged)
    for give_back in returns:
        assert give_back is not None
        give_back()
    assert budget.used == (0, 0)


async def test_cancel_owner_releases_immediately_granted_memory_once(budget: Budget) -> None:
    memory = budget.memory
    give_back = memory.direct_at_once("update", 100, "gone")
    memory.cancel_owner("gone")
    assert budget.used == (0, 0)
    assert give_back is not None
    give_back()
    assert budget.used == (0, 0)


async def test_without_a_limit_any_immediate_request_is_granted_and_not_counted(
    budget: Budget,
) -> None:
    unlimited = MemoryLimit(0, 10, 5.0)
    limiter = AsyncDualMemoryLimiter(unlimited, unlimited, ManualClock())
    memory = type(budget.memory)(limiter)
    give_back = memory.direct_at_once("update", 10**12, "cnx")
    assert give_back is not None
    assert (limiter.acquired_permits(DIRECT), memory.pays) == (0, False)
    give_back()
