"""Transient memory: acquired, counted and released within a turn, without delaying requests."""

import pytest

from limiter.admission.caps import AdmissionCaps
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.response_memory import PrivateMemory, ResponseMemory, SharedMemory
from limiter.permits.ledger import Ledger, LedgerEvent, check_all_balanced
from limiter.permits.permit import AcquireOutcome
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import started

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
Kind = type[PrivateMemory | SharedMemory]


class Budget:
    """1,000 bytes of each, or another limit, under policy fair."""

    def __init__(self, kind: Kind, limit: int = 1000, caps: AdmissionCaps | None = None) -> None:
        self.told: list[tuple[AcquireOutcome, int]] = []
        both, clock = MemoryLimit(limit, 10, 5.0), ManualClock()
        rules = AdmissionRules(AdmissionPolicy.FAIR, None, caps or AdmissionCaps())
        self.limiter = AsyncDualMemoryLimiter(both, both, clock, self._observe, rules)
        self.ledger = Ledger(clock)
        self.limiter.semaphore(DIRECT).record_with(self.ledger)
        self.memory: ResponseMemory = kind(self.limiter)

    def _observe(self, _: LimitType, outcome: AcquireOutcome, __: float, count: int) -> None:
        self.told.append((outcome, count))

    def passes(self, size: int, owner: str = "cnx", key: str = "answer") -> bool:
        """Pass through a transient permit, if admitted."""
        permit = self.memory.transient(DIRECT, key, size, owner, "a/b")
        if permit is not None:
            permit.end()
            permit.end()
        return permit is not None

    @property
    def used(self) -> int:
        return self.limiter.acquired_permits(DIRECT)

    @property
    def traces(self) -> tuple[int, int, int]:
        """Return traces of former owners: accounts, queue places, peak usage."""
        found = self.limiter.statistics().direct
        return found.holders, found.queue_size, found.high_water_permits


@pytest.fixture(params=[PrivateMemory, SharedMemory])
def budget(request: pytest.FixtureRequest) -> Budget:
    return Budget(request.param)


async def test_a_transient_permit_is_counted_but_not_held(budget: Budget) -> None:
    passed = budget.passes(700)
    assert passed
    assert (budget.used, budget.traces) == (0, (0, 0, 700))
    assert budget.told == [(AcquireOutcome.GRANTED, 1)]


async def test_the_high_water_mark_includes_held_and_transient_permits(budget: Budget) -> None:
    await budget.limiter.acquire(DIRECT, 300)
    budget.passes(200)
    assert budget.traces == (1, 0, 500)


async def test_a_transient_permit_is_recorded_as_acquired_and_released(budget: Budget) -> None:
    budget.passes(700)
    entries = budget.ledger.recent()
    assert [(one.event, one.owner, one.namespace, one.size_bytes) for one in entries] == [
        (LedgerEvent.RELEASED, "'cnx'", "a/b", 700),
        (LedgerEvent.ACQUIRED, "'cnx'", "a/b", 700),
    ]
    totals = budget.ledger.statistics()
    assert totals.acquired == totals.released
    check_all_balanced([budget.ledger])


async def test_a_transient_permit_that_stays_is_held_until_released_and_counted_once(
    budget: Budget,
) -> None:
    permit = budget.memory.transient(DIRECT, "answer", 700, "cnx")
    assert permit is not None
    give_back = permit.stay()
    permit.end()
    assert (budget.used, budget.traces) == (700, (1, 0, 700))
    assert budget.told == [(AcquireOutcome.GRANTED, 1)]
    give_back()
    give_back()
    assert (budget.used, budget.traces) == (0, (0, 0, 700))


async def test_a_transient_permit_that_stays_is_released_with_its_owner(budget: Budget) -> None:
    permit = budget.memory.transient(DIRECT, "answer", 700, "cnx")
    assert permit is not None
    give_back = permit.stay()
    budget.memory.cancel_owner("cnx")
    assert budget.used == 0
    give_back()
    assert budget.used == 0


async def test_a_transient_permit_that_does_not_fit_is_refused_without_a_trace(
    budget: Budget,
) -> None:
    await budget.limiter.acquire(DIRECT, 301)
    assert not budget.passes(700)
    assert budget.traces == (1, 0, 301)
    assert budget.told == [(AcquireOutcome.GRANTED, 1)]
    assert budget.passes(699)


async def test_a_transient_permit_does_not_overtake_a_waiter(budget: Budget) -> None:
    blocker = await budget.limiter.acquire(DIRECT, 500)
    waiting = await started(budget.memory.direct("list", 600, "patient"))
    assert not budget.passes(1)
    budget.limiter.release(blocker)
    (await waiting)()
    assert budget.passes(1)


async def test_a_transient_permit_beyond_the_share_is_limited_to_a_loan(budget: Budget) -> None:
    # A share is half of the limit
    await budget.memory.direct("list", 400, "greedy")
    assert not budget.passes(101, "greedy")
    assert budget.passes(100, "greedy")
    assert budget.passes(600, "modest")


@pytest.mark.parametrize("kind", [PrivateMemory, SharedMemory])
async def test_a_cap_applies_to_a_transient_permit(kind: Kind) -> None:
    budget = Budget(kind, caps=AdmissionCaps(per_connection=100))
    assert not budget.passes(101)
    assert budget.passes(100)


async def test_a_closed_limiter_refuses_a_transient_permit(budget: Budget) -> None:
    budget.limiter.close()
    assert not budget.passes(1)


@pytest.mark.parametrize("kind", [PrivateMemory, SharedMemory])
async def test_without_a_limit_every_transient_permit_is_granted_and_not_counted(
    kind: Kind,
) -> None:
    budget = Budget(kind, limit=0)
    permit = budget.memory.transient(DIRECT, "answer", 10**12, "cnx")
    assert permit is not None
    give_back = permit.stay()
    assert budget.passes(10**12)
    assert (budget.used, budget.told) == (0, [])
    give_back()
    assert (budget.traces, budget.ledger.recent()) == ((0, 0, 0), [])


async def test_a_transient_permit_for_bytes_already_held_by_a_sharer_is_not_charged() -> None:
    budget = Budget(SharedMemory)
    give_back = await budget.memory.direct("answer", 900, "slow")
    assert budget.passes(900)
    assert not budget.passes(900, key="another")
    assert budget.traces == (1, 0, 900)
    assert len(budget.ledger.recent()) == 1
    give_back()


async def test_a_transient_permit_that_stays_keeps_shared_bytes_after_the_first_release() -> None:
    budget = Budget(SharedMemory)
    first = await budget.memory.direct("answer", 900, "slow")
    permit = budget.memory.transient(DIRECT, "answer", 900, "slower")
    assert permit is not None
    second = permit.stay()
    first()
    assert budget.used == 900
    second()
    assert budget.used == 0


async def test_a_transient_permit_for_bytes_a_sharer_still_waits_for_is_refused() -> None:
    budget = Budget(SharedMemory)
    blocker = await budget.limiter.acquire(DIRECT, 500)
    waiting = await started(budget.memory.direct("answer", 600, "patient"))
    assert not budget.passes(600)
    budget.limiter.release(blocker)
    (await waiting)()


async def test_a_transient_permit_larger_than_the_shared_amount_is_refused() -> None:
    budget = Budget(SharedMemory)
    async with budget.memory.heap("list", 100, "first"):
        assert budget.memory.transient(HEAP, "list", 101, "second") is None
        assert budget.memory.transient(HEAP, "list", 100, "second") is not None
