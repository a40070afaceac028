"""The ledger: owner and time of every unreleased permit."""

import gc
import weakref

import pytest

from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.errors import PermitAcquireCancelledError
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.shared_leases import SharedLeases
from limiter.permits.ledger import (
    RECENT_EVENTS,
    EventTotal,
    Ledger,
    LedgerEntry,
    LedgerEvent,
    LedgerHolding,
    LedgerStatistics,
    UnbalancedLedgerError,
    check_all_balanced,
)
from limiter.semaphore.async_semaphore import AsyncSemaphore
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import started

ACQUIRED, UPDATED, RELEASED = LedgerEvent
NS = "public/default"
POLICIES = pytest.mark.parametrize("policy", AdmissionPolicy)


class Peer:
    """An owner as in a server."""

    def __init__(self, number: int) -> None:
        self.address = f"10.0.0.{number}:5000"


def address(owner: object) -> str:
    return owner.address if isinstance(owner, Peer) else "unnamed"


class Budget:
    """A semaphore of 1,000 bytes with a ledger."""

    def __init__(
        self, policy: AdmissionPolicy = AdmissionPolicy.FAIR, max_bytes: int = 1000
    ) -> None:
        self.clock = ManualClock()
        rules = AdmissionRules(policy)
        self.semaphore = AsyncSemaphore(max_bytes, 10, 5.0, self.clock, rules=rules)
        self.ledger = Ledger(self.clock, address, "heap memory")
        self.semaphore.record_with(self.ledger)

    def events(self) -> list[tuple[LedgerEvent, int]]:
        """The oldest first."""
        return [(entry.event, entry.size_bytes) for entry in reversed(self.ledger.recent())]


@POLICIES
async def test_every_event_is_recorded_with_owner_bytes_and_age(policy: AdmissionPolicy) -> None:
    budget, peer = Budget(policy), Peer(1)
    permit = await budget.semaphore.acquire(100, None, peer, NS)
    budget.clock.advance(2.0)
    permit = await budget.semaphore.update(permit, 300)
    budget.clock.advance(3.0)
    budget.semaphore.release(permit)
    budget.clock.advance(1.0)
    assert budget.ledger.recent() == [
        LedgerEntry(RELEASED, peer.address, NS, 300, 5.0, 1.0),
        LedgerEntry(UPDATED, peer.address, NS, 300, 2.0, 4.0),
        LedgerEntry(ACQUIRED, peer.address, NS, 100, 0.0, 6.0),
    ]


@POLICIES
async def test_requests_without_an_owner_are_recorded_too(policy: AdmissionPolicy) -> None:
    budget = Budget(policy)
    budget.semaphore.release(await budget.semaphore.acquire(100))
    assert budget.events() == [(ACQUIRED, 100), (RELEASED, 100)]
    assert {entry.owner for entry in budget.ledger.recent()} == {"unnamed"}


@POLICIES
async def test_totals_count_events_and_bytes_by_kind(policy: AdmissionPolicy) -> None:
    budget = Budget(policy)
    first = await budget.semaphore.acquire(100, None, Peer(1), NS)
    second = await budget.semaphore.acquire(200, None, Peer(2), NS)
    first = await budget.semaphore.update(first, 50)
    second = await budget.semaphore.update(second, 250)
    budget.semaphore.release(first)
    assert budget.ledger.statistics() == LedgerStatistics(
        acquired=EventTotal(2, 300),
        updated=EventTotal(2, 300),
        released=EventTotal(1, 50),
        live_permits=1,
    )


@POLICIES
async def test_an_updated_permit_keeps_the_age_of_the_original(policy: AdmissionPolicy) -> None:
    budget = Budget(policy)
    first = await budget.semaphore.acquire(100, None, Peer(1), NS)
    budget.clock.advance(2.0)
    second = await budget.semaphore.update(first, 300)
    budget.clock.advance(1.0)
    assert budget.ledger.age_seconds(second) == 3.0
    assert budget.ledger.age_seconds(first) is None


async def test_releasing_a_permit_twice_is_recorded_once() -> None:
    budget = Budget()
    first = await budget.semaphore.acquire(100, None, Peer(1), NS)
    second = await budget.semaphore.update(first, 300)
    for permit in (first, second, second, first):
        budget.semaphore.release(permit)
    assert budget.events() == [(ACQUIRED, 100), (UPDATED, 300), (RELEASED, 300)]


async def test_growth_of_a_released_permit_is_recorded_as_a_new_permit() -> None:
    budget = Budget()
    permit = await budget.semaphore.acquire(100, None, Peer(1), NS)
    budget.semaphore.release(permit)
    budget.clock.advance(2.0)
    grown = await budget.semaphore.update(permit, 300)
    assert budget.events() == [(ACQUIRED, 100), (RELEASED, 100), (ACQUIRED, 300)]
    assert budget.ledger.age_seconds(grown) == 0.0


async def test_an_abandoned_update_is_recorded_as_an_update_back() -> None:
    budget = Budget()
    permit = await budget.semaphore.acquire(100, None, Peer(1), NS)
    budget.clock.advance(2.0)
    waiter = budget.semaphore.request_update(permit, 300)
    budget.semaphore.abandon(waiter)
    assert budget.events() == [(ACQUIRED, 100), (UPDATED, 300), (UPDATED, 100)]
    assert budget.ledger.age_seconds(permit) == 2.0


async def test_a_waiting_request_is_recorded_when_granted() -> None:
    budget = Budget()
    everything = await budget.semaphore.acquire(1000, None, Peer(1), NS)
    waiter = budget.semaphore.request(400, None, Peer(2), NS)
    before = budget.events()
    budget.clock.advance(1.0)
    budget.semaphore.release(everything)
    budget.clock.advance(4.0)
    assert before == [(ACQUIRED, 1000)]
    assert budget.events() == [(ACQUIRED, 1000), (RELEASED, 1000), (ACQUIRED, 400)]
    assert waiter.permit is not None
    assert budget.ledger.age_seconds(waiter.permit) == 4.0


async def test_permits_without_a_limit_are_not_recorded() -> None:
    budget = Budget(max_bytes=0)
    await budget.semaphore.acquire(100, None, Peer(1), NS)
    assert budget.events() == []
    check_all_balanced([budget.ledger])


async def test_the_oldest_events_are_forgotten() -> None:
    budget = Budget()
    for size in range(1, RECENT_EVENTS + 1):
        budget.semaphore.release(await budget.semaphore.acquire(size, None, Peer(1), NS))
    assert len(budget.ledger.recent(2 * RECENT_EVENTS)) == RECENT_EVENTS
    assert budget.events()[0] == (ACQUIRED, RECENT_EVENTS // 2 + 1)
    assert budget.ledger.statistics().acquired.events == RECENT_EVENTS
    assert [entry.event for entry in budget.ledger.recent(1)] == [RELEASED]


async def test_an_unbalanced_ledger_names_each_holder_with_bytes_and_age() -> None:
    budget = Budget()
    await budget.semaphore.acquire(100, None, Peer(1), NS)
    budget.clock.advance(7.0)
    for _ in range(2):
        await budget.semaphore.acquire(200, None, Peer(2), "public/other")
    budget.clock.advance(1.5)
    with pytest.raises(UnbalancedLedgerError) as caught:
        check_all_balanced([budget.ledger])
    assert caught.value.holdings == (
        LedgerHolding("heap memory", Peer(2).address, "public/other", 400, 2, 1.5),
        LedgerHolding("heap memory", Peer(1).address, NS, 100, 1, 8.5),
    )
    assert str(caught.value) == (
        "the ledger is not balanced: "
        "10.0.0.2:5000 still holds 400 bytes of heap memory for public/other, taken 1.5 s ago; "
        "10.0.0.1:5000 still holds 100 bytes of heap memory for public/default, taken 8.5 s ago"
    )


async def test_a_long_list_of_holders_is_cut_with_the_number_of_the_rest() -> None:
    budget = Budget()
    for number in range(8):
        await budget.semaphore.acquire(10 + number, None, Peer(number))
    with pytest.raises(UnbalancedLedgerError) as caught:
        check_all_balanced([budget.ledger])
    sentence = str(caught.value)
    assert sentence.startswith(
        "the ledger is not balanced: 10.0.0.7:5000 still holds 17 bytes of heap memory, taken"
    )
    assert sentence.count("still holds") == 5
    assert sentence.endswith("; and 3 more")
    assert len(caught.value.holdings) == 8


async def test_a_ledger_is_balanced_when_all_permits_are_released() -> None:
    budget = Budget()
    kept, peer = await budget.semaphore.acquire(100, None, Peer(1), NS), Peer(2)
    await budget.semaphore.acquire(100, None, peer, NS)
    budget.semaphore.release(kept)
    budget.semaphore.owners.cancel(peer)
    check_all_balanced([budget.ledger])


async def test_a_single_error_names_the_holders_of_every_budget() -> None:
    limit = MemoryLimit(1000, 10, 5.0)
    clock = ManualClock()
    limiter = AsyncDualMemoryLimiter(limit, limit, clock)
    ledgers = [Ledger(clock, address, f"{one.value} memory") for one in LimitType]
    for limit_type, ledger in zip(LimitType, ledgers, strict=True):
        limiter.semaphore(limit_type).record_with(ledger)
    check_all_balanced(ledgers)
    for limit_type in LimitType:
        await limiter.acquire(limit_type, 100, None, Peer(1), NS)
    with pytest.raises(UnbalancedLedgerError) as caught:
        check_all_balanced(ledgers)
    assert [holding.budget for holding in caught.value.holdings] == ["heap memory", "direct memory"]


async def test_a_shared_permit_names_three_sharers_and_the_number_of_the_rest() -> None:
    budget = Budget()
    holder, peers = budget.semaphore.shared.new(NS), [Peer(number) for number in range(5)]
    for peer in peers:
        budget.semaphore.shared.join(holder, peer)
    await budget.semaphore.acquire(600, None, holder)
    budget.semaphore.shared.leave(holder, peers[0])
    (holding,) = budget.ledger.holdings()
    assert holding.owner == "10.0.0.1:5000, 10.0.0.2:5000, 10.0.0.3:5000 and 1 more"
    assert (holding.namespace, holding.size_bytes) == (NS, 600)


async def test_a_shared_lease_is_a_single_permit_until_its_last_reference_is_released() -> None:
    limit = MemoryLimit(1000, 10, 5.0)
    clock = ManualClock()
    limiter = AsyncDualMemoryLimiter(limit, limit, clock)
    ledger = Ledger(clock, address)
    limiter.semaphore(LimitType.DIRECT_MEMORY).record_with(ledger)
    leases, peers = SharedLeases(limiter, LimitType.DIRECT_MEMORY), [Peer(1), Peer(2)]
    first, second = [await leases.acquire("answer", 600, peer, NS) for peer in peers]
    first.release()
    live_before_the_last = ledger.statistics().live_permits
    second.release()
    assert live_before_the_last == 1
    assert ledger.statistics().live_permits == 0
    assert [entry.owner for entry in ledger.recent()] == [peers[0].address] * 2


async def test_a_permit_without_remaining_sharers_keeps_its_recorded_owner() -> None:
    # An impossible state, made by editing the books
    budget, peer = Budget(), Peer(1)
    holder = budget.semaphore.shared.new(NS)
    budget.semaphore.shared.join(holder, peer)
    await budget.semaphore.acquire(600, None, holder)
    holder.left_by(*holder.members(), 1)
    assert [holding.owner for holding in budget.ledger.holdings()] == [peer.address]


async def test_the_ledger_keeps_no_owner_alive() -> None:
    budget, peer = Budget(), Peer(1)
    gone = weakref.ref(peer)
    budget.semaphore.release(await budget.semaphore.acquire(100, None, peer, NS))
    budget.semaphore.owners.cancel(peer)
    del peer
    gc.collect()
    assert gone() is None
    assert [entry.owner for entry in budget.ledger.recent()] == [Peer(1).address] * 2


async def test_an_owner_cancelled_in_the_turn_of_its_grant_leaves_the_ledger_balanced() -> None:
    budget, peer = Budget(), Peer(2)
    everything = await budget.semaphore.acquire(1000, None, Peer(1), NS)
    waiting = await started(budget.semaphore.acquire(400, None, peer, NS))
    budget.semaphore.release(everything)
    budget.semaphore.owners.cancel(peer)
    check_all_balanced([budget.ledger])
    assert budget.events()[-2:] == [(ACQUIRED, 400), (RELEASED, 400)]
    assert (await waiting).size == 0


async def test_a_cancelled_wait_is_not_recorded() -> None:
    budget, peer = Budget(), Peer(2)
    await budget.semaphore.acquire(1000, None, Peer(1), NS)
    waiting = await started(budget.semaphore.acquire(400, None, peer, NS))
    budget.semaphore.owners.cancel(peer)
    with pytest.raises(PermitAcquireCancelledError):
        await waiting
    assert budget.events() == [(ACQUIRED, 1000)]
