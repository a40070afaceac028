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


async def test_heap_is_held_for_the_block(budget: Budget) -> None:
    memory = budget.memory
    async with memory.heap("listing", 100, "cnx"):
        inside = budget.used
    assert inside == (100, 0)
    assert budget.used == (0, 0)


async def test_direct_memory_is_held_until_it_is_given_back(budget: Budget) -> None:
    memory = budget.memory
    give_back = await memory.direct("answer", 100, "cnx")
    inside = budget.used
    give_back()
    give_back()
    assert inside == (0, 100)
    assert budget.used == (0, 0)


@pytest.mark.parametrize(("kind", "charged"), [(PrivateMemory, 300), (SharedMemory, 100)])
async def test_three_who_send_the_same(kind, charged) -> None:
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


async def test_what_was_waited_for_pays_for_an_answer_until_that_is_given_back(budget) -> None:
    ahead = await budget.memory.direct_ahead("question", 100, "cnx")
    give_back = ahead.pay("answer", 90)
    ahead.release()
    # The charge belongs to the answer
    assert give_back is not None
    assert budget.used == (0, 100)
    assert ahead.pay("answer", 90) is None
    give_back()
    assert budget.used == (0, 0)


async def test_what_was_waited_for_and_pays_for_nothing_is_given_back(budget: Budget) -> None:
    ahead = await budget.memory.direct_ahead("question", 100, "cnx")
    too_large = ahead.pay("answer", 101)
    ahead.release()
    ahead.release()
    assert too_large is None
    assert budget.used == (0, 0)


async def test_what_was_waited_for_by_who_has_left_pays_for_nothing(budget: Budget) -> None:
    memory = budget.memory
    ahead = await memory.direct_ahead("question", 100, "cnx")
    memory.cancel_owner("cnx")
    assert ahead.pay("answer", 100) is None
    assert budget.used == (0, 0)


async def test_who_waited_for_the_same_pays_for_the_same_once() -> None:
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


async def test_what_others_pay_for_already_is_not_paid_for_twice() -> None:
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
async def test_a_resized_hold_ends_with_its_block(budget: Budget, sizes: list[int]) -> None:
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


async def test_the_shared_amount_grows_once_for_all_who_need_more() -> None:
    budget = Budget()
    memory = budget.memory
    async with memory.heap("listing", 100, 1) as one, memory.heap("listing", 100, 2) as two:
        await one.resize(250)
        await two.resize(240)
        used = budget.used[0]
    assert used == 250
    assert budget.used == (0, 0)


async def test_a_growth_that_is_refused_leaves_the_amount_and_nothing_leaks(budget: Budget) -> None:
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


async def test_cancel_owner_gives_everything_back_in_this_turn(budget: Budget) -> None:
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


async def test_what_is_free_is_had_at_once(budget: Budget) -> None:
    memory = budget.memory
    give_back = memory.direct_at_once("update", 1_000, "cnx")
    assert give_back is not None
    assert budget.used == (0, 1_000)
    give_back()
    give_back()
    assert budget.used == (0, 0)


async def test_what_would_have_to_wait_is_not_had_and_leaves_no_place(budget: Budget) -> None:
    memory = budget.memory
    blocker = await budget.limiter.acquire(DIRECT, 901)
    assert memory.direct_at_once("update", 100, "cnx") is None
    assert budget.limiter.queue_size(DIRECT) == 0
    budget.limiter.release(blocker)
    assert budget.used == (0, 0)


async def test_nobody_goes_past_those_who_wait(budget: Budget) -> None:
    memory = budget.memory
    blocker = await budget.limiter.acquire(DIRECT, 500)
    waiting = await started(memory.direct("answer", 600, "patient"))
    hasty = memory.direct_at_once("update", 100, "hasty")
    assert hasty is None
    budget.limiter.release(blocker)
    give_back = await waiting
    assert budget.used == (0, 600)
    give_back()


async def test_a_full_queue_is_no_error_for_who_does_not_wait(budget: Budget) -> None:
    memory = budget.memory
    blocker = await budget.limiter.acquire(DIRECT, 1_000)
    waiting = [await started(memory.direct(number, 1, number)) for number in range(10)]
    assert memory.direct_at_once("update", 1, "cnx") is None
    budget.limiter.release(blocker)
    for each in waiting:
        (await each)()
    assert budget.used == (0, 0)


async def test_what_can_never_be_had_is_an_error_for_who_does_not_wait(budget: Budget) -> None:
    memory = budget.memory
    with pytest.raises(PermitTooLargeError):
        memory.direct_at_once("update", 1_001, "cnx")
    assert budget.used == (0, 0)


async def test_a_closed_limiter_gives_nothing_at_once(budget: Budget) -> None:
    memory = budget.memory
    budget.limiter.close()
    assert memory.direct_at_once("update", 1, "cnx") is None


@pytest.mark.parametrize(("kind", "charged"), [(PrivateMemory, 200), (SharedMemory, 100)])
async def test_two_who_send_the_same_at_once(kind, charged) -> None:
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


async def test_who_is_cancelled_gives_back_what_he_had_at_once(budget: Budget) -> None:
    memory = budget.memory
    give_back = memory.direct_at_once("update", 100, "gone")
    memory.cancel_owner("gone")
    assert budget.used == (0, 0)
    assert give_back is not None
    give_back()
    assert budget.used == (0, 0)


async def test_without_a_limit_all_is_had_at_once_and_nothing_counted(budget: Budget) -> None:
    unlimited = MemoryLimit(0, 10, 5.0)
    limiter = AsyncDualMemoryLimiter(unlimited, unlimited, ManualClock())
    memory = type(budget.memory)(limiter)
    give_back = memory.direct_at_once("update", 10**12, "cnx")
    assert give_back is not None
    assert (limiter.acquired_permits(DIRECT), memory.pays) == (0, False)
    give_back()
