"""Direct memory for a group of recipients: acquired once, released with the last recipient."""

import pytest

from broker.watches.update_permit import UpdatePermit
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.response_memory import PrivateMemory, SharedMemory
from tests.support.clocks.manual_clock import ManualClock

DIRECT = LimitType.DIRECT_MEMORY


class Acquiring:
    """A request for 100 bytes, with a budget of 1,000 bytes."""

    def __init__(self, kind: type[PrivateMemory | SharedMemory]) -> None:
        limit = MemoryLimit(1_000, 10, 25.0)
        self.limiter = AsyncDualMemoryLimiter(limit, limit, ManualClock())
        self.memory = kind(self.limiter)
        self.permit = UpdatePermit()
        self.permit.size_bytes = 100

    def acquire(self) -> bool:
        return self.permit.acquire(self.memory, "t/n")

    @property
    def held_bytes(self) -> int:
        return self.limiter.acquired_permits(DIRECT)


@pytest.fixture(params=[PrivateMemory, SharedMemory])
def acquiring(request: pytest.FixtureRequest) -> Acquiring:
    return Acquiring(request.param)


async def test_an_update_permit_is_acquired_once_for_all_watchers(acquiring: Acquiring) -> None:
    assert [acquiring.acquire(), acquiring.acquire()] == [True, True]
    assert (acquiring.held_bytes, acquiring.permit.granted) == (100, True)


async def test_an_update_permit_is_held_until_all_watchers_are_notified(
    acquiring: Acquiring,
) -> None:
    acquiring.acquire()
    # The only part has left before the next watcher is notified
    acquiring.permit.share()()
    assert acquiring.held_bytes == 100
    acquiring.permit.all_told()
    assert (acquiring.held_bytes, acquiring.permit.granted) == (0, False)


async def test_an_update_permit_is_held_until_the_last_share_is_released(
    acquiring: Acquiring,
) -> None:
    acquiring.acquire()
    left = [acquiring.permit.share() for _ in range(3)]
    acquiring.permit.all_told()
    for each, held in zip(left, (100, 100, 0), strict=True):
        each()
        assert acquiring.held_bytes == held


async def test_an_update_permit_that_was_not_granted_is_not_requested_again(
    acquiring: Acquiring,
) -> None:
    blocker = await acquiring.limiter.acquire(DIRECT, 950)
    assert not acquiring.acquire()
    acquiring.limiter.release(blocker)
    # Each watcher acquires separately
    assert not acquiring.acquire()
    acquiring.permit.all_told()
    assert acquiring.held_bytes == 0


async def test_an_update_permit_above_the_limit_is_not_granted_and_raises_no_error(
    acquiring: Acquiring,
) -> None:
    acquiring.permit.size_bytes = 1_001
    assert not acquiring.acquire()
    acquiring.permit.all_told()
    assert acquiring.held_bytes == 0


@pytest.mark.parametrize("free_bytes", [1_000, 50])
async def test_the_limiter_keeps_no_account_of_a_finished_update_permit(
    acquiring, free_bytes
) -> None:
    # The permit was granted, or would have had to wait
    if free_bytes < 1_000:
        await acquiring.limiter.acquire(DIRECT, 1_000 - free_bytes)
    acquiring.acquire()
    acquiring.permit.all_told()
    # No second request is made on the watcher's behalf
    accounts = acquiring.limiter.semaphore(DIRECT)._books.accounts
    assert not [owner for owner in accounts._spare if owner is acquiring.permit]


async def test_an_update_permit_that_was_never_acquired_holds_no_memory() -> None:
    acquiring = Acquiring(SharedMemory)
    acquiring.permit.all_told()
    assert (acquiring.held_bytes, acquiring.permit.granted) == (0, False)
