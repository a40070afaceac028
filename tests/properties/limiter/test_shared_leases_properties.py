"""A lease is always charged once, and its last sharer returns it."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.shared_leases import LeaseReference, SharedLeases
from limiter.permits.permit import Permit
from tests.support.clocks.manual_clock import ManualClock

DIRECT = LimitType.DIRECT_MEMORY
LIMIT_BYTES = 12
TIMEOUT_SECONDS = 25.0
KEYS = st.sampled_from(["one", "two", "three", "a buffer"])
BUFFERS = st.sampled_from(["a buffer", "another buffer"])
OWNERS = st.sampled_from(["a", "b", "c"])
SIZES = st.integers(0, LIMIT_BYTES)
PICKS = st.integers(0, 1_000)
TURNS_TO_SETTLE = 6


class LeaseHistory(RuleBasedStateMachine):
    """Requests, growth, leavers and time, each request a cancellable task."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.waiting: list[asyncio.Task[LeaseReference]] = []
        self.growing: list[tuple[LeaseReference, int, asyncio.Task[None]]] = []
        self.references: list[LeaseReference] = []
        self.keys: dict[LeaseReference, str] = {}
        self.asked: dict[asyncio.Task[LeaseReference], tuple[str, str]] = {}
        self.blockers: list[Permit] = []
        # Of each lease: the least granted and the most requested.
        self.least: dict[str, int] = {}
        self.most: dict[str, int] = {}

    @initialize(policy=st.sampled_from(AdmissionPolicy))
    def begin(self, policy: AdmissionPolicy) -> None:
        limit = MemoryLimit(LIMIT_BYTES, 4, TIMEOUT_SECONDS)
        rules = AdmissionRules(policy)
        self.limiter = AsyncDualMemoryLimiter(limit, limit, self.clock, None, rules)
        self.semaphore = self.limiter.semaphore(DIRECT)
        self.leases = SharedLeases(self.limiter, DIRECT)

    def alive(self) -> set[str]:
        """Keys held or awaited."""
        asked = {key for key, _ in self.asked.values()}
        return asked | {self.keys[one] for one in self.references}

    def settle(self) -> None:
        """Run every task and record the ended tasks' results."""

        async def turns() -> None:
            for _ in range(TURNS_TO_SETTLE):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())
        for task in [one for one in self.waiting if one.done()]:
            self.waiting.remove(task)
            key, _ = self.asked.pop(task)
            if not task.cancelled() and task.exception() is None:
                self.references.append(task.result())
                self.keys[task.result()] = key
        for entry in [one for one in self.growing if one[2].done()]:
            self.growing.remove(entry)
            reference, size, growth = entry
            if not growth.cancelled() and growth.exception() is None:
                key = self.keys[reference]
                self.least[key] = max(self.least[key], size)
        assert not any(task.done() for task in self.waiting)
        assert not any(growth.done() for *_, growth in self.growing)

    # -- steps --------------------------------------------------------------------------------

    @rule(key=KEYS, owner=OWNERS, size=SIZES)
    def acquire(self, key: str, owner: str, size: int) -> None:
        if key not in self.alive():
            self.least[key] = self.most[key] = size
        task = self.loop.create_task(self.leases.acquire(key, size, owner, "t/x"))
        self.waiting.append(task)
        self.asked[task] = (key, owner)
        self.settle()

    @precondition(lambda self: self.waiting)
    @rule(pick=PICKS)
    def cancel_a_waiting_request(self, pick: int) -> None:
        task = self.waiting[pick % len(self.waiting)]
        task.cancel()
        self.settle()
        assert task.cancelled()

    @precondition(lambda self: self.references)
    @rule(pick=PICKS, size=SIZES)
    def grow(self, pick: int, size: int) -> None:
        reference = self.references[pick % len(self.references)]
        if any(one is reference for one, *_ in self.growing):
            return  # a request does one thing at a time
        key = self.keys[reference]
        self.most[key] = max(self.most[key], size)
        self.growing.append((reference, size, self.loop.create_task(reference.grow(size))))
        self.settle()

    @precondition(lambda self: self.growing)
    @rule(pick=PICKS)
    def cancel_a_growth(self, pick: int) -> None:
        _, _, growth = self.growing[pick % len(self.growing)]
        growth.cancel()
        self.settle()
        assert growth.cancelled()

    @precondition(lambda self: self.references)
    @rule(pick=PICKS, times=st.integers(1, 2))
    def release(self, pick: int, times: int) -> None:
        reference = self.references.pop(pick % len(self.references))
        for _ in range(times):
            reference.release()
            assert reference.size == 0
        self.settle()

    @precondition(lambda self: self.references)
    @rule(pick=PICKS, buffer=BUFFERS, size=SIZES)
    def pay_for_a_buffer(self, pick: int, buffer: str, size: int) -> None:
        reference = self.references[pick % len(self.references)]
        key, others = self.keys[reference], self.alive()
        if not reference.pays_for(buffer, size) or key == buffer:
            return
        assert 0 < reference.size >= size
        assert buffer not in others, "another lease paid for it"
        self.least[buffer], self.most[buffer] = self.least[key], self.most[key]
        for one in [one for one in self.references if self.keys[one] == key]:
            self.keys[one] = buffer

    @rule(owner=OWNERS)
    def cancel_owner(self, owner: str) -> None:
        self.leases.cancel_owner(owner)
        self.limiter.cancel_owner(owner)
        self.references = [one for one in self.references if one.owner != owner]
        self.settle()
        assert not any(asked == owner for _, asked in self.asked.values())
        assert self.limiter.pinned_by(owner)[DIRECT] == 0

    @rule(pick=PICKS)
    def a_grant_meets_a_cancellation(self, pick: int) -> None:
        """Free capacity and cancel a waiter in the same turn."""
        if self.blockers:
            self.semaphore.release(self.blockers.pop())
        if self.waiting:
            self.waiting[pick % len(self.waiting)].cancel()
        self.settle()

    @rule(size=st.integers(1, LIMIT_BYTES), pick=PICKS)
    def somebody_else_holds(self, size: int, pick: int) -> None:
        waiter = None
        if self.limiter.queue_size(DIRECT) < 3:
            waiter = self.limiter.request(DIRECT, size, f"other {pick % 3}")
        if waiter is not None and waiter.done:
            self.blockers.append(waiter.result())
        elif waiter is not None:
            self.limiter.abandon(DIRECT, waiter)
        self.settle()

    @rule(seconds=st.sampled_from([1.0, 13.0, 25.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.settle()

    # -- rules --------------------------------------------------------------------------------

    @invariant()
    def each_lease_is_charged_once(self) -> None:
        sizes = {self.keys[one]: one.size for one in self.references}
        shared = sum(sizes.values())
        blocked = sum(permit.size for permit in self.blockers)
        assert self.limiter.acquired_permits(DIRECT) == shared + blocked

    @invariant()
    def all_who_share_see_the_same(self) -> None:
        for key in {self.keys[one] for one in self.references}:
            assert len({one.size for one in self.references if self.keys[one] == key}) == 1

    @invariant()
    def all_who_share_have_what_was_granted(self) -> None:
        for one in self.references:
            key = self.keys[one]
            assert self.least[key] <= one.size <= self.most[key]

    @invariant()
    def a_lease_lives_as_long_as_somebody_has_a_part(self) -> None:
        assert len(self.leases) == len(self.alive())

    @invariant()
    def what_owners_pin_is_what_is_shared(self) -> None:
        pinned = sum(self.limiter.pinned_by(owner)[DIRECT] for owner in ("a", "b", "c"))
        shared = {self.keys[one]: one.size for one in self.references}
        # Parts are rounded down, by less than one for each sharer.
        assert sum(shared.values()) - 3 * len(shared) <= pinned <= sum(shared.values())

    def teardown(self) -> None:
        for owner in ("a", "b", "c"):
            self.leases.cancel_owner(owner)
        for permit in self.blockers:
            self.semaphore.release(permit)
        self.settle()
        self.loop.close()
        assert self.limiter.acquired_permits(DIRECT) == self.limiter.queue_size(DIRECT) == 0
        assert (len(self.leases), self.waiting, self.growing) == (0, [], [])
        assert list(self.limiter.semaphore(DIRECT).accounts()) == []


TestLeaseHistory = LeaseHistory.TestCase
TestLeaseHistory.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("policy", AdmissionPolicy)
@settings(max_examples=15, deadline=None)
@given(
    leavers=st.lists(st.integers(0, 49), max_size=49, unique=True),
    before_the_grant=st.booleans(),
    grown=st.integers(600, 900),
)
def test_a_lease_is_granted_to_all_remaining_sharers_and_charged_once(
    policy: AdmissionPolicy, leavers: list[int], before_the_grant: bool, grown: int
) -> None:
    limit = MemoryLimit(1_000, 10, TIMEOUT_SECONDS)
    limiter = AsyncDualMemoryLimiter(limit, limit, ManualClock(), None, AdmissionRules(policy))
    leases = SharedLeases(limiter, DIRECT)

    async def share() -> list[LeaseReference | BaseException]:
        blocker = await limiter.acquire(DIRECT, 1_000)
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(leases.acquire("answer", 600, one)) for one in range(50)]
        await asyncio.sleep(0)
        # In the turn of the grant, or before it
        if before_the_grant:
            leave(tasks, leavers)
            await asyncio.sleep(0)
        limiter.release(blocker)
        leave(tasks, leavers)
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = asyncio.run(share())
    stayed = [one for number, one in enumerate(answers) if number not in leavers]
    assert all(not isinstance(one, BaseException) and one.size == 600 for one in stayed)
    assert len(stayed) == 50 - len(leavers)
    assert limiter.acquired_permits(DIRECT) == 600
    first, *others = [one for one in stayed if not isinstance(one, BaseException)]
    asyncio.run(first.grow(grown))
    for reference in others:
        reference.release()
    assert limiter.acquired_permits(DIRECT) == first.size == grown
    first.release()
    assert limiter.acquired_permits(DIRECT) == len(leases) == 0


def leave(tasks: list[asyncio.Task[LeaseReference]], leavers: list[int]) -> None:
    for number in leavers:
        tasks[number].cancel()
