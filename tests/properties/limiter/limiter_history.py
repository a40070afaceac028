"""Requests, updates, releases, leavers, sharers, limits and time in any order, for any policy."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from limiter.admission.rules import AdmissionRules
from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireQueueFullError,
    PermitAcquireRefusedError,
    PermitAcquireStalledError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
)
from limiter.permits.account import Waiter
from limiter.permits.permit import UNBOUNDED_PERMITS, AcquireOutcome, Permit
from limiter.semaphore.async_semaphore import AsyncSemaphore
from tests.properties.limiter.limiter_books import AccountKey, Ask, Books, Held, Sharing
from tests.support.clocks.manual_clock import ManualClock

LIMIT = 12
QUEUE = 5
TIMEOUT_SECONDS = 25.0
SIZES = st.integers(0, LIMIT)
SHARERS = st.sampled_from(["a", "b", "c", "proxy"])
OWNERS = st.sampled_from([None, "a", "b", "c", "proxy"])
NAMESPACES = st.sampled_from(["t/x", "t/y", "u/x"])
PICKS = st.integers(0, 1_000)
PROXY = "proxy"
# An unnamed client may stand for many, too.
MANY_CLIENTS = (PROXY, None)

OUTCOME_OF: dict[type[Exception], AcquireOutcome] = {
    PermitAcquireTimeoutError: AcquireOutcome.TIMED_OUT,
    PermitAcquireQueueFullError: AcquireOutcome.QUEUE_FULL,
    PermitAcquireCancelledError: AcquireOutcome.CANCELLED,
    PermitAcquireClosedError: AcquireOutcome.CLOSED,
    PermitTooLargeError: AcquireOutcome.OVERSIZED,
    PermitAcquireStalledError: AcquireOutcome.STALLED,
    PermitAcquireRefusedError: AcquireOutcome.REFUSED,
}
REFUSALS = tuple(OUTCOME_OF)


class LimiterHistory(RuleBasedStateMachine):
    """Steps and rules common to all policies."""

    admissions: ClassVar[list[AdmissionRules]] = [AdmissionRules()]
    anonymous_have_an_account: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.books = Books()
        self.clock = ManualClock()
        self.outcomes: list[AcquireOutcome] = []
        self.origin: dict[Permit, Ask] = {}
        self.answered: dict[Waiter, tuple[Ask, int]] = {}
        self.returned: set[Permit] = set()
        self.limit, self.queue, self.timeout_seconds = LIMIT, QUEUE, TIMEOUT_SECONDS
        self.most_queued = self.high_water = 0
        self.closed = False
        self.was_oldest = self.broken = False
        self.loop = asyncio.new_event_loop()

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.admission = data.draw(st.sampled_from(self.admissions))
        self.semaphore = AsyncSemaphore(
            LIMIT,
            QUEUE,
            TIMEOUT_SECONDS,
            self.clock,
            lambda outcome, _, count: self.outcomes.extend([outcome] * count),
            self.admission,
        )
        self.semaphore.owners.exempt_from_quota(PROXY)

    # -- bookkeeping --------------------------------------------------------------------------

    @property
    def available(self) -> int:
        return self.limit - self.books.acquired

    def account_of(self, owner: str | None, namespace: str) -> AccountKey | None:
        if owner is None and not self.anonymous_have_an_account:
            return None
        return (owner, namespace if owner in MANY_CLIENTS else "")

    def ask(self, ask: Ask, request: Callable[[], Waiter]) -> None:
        """Make a request and record its end."""
        self.books.asking.append(ask)
        try:
            waiter = request()
        except REFUSALS as error:
            outcome = OUTCOME_OF[type(error)]
            self.books.ended[outcome] += 1
            self.books.asking.remove(ask)
            self.check_refusal_at_once(ask, outcome)
            return
        self.books.asking.remove(ask)
        if waiter.done:
            self.granted(waiter.result(), ask, waiter)
        else:
            self.books.asks[waiter] = ask
            waiter.on_done(lambda: self.answer(waiter))

    def answer(self, waiter: Waiter) -> None:
        """Record a waiter's end: granted or refused, and reported once."""
        self.was_oldest = next(iter(self.books.asks)) is waiter
        ask = self.books.asks.pop(waiter)
        # Until the end of this function: a failure leaves the books incomplete.
        self.broken = True
        if waiter.error is None:
            self.granted(waiter.result(), ask, waiter, waited=True)
        else:
            self.refused(waiter.error, ask)
        self.broken = False

    def refused(self, error: Exception, ask: Ask) -> None:
        """Record a refusal and check its error."""
        outcome = OUTCOME_OF[type(error)]
        self.books.ended[outcome] += 1
        assert self.outcomes[-1] is outcome
        if outcome is AcquireOutcome.TIMED_OUT:
            assert self.clock.now() == ask.asked_at + ask.timeout_seconds
        self.check_refusal(ask, outcome)

    def granted(
        self, permit: Permit, ask: Ask, waiter: Waiter | None, *, waited: bool = False
    ) -> None:
        """Record a grant and check it against the policy."""
        assert permit.size == ask.size
        self.origin[permit] = ask
        before = self.books.size_of(ask.grows)
        if permit.counted and not ask.shrinks and self.limit > 0:
            self.books.asking.append(ask)
            self.check_grant(ask, waited=waited)
            self.books.asking.remove(ask)
        if ask.grows is not None:
            self.books.held.pop(ask.grows, None)
        if not permit.counted:
            assert self.limit <= 0
            return
        self.books.held[permit] = Held(ask.size, ask.account, ask.sharing, ask.namespace)
        self.high_water = max(self.high_water, self.books.acquired)
        if waiter is not None:
            self.answered[waiter] = (ask, before)
        if not ask.shrinks:
            within = self.books.acquired <= self.limit or self.limit <= 0
            outcome = AcquireOutcome.GRANTED if within else AcquireOutcome.OVERDRAFT
            self.books.ended[outcome] += 1
            assert not waited or self.outcomes[-1] is outcome

    def check_grant(self, ask: Ask, *, waited: bool) -> None:
        """Check that the policy allows a grant, on the books before it."""

    def check_refusal_at_once(self, ask: Ask, outcome: AcquireOutcome) -> None:
        """Check that the policy allows refusing a queue place."""

    def check_refusal(self, ask: Ask, outcome: AcquireOutcome) -> None:
        """Check that the policy allows a refusal."""

    def new_ask(
        self,
        size: int,
        account: AccountKey | None,
        sharing: Sharing | None,
        namespace: str,
        grows: Permit | None = None,
    ) -> Ask:
        now, timeout = self.clock.now(), self.timeout_seconds
        return Ask(size, account, sharing, namespace, grows, now, timeout)

    # -- steps --------------------------------------------------------------------------------

    @rule(size=SIZES, owner=OWNERS, namespace=NAMESPACES, unwanted=st.integers(0, 5))
    def request(self, size: int, owner: str | None, namespace: str, unwanted: int) -> None:
        refuses = (lambda: True) if unwanted == 0 else None
        ask = self.new_ask(size, self.account_of(owner, namespace), None, namespace)
        self.ask(ask, lambda: self.semaphore.request(size, refuses, owner, namespace))

    @rule(size=SIZES, owner=OWNERS, namespace=NAMESPACES)
    def acquire_now_or_never(self, size: int, owner: str | None, namespace: str) -> None:
        """Use the coroutine: granted within the call, or cancelled while waiting."""
        ask = self.new_ask(size, self.account_of(owner, namespace), None, namespace)
        work = self.semaphore.acquire(size, None, owner, namespace)
        try:
            permit = self.loop.run_until_complete(now_or_never(work))
        except asyncio.CancelledError:
            self.books.ended[AcquireOutcome.CANCELLED] += 1
        except REFUSALS as error:
            self.books.ended[OUTCOME_OF[type(error)]] += 1
        else:
            self.granted(permit, ask, None)

    @rule(size=st.integers(1, 4), owner=OWNERS, namespace=NAMESPACES, times=st.integers(2, 16))
    def come_and_go(self, size: int, owner: str | None, namespace: str, times: int) -> None:
        """Release an immediate grant immediately, and request again."""
        for _ in range(times):
            known = len(self.origin)
            self.request(size, owner, namespace, 1)
            if len(self.origin) == known:
                return
            self.give_back(list(self.origin)[-1])

    @rule(size=st.integers(1, 4), namespace=NAMESPACES)
    def everybody_asks(self, size: int, namespace: str) -> None:
        for owner in ("a", "b", "c"):
            self.request(size, owner, namespace, 1)

    @rule(more=st.integers(1, 6))
    def everybody_grows(self, more: int) -> None:
        for permit, held in list(self.books.held.items()):
            if permit in self.books.held and 0 < held.size <= self.limit - more:
                self.update_to(permit, held.size + more)

    def some_permit(self, pick: int) -> Permit:
        """Return a recent permit: held, superseded, or released."""
        return list(self.origin)[-1 - pick % min(len(self.origin), 8)]

    @precondition(lambda self: self.origin)
    @rule(pick=PICKS, size=SIZES)
    def update(self, pick: int, size: int) -> None:
        self.update_to(self.some_permit(pick), size)

    def update_to(self, permit: Permit, size: int) -> None:
        old, before = self.origin[permit], permit.size
        if old.sharing is not None and not old.sharing.total:
            return  # no client left to request
        # Unlimited grants are in no books: their update is new work.
        grows = permit if permit.counted else None
        ask = self.new_ask(size, old.account, old.sharing, old.namespace, grows)
        ask.shrinks = grows is not None and size <= before
        if ask.shrinks and permit in self.books.held:
            # It returns immediately, and a waiter may take it before the report.
            self.books.held[permit].size = size
        self.ask(ask, lambda: self.semaphore.request_update(permit, size))
        if ask.shrinks:
            assert permit.size == 0

    @precondition(lambda self: self.origin)
    @rule(pick=PICKS, times=st.integers(1, 2))
    def release(self, pick: int, times: int) -> None:
        permit = self.some_permit(pick)
        for _ in range(times):
            self.give_back(permit)

    def give_back(self, permit: Permit) -> None:
        self.returned.add(permit)
        self.books.held.pop(permit, None)
        self.semaphore.release(permit)
        assert permit.size == 0 or not permit.counted

    @precondition(lambda self: self.books.asks)
    @rule(pick=PICKS)
    def abandon_a_waiting_request(self, pick: int) -> None:
        waiters = list(self.books.asks)
        waiter = waiters[pick % len(waiters)]
        self.semaphore.abandon(waiter)
        assert isinstance(waiter.error, PermitAcquireCancelledError)

    @precondition(lambda self: self.answered)
    @rule(pick=PICKS)
    def abandon_a_granted_request(self, pick: int) -> None:
        """Cancel the caller in the turn of the grant: an update falls back."""
        waiter = list(self.answered)[-1 - pick % min(len(self.answered), 8)]
        ask, before = self.answered[waiter]
        held = self.books.held.pop(waiter.result(), None)
        refilled = min(before, held.size) if held is not None else 0
        if ask.grows is not None and ask.grows not in self.returned and refilled:
            self.books.held[ask.grows] = Held(refilled, ask.account, ask.sharing, ask.namespace)
        self.semaphore.abandon(waiter)
        assert waiter.result().size == 0

    @rule(owner=SHARERS)
    def cancel_owner(self, owner: str) -> None:
        self.books.forget(owner)
        self.semaphore.owners.cancel(owner)
        assert not any(ask.account and ask.account[0] == owner for ask in self.books.asks.values())
        assert self.semaphore.owners.pinned_by(owner) == 0
        if owner == PROXY:
            self.semaphore.owners.exempt_from_quota(owner)

    # -- sharing ------------------------------------------------------------------------------

    @rule(size=SIZES, owner=SHARERS, namespace=NAMESPACES)
    def share(self, size: int, owner: str, namespace: str) -> None:
        sharing = Sharing(self.semaphore.shared.new(namespace), namespace)
        self.books.sharings.append(sharing)
        self.join_sharing(sharing, owner)
        ask = self.new_ask(size, None, sharing, namespace)
        self.ask(ask, lambda: self.semaphore.request(size, None, sharing.holder))

    @precondition(lambda self: self.books.sharings)
    @rule(pick=PICKS, owner=SHARERS)
    def join(self, pick: int, owner: str) -> None:
        sharing = self.books.sharings[pick % len(self.books.sharings)]
        if sharing.total:
            self.join_sharing(sharing, owner)

    def join_sharing(self, sharing: Sharing, owner: str) -> None:
        account = self.account_of(owner, sharing.namespace)
        assert account is not None
        sharing.references[account] += 1
        self.semaphore.shared.join(sharing.holder, owner)

    @precondition(lambda self: self.books.sharings)
    @rule(pick=PICKS, owner=SHARERS)
    def leave(self, pick: int, owner: str) -> None:
        sharing = self.books.sharings[pick % len(self.books.sharings)]
        self.books.leave(sharing, self.account_of(owner, sharing.namespace))
        self.semaphore.shared.leave(sharing.holder, owner)

    # -- limits and time ----------------------------------------------------------------------

    @rule(limit=st.sampled_from([0, 6, LIMIT, LIMIT, 2 * LIMIT]))
    def change_the_limit(self, limit: int) -> None:
        self.limit = limit
        self.semaphore.change_limits(max_permits=limit)
        assert self.limit > 0 or not self.books.asks

    @rule(queue=st.sampled_from([0, 1, QUEUE, QUEUE]), seconds=st.sampled_from([5.0, 25.0]))
    def change_queue_and_timeout(self, queue: int, seconds: float) -> None:
        self.queue, self.timeout_seconds = queue, seconds
        self.semaphore.change_limits(max_queue_size=queue, timeout_seconds=seconds)

    @rule(seconds=st.sampled_from([1.0, 12.5, 13.0, 20.0, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        now = self.clock.now()
        assert all(ask.asked_at + ask.timeout_seconds > now for ask in self.books.asks.values())

    @precondition(lambda self: len(self.origin) > 12)
    @rule()
    def close(self) -> None:
        self.closed = True
        self.semaphore.close()
        assert not self.books.asks

    # -- rules --------------------------------------------------------------------------------

    @invariant()
    def what_must_hold_holds(self) -> None:
        self.nothing_is_lost_or_invented()
        self.the_queue_is_bounded_and_known()
        self.who_holds_what_is_known()
        self.the_figures_are_right()
        self.nobody_waits_in_vain()

    def nobody_waits_in_vain(self) -> None:
        """Check that no grantable request waits, by the policy's rules."""

    def nothing_is_lost_or_invented(self) -> None:
        acquired = self.books.acquired
        assert self.semaphore.acquired_permits == acquired
        unbounded = self.limit <= 0
        expected = UNBOUNDED_PERMITS if unbounded else self.limit - acquired
        assert self.semaphore.available_permits == expected
        assert all(permit.size == held.size for permit, held in self.books.held.items())
        dead = [one for one in self.origin if one.counted and one not in self.books.held]
        assert not any(permit.size for permit in dead)

    def the_queue_is_bounded_and_known(self) -> None:
        waiting = len(self.books.asks)
        assert self.semaphore.queue_size == waiting
        # Waiters keep their places in a shrunken queue.
        assert self.queue <= 0 or waiting <= max(self.queue, self.most_queued)
        self.most_queued = waiting

    def who_holds_what_is_known(self) -> None:
        for owner in ("a", "b", "c", PROXY):
            mine = [one for one in self.books.accounts() if one[0] == owner]
            pinned = sum(self.books.alone(one) + self.books.parts(one) for one in mine)
            assert self.semaphore.owners.pinned_by(owner) == pinned

    def the_figures_are_right(self) -> None:
        statistics = self.semaphore.statistics()
        assert statistics.holders == len(self.books.accounts())
        assert statistics.high_water_permits == self.high_water
        assert len(self.outcomes) == sum(self.books.ended.values())

    def teardown(self) -> None:
        """Check that nothing is left when all holders release and all waiters leave."""
        self.loop.close()
        if self.broken:
            return
        self.come_to_rest()
        self.semaphore.close()
        for permit in list(self.books.held):
            self.books.held.pop(permit, None)
            self.semaphore.release(permit)
        for sharing in self.books.sharings:
            for account in list(sharing.references.elements()):
                self.books.leave(sharing, account)
                self.semaphore.shared.leave(sharing.holder, account[0])
        assert self.semaphore.acquired_permits == self.semaphore.queue_size == 0
        assert list(self.semaphore.accounts()) == []
        self.semaphore.statistics()
        assert Counter(self.outcomes) == +self.books.ended
        self.clock.advance(1_000.0)
        assert len(self.outcomes) == sum(self.books.ended.values())

    def come_to_rest(self) -> None:
        """Check the policy's promise for when all holders release."""


async def now_or_never(work: Coroutine[object, object, Permit]) -> Permit:
    """Return an immediate grant, or cancel the waiter."""
    task = asyncio.get_running_loop().create_task(work)
    await asyncio.sleep(0)
    task.cancel()
    return await task
