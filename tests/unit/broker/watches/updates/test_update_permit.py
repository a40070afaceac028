"""Direct memory for all who are told at once: asked for once, given back with the last of them."""

from __future__ import annotations

import pytest

from broker.watches.updates.update_permit import UpdatePayment
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.response_memory import PrivateMemory, SharedMemory
from tests.support.clocks.manual_clock import ManualClock

DIRECT = LimitType.DIRECT_MEMORY
BOTH = pytest.mark.parametrize("kind", [PrivateMemory, SharedMemory])


class Paying:
    """A payment of 100 bytes, and 1,000 bytes to pay it with."""

    def __init__(self, kind: type[PrivateMemory | SharedMemory]) -> None:
        limit = MemoryLimit(1_000, 10, 25.0)
        self.limiter = AsyncDualMemoryLimiter(limit, limit, ManualClock())
        self.memory = kind(self.limiter)
        self.payment = UpdatePayment()
        self.payment.size_bytes = 100

    def pay(self) -> bool:
        return self.payment.pay(self.memory, "t/n")

    @property
    def held_bytes(self) -> int:
        return self.limiter.acquired_permits(DIRECT)


@BOTH
async def test_it_is_paid_once_for_all(kind: type[PrivateMemory | SharedMemory]) -> None:
    paying = Paying(kind)
    assert [paying.pay(), paying.pay()] == [True, True]
    assert (paying.held_bytes, paying.payment.paid) == (100, True)


@BOTH
async def test_it_is_held_until_all_were_told(kind: type[PrivateMemory | SharedMemory]) -> None:
    # Given
    paying = Paying(kind)
    paying.pay()
    # When: the only part has left before the next watcher is told
    paying.payment.part()()
    # Then
    assert paying.held_bytes == 100
    paying.payment.told_all()
    assert (paying.held_bytes, paying.payment.paid) == (0, False)


@BOTH
async def test_it_is_held_until_the_last_part_has_left(
    kind: type[PrivateMemory | SharedMemory],
) -> None:
    # Given
    paying = Paying(kind)
    paying.pay()
    left = [paying.payment.part() for _ in range(3)]
    paying.payment.told_all()
    # When, Then
    for each, held in zip(left, (100, 100, 0), strict=True):
        each()
        assert paying.held_bytes == held


@BOTH
async def test_what_has_to_wait_is_not_asked_for_again(
    kind: type[PrivateMemory | SharedMemory],
) -> None:
    # Given
    paying = Paying(kind)
    blocker = await paying.limiter.acquire(DIRECT, 950)
    assert not paying.pay()
    # When
    paying.limiter.release(blocker)
    # Then: each watcher asks for its own
    assert not paying.pay()
    paying.payment.told_all()
    assert paying.held_bytes == 0


@BOTH
async def test_what_is_too_large_together_is_no_error(
    kind: type[PrivateMemory | SharedMemory],
) -> None:
    paying = Paying(kind)
    paying.payment.size_bytes = 1_001
    assert not paying.pay()
    paying.payment.told_all()
    assert paying.held_bytes == 0


@BOTH
@pytest.mark.parametrize("free_bytes", [1_000, 50])
async def test_no_account_of_a_payment_is_kept_for_a_next_time(
    kind: type[PrivateMemory | SharedMemory], free_bytes: int
) -> None:
    # Given: it was granted, or would have had to wait
    paying = Paying(kind)
    if free_bytes < 1_000:
        await paying.limiter.acquire(DIRECT, 1_000 - free_bytes)
    paying.pay()
    # When
    paying.payment.told_all()
    # Then: nobody asks in its name again
    accounts = paying.limiter.semaphore(DIRECT)._books.accounts
    assert not [owner for owner in accounts._spare if owner is paying.payment]


async def test_who_is_told_nothing_costs_nothing() -> None:
    paying = Paying(SharedMemory)
    paying.payment.told_all()
    assert (paying.held_bytes, paying.payment.paid) == (0, False)
