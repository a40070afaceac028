"""Whatever happens to a semaphore, it neither loses nor invents a permit."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
)
from limiter.semaphore import AsyncSemaphore
from tests.support.manual_clock import ManualClock

if TYPE_CHECKING:
    from limiter.permit import AcquireOutcome, Permit, Waiter

LIMIT = 6
QUEUE = 4
TIMEOUT_SECONDS = 25.0
SIZES = st.integers(0, LIMIT)
OWNERS = st.sampled_from([None, None, None, "a"])
PICKS = st.integers(0, 1_000)


class SemaphoreHistory(RuleBasedStateMachine):
    """Requests, updates, releases, leavers and time in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.outcomes: list[AcquireOutcome] = []
        self.semaphore = AsyncSemaphore(
            LIMIT,
            QUEUE,
            TIMEOUT_SECONDS,
            self.clock,
            lambda how, _, count: self.outcomes.extend([how] * count),
        )
        self.permits: list[Permit] = []
        self.waiters: list[Waiter] = []
        self.answered: list[Waiter] = []
        self.arrived_at: dict[Waiter, float] = {}
        self.settled: dict[Waiter, int] = {}
        self.closed = False

    def take_note(self, waiter: Waiter, *, grows: bool) -> None:
        self.arrived_at[waiter] = self.clock.now()
        self.settled[waiter] = 0
        at_once = waiter.done
        waiter.on_done(lambda: self.answer(waiter))
        if not at_once:
            self.waiters.append(waiter)
        # FIFO: nobody is granted at once while somebody waits, but who only shrinks.
        assert not (at_once and grows and self.waiters)

    def answer(self, waiter: Waiter) -> None:
        self.settled[waiter] += 1
        if waiter in self.waiters and waiter.permit is not None:
            # FIFO: who is granted is the oldest of those who still wait.
            assert waiter is self.waiters[0]
        if waiter in self.waiters:
            self.waiters.remove(waiter)
        if waiter.permit is not None:
            self.permits.append(waiter.permit)
            self.answered.append(waiter)
        elif isinstance(waiter.error, PermitAcquireTimeoutError):
            assert self.clock.now() == self.arrived_at[waiter] + TIMEOUT_SECONDS

    # -- what may happen ----------------------------------------------------------------------

    @rule(size=SIZES, owner=OWNERS, unwanted=st.booleans())
    def request(self, size: int, owner: str | None, unwanted: bool) -> None:
        refused = (
            PermitAcquireQueueFullError,
            PermitAcquireClosedError,
            PermitAcquireCancelledError,
        )
        was_exhausted = self.semaphore.available_permits <= 0
        with suppress(*refused):
            wanted = (lambda: True) if unwanted and size == 5 else None
            waiter = self.semaphore.request(size, wanted, owner)
            assert not (waiter.done and was_exhausted)
            self.take_note(waiter, grows=True)

    @precondition(lambda self: self.permits)
    @rule(pick=PICKS, size=SIZES)
    def update(self, pick: int, size: int) -> None:
        permit = self.permits[pick % len(self.permits)]
        before = permit.size
        try:
            self.take_note(self.semaphore.request_update(permit, size), grows=size > before)
        except (PermitAcquireQueueFullError, PermitAcquireClosedError):
            assert permit.size == before

    @precondition(lambda self: self.permits)
    @rule(pick=PICKS, times=st.integers(1, 2))
    def release(self, pick: int, times: int) -> None:
        permit = self.permits[pick % len(self.permits)]
        for _ in range(times):
            self.semaphore.release(permit)
            assert permit.size == 0

    @precondition(lambda self: self.waiters)
    @rule(pick=PICKS)
    def abandon_a_waiting_request(self, pick: int) -> None:
        waiter = self.waiters[pick % len(self.waiters)]
        self.semaphore.abandon(waiter)
        assert isinstance(waiter.error, PermitAcquireCancelledError)

    @precondition(lambda self: self.answered)
    @rule(pick=PICKS)
    def abandon_a_granted_request(self, pick: int) -> None:
        waiter = self.answered[pick % len(self.answered)]
        self.semaphore.abandon(waiter)
        assert waiter.result().size == 0

    @rule(owner=st.just("a"))
    def cancel_owner(self, owner: str) -> None:
        self.semaphore.cancel_owner(owner)
        assert not any(permit.size for permit in self.permits if permit.owner == owner)
        assert not any(waiter.owner == owner for waiter in self.waiters)

    @rule(seconds=st.sampled_from([1.0, 12.5, 13.0, 20.0, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        oldest = self.clock.now() - TIMEOUT_SECONDS
        assert all(self.arrived_at[waiter] > oldest for waiter in self.waiters)

    @precondition(lambda self: len(self.outcomes) > 30)
    @rule()
    def close(self) -> None:
        self.semaphore.close()
        self.closed = True
        assert not self.waiters

    # -- what must hold -----------------------------------------------------------------------

    @invariant()
    def nothing_is_lost_or_invented(self) -> None:
        acquired = self.semaphore.acquired_permits
        assert acquired == sum(permit.size for permit in self.permits)
        assert 0 <= acquired <= LIMIT
        assert self.semaphore.available_permits == LIMIT - acquired

    @invariant()
    def the_queue_is_bounded_and_known(self) -> None:
        assert self.semaphore.queue_size == len(self.waiters) <= QUEUE
        assert not (self.closed and self.waiters)

    @invariant()
    def the_head_does_not_fit(self) -> None:
        if self.waiters:
            available = self.semaphore.available_permits
            assert available <= 0 or self.waiters[0].needed > available

    @invariant()
    def everybody_is_answered_at_most_once(self) -> None:
        assert all(
            count == (0 if waiter in self.waiters else 1) for waiter, count in self.settled.items()
        )

    def teardown(self) -> None:
        """Nothing is left when all who hold give back and all who wait leave."""
        self.semaphore.close()
        for permit in self.permits:
            self.semaphore.release(permit)
        assert self.semaphore.acquired_permits == 0
        assert self.semaphore.queue_size == 0
        assert list(self.semaphore.accounts()) == []
        answers = len(self.outcomes)
        self.clock.advance(1_000.0)
        assert len(self.outcomes) == answers


TestSemaphoreHistory = SemaphoreHistory.TestCase
TestSemaphoreHistory.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
