"""A lease of one owner is held privately, and shared once another owner joins."""

import pytest

from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.errors import PermitAcquireCancelledError
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.shared_leases import SharedLeases
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started

DIRECT = LimitType.DIRECT_MEMORY


class Budget:
    """Leases on 1,000 bytes."""

    def __init__(self, policy: AdmissionPolicy) -> None:
        limit = MemoryLimit(1000, 10, 5.0)
        self.limiter = AsyncDualMemoryLimiter(
            limit, limit, ManualClock(), rules=AdmissionRules(policy)
        )
        self.leases = SharedLeases(self.limiter, DIRECT)

    @property
    def held(self) -> tuple[int, int, int]:
        """Return the bytes held in total, by the first owner, and by the second."""
        pinned = [self.limiter.pinned_by(owner)[DIRECT] for owner in ("first", "second")]
        return self.limiter.acquired_permits(DIRECT), *pinned


@pytest.fixture(params=AdmissionPolicy)
def budget(request: pytest.FixtureRequest) -> Budget:
    return Budget(request.param)


async def test_bytes_held_by_a_single_owner_are_divided_once_another_owner_joins(
    budget: Budget,
) -> None:
    first = await budget.leases.acquire("answer", 600, "first", "t/ns")
    alone = budget.held
    second = await budget.leases.acquire("answer", 600, "second", "t/ns")
    together = budget.held
    first.release()
    left = budget.held
    second.release()
    assert (alone, together) == ((600, 600, 0), (600, 300, 300))
    assert (left, budget.held, len(budget.leases)) == ((600, 0, 600), (0, 0, 0), 0)


async def test_two_references_of_a_single_owner_are_charged_once(budget: Budget) -> None:
    references = [await budget.leases.acquire("answer", 600, "first") for _ in range(2)]
    references[0].release()
    after_one = budget.held
    references[1].release()
    assert (after_one, budget.held) == ((600, 600, 0), (0, 0, 0))
    assert len(budget.leases) == 0


async def test_a_lease_without_further_sharers_is_forgotten_on_release(budget) -> None:
    reference = await budget.leases.acquire("answer", 600, "first")
    reference.release()
    assert (len(budget.leases), budget.held) == (0, (0, 0, 0))


async def test_an_owner_joining_a_growing_lease_shares_its_growth(budget: Budget) -> None:
    first = await budget.leases.acquire("answer", 300, "first")
    blocker = await budget.limiter.acquire(DIRECT, 600, None, "other")
    growing = await started(first.grow(800))
    second = await budget.leases.acquire("answer", 300, "second")
    also_growing = await started(second.grow(800))
    growing.cancel()
    await settle()
    first.release()
    budget.limiter.release(blocker)
    await also_growing
    assert budget.held == (800, 0, 800)
    second.release()
    assert budget.held == (0, 0, 0)


async def test_cancel_owner_releases_a_lease_held_alone(budget: Budget) -> None:
    reference = await budget.leases.acquire("answer", 600, "first")
    waiting = await started(budget.leases.acquire("other answer", 600, "second"))
    budget.leases.cancel_owner("first")
    await settle()
    assert (reference.size, (await waiting).size) == (0, 600)
    with pytest.raises(PermitAcquireCancelledError):
        await reference.granted()
    (await waiting).release()
    assert budget.held == (0, 0, 0)


async def test_a_lease_lost_by_its_owner_is_opened_anew(budget: Budget) -> None:
    # Given an owner whose permits the limiter took back
    lost = await budget.leases.acquire("answer", 600, "first")
    budget.limiter.cancel_owner("first")
    second = await budget.leases.acquire("answer", 700, "second")
    with pytest.raises(PermitAcquireCancelledError):
        await lost.grow(800)
    lost.release()
    assert budget.held == (700, 0, 700)
    second.release()
    assert budget.held == (0, 0, 0)


@pytest.mark.parametrize("policy", list(AdmissionPolicy))
async def test_an_already_shared_permit_cannot_be_shared_again(policy: AdmissionPolicy) -> None:
    semaphore = Budget(policy).limiter.semaphore(DIRECT)
    permit = semaphore.immediate.permit(600, "first")
    assert permit is not None
    semaphore.shared.of(permit)
    with pytest.raises(ValueError, match="only a permit with a single owner"):
        semaphore.shared.of(permit)


async def test_references_without_an_owner_share_from_the_start(budget: Budget) -> None:
    budget.leases.reference("answer", 600, None)
    budget.leases.reference("answer", 600, None)
    assert budget.limiter.acquired_permits(DIRECT) == 600
