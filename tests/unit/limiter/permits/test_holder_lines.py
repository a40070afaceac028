"""Holders of memory: a line for each owner and namespace."""

import pytest

from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.permits.holder_lines import HolderCount, HolderLine
from limiter.permits.ledger import Ledger
from limiter.semaphore.async_semaphore import AsyncSemaphore
from tests.support.clocks.manual_clock import ManualClock

NS, OTHER = "public/default", "public/other"
POLICIES = pytest.mark.parametrize("policy", AdmissionPolicy)


class Budget:
    """A semaphore of 1,000 bytes, with an optional ledger."""

    def __init__(
        self, policy: AdmissionPolicy = AdmissionPolicy.FAIR, *, ledger: bool = False
    ) -> None:
        self.clock = ManualClock()
        rules = AdmissionRules(policy)
        self.semaphore = AsyncSemaphore(1000, 10, 50.0, self.clock, rules=rules)
        self.ledger = Ledger(self.clock) if ledger else None
        if self.ledger is not None:
            self.semaphore.record_with(self.ledger)

    def count(self, limit: int = 100) -> HolderCount:
        count = HolderCount(limit, self.ledger)
        for account in self.semaphore.accounts():
            count.add(account)
        return count

    def lines(self) -> tuple[HolderLine, ...]:
        return self.count().lines()


def line(owner: str, namespace: str = NS, **figures: float | None) -> HolderLine:
    nothing = {"held": 0, "permits": 0, "shared": 0, "sharers": 1, "waiting": 0, "lacking": 0}
    return HolderLine(owner, namespace, **{**nothing, "age_seconds": None, **figures})


@POLICIES
async def test_an_owner_has_a_line_for_each_namespace(policy: AdmissionPolicy) -> None:
    budget = Budget(policy)
    for size, namespace in ((100, NS), (50, NS), (20, OTHER)):
        await budget.semaphore.acquire(size, None, "one", namespace)
    await budget.semaphore.acquire(30, None, "two", NS)
    assert budget.lines() == (
        line("one", held=150, permits=2),
        line("two", held=30, permits=1),
        line("one", OTHER, held=20, permits=1),
    )


@POLICIES
async def test_a_shared_permit_is_divided_by_references(policy: AdmissionPolicy) -> None:
    budget = Budget(policy)
    holder = budget.semaphore.shared.new(NS)
    for owner in ("one", "one", "two"):
        budget.semaphore.shared.join(holder, owner)
    await budget.semaphore.acquire(600, None, holder)
    assert budget.lines() == (
        line("one", held=400, permits=1, shared=600, sharers=2),
        line("two", held=200, permits=1, shared=600, sharers=2),
    )


async def test_own_and_shared_permits_of_an_owner_are_a_single_line() -> None:
    budget = Budget(AdmissionPolicy.FIFO)
    holder = budget.semaphore.shared.new(NS)
    budget.semaphore.shared.join(holder, "one")
    await budget.semaphore.acquire(400, None, holder)
    budget.semaphore.shared.join(holder, "two")
    await budget.semaphore.acquire(40, None, "one", NS)
    first = budget.lines()[0]
    assert first == line("one", held=240, permits=2, shared=400, sharers=2)


async def test_a_shared_permit_with_a_single_remaining_sharer_counts_as_its_own() -> None:
    budget = Budget()
    holder = budget.semaphore.shared.new(NS)
    for owner in ("one", "two"):
        budget.semaphore.shared.join(holder, owner)
    await budget.semaphore.acquire(600, None, holder)
    budget.semaphore.owners.cancel("one")
    assert budget.lines() == (line("two", held=600, permits=1),)


async def test_a_sharer_of_a_holder_without_permits_and_requests_has_no_line() -> None:
    budget = Budget()
    holder = budget.semaphore.shared.new(NS)
    budget.semaphore.shared.join(holder, "one")
    assert budget.lines() == ()
    assert budget.count().total == 0


@POLICIES
async def test_waiting_requests_are_counted_with_their_lacking_bytes(
    policy: AdmissionPolicy,
) -> None:
    budget = Budget(policy)
    permit = await budget.semaphore.acquire(900, None, "one", NS)
    await budget.semaphore.acquire(60, None, "two", NS)
    budget.semaphore.request_update(permit, 1000)
    for _ in range(2):
        budget.semaphore.request(300, None, "three", NS)
    assert budget.lines() == (
        line("one", held=900, permits=1, waiting=1, lacking=100),
        line("two", held=60, permits=1),
        line("three", waiting=2, lacking=600),
    )


@POLICIES
async def test_a_shared_request_counts_as_waiting_for_each_sharer(policy: AdmissionPolicy) -> None:
    budget = Budget(policy)
    await budget.semaphore.acquire(1000, None, "one", NS)
    holder = budget.semaphore.shared.new(OTHER)
    for owner in ("two", "three"):
        budget.semaphore.shared.join(holder, owner)
    budget.semaphore.request(600, None, holder)
    assert budget.lines()[1:] == (
        line("two", OTHER, waiting=1, lacking=300),
        line("three", OTHER, waiting=1, lacking=300),
    )


async def test_only_the_largest_holders_are_listed_and_all_are_counted() -> None:
    budget = Budget()
    for size in (10, 30, 20, 30, 5):
        await budget.semaphore.acquire(size, None, f"{size} {budget.count().total}", NS)
    count = budget.count(3)
    # Among equals the earliest first
    assert [one.owner for one in count.lines()] == ["30 1", "30 3", "20 2"]
    assert count.total == 5
    assert budget.count(0).lines() == ()


async def test_among_equal_holders_the_owner_lacking_most_bytes_comes_first() -> None:
    budget = Budget()
    await budget.semaphore.acquire(900, None, "one", NS)
    for size in (200, 400, 300):
        budget.semaphore.request(size, None, f"lacks {size}", NS)
    owners = [one.owner for one in budget.lines()]
    assert owners == ["one", "lacks 400", "lacks 300", "lacks 200"]


@POLICIES
async def test_a_ledger_provides_the_age_of_the_oldest_permit(policy: AdmissionPolicy) -> None:
    budget = Budget(policy, ledger=True)
    await budget.semaphore.acquire(10, None, "one", NS)
    budget.clock.advance(3.0)
    await budget.semaphore.acquire(20, None, "one", NS)
    await budget.semaphore.acquire(20, None, "one", OTHER)
    budget.clock.advance(2.0)
    ages = {one.namespace: one.age_seconds for one in budget.lines()}
    assert ages == {NS: 5.0, OTHER: 2.0}


async def test_an_owner_that_only_waits_has_no_age() -> None:
    budget = Budget(ledger=True)
    await budget.semaphore.acquire(1000, None, "one", NS)
    budget.semaphore.request(10, None, "two", NS)
    assert budget.lines()[1] == line("two", waiting=1, lacking=10)


async def test_a_many_client_connection_has_a_line_for_each_namespace() -> None:
    budget = Budget()
    budget.semaphore.owners.exempt_from_quota("proxy")
    for namespace in (NS, OTHER):
        await budget.semaphore.acquire(100, None, "proxy", namespace)
    assert budget.lines() == tuple(line("proxy", one, held=100, permits=1) for one in (NS, OTHER))


async def test_permits_without_an_owner_have_a_line_under_policy_fair_only() -> None:
    lines = {}
    for policy in AdmissionPolicy:
        budget = Budget(policy)
        await budget.semaphore.acquire(100, namespace=NS)
        lines[policy] = [one.owner for one in budget.lines()]
    assert lines == {AdmissionPolicy.FIFO: [], AdmissionPolicy.FAIR: [None]}
