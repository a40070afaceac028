"""The decisions of a semaphore: what is granted, who waits for it, and how a wait ends.

Plain functions that run to completion: nobody awaits here. The mutable state is what is
acquired, the queue of waiting requests, and the books of who holds what.

Invariants: acquired is the sum of all live permits, and at most the limit (in an overdraft: plus
its bound; after the limit was lowered: what was held then); a waiter is either in the queue or
done; the one whose turn it is does not fit (otherwise it would have been granted).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from limiter.admission.fair import FairAdmission
from limiter.admission.fifo import Admission, FifoAdmission
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.clock import Clock, LoopClock
from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireQueueFullError,
    PermitAcquireStalledError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
    raised_anew,
)
from limiter.permits.account import Account, SharedHolder, Waiter
from limiter.permits.accounts import Accounts
from limiter.permits.permit import UNBOUNDED_PERMITS, AcquireOutcome, Contention, Permit
from limiter.semaphore.bookkeeping import Holdings

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Granting:
    """What limiter.semaphore.async_semaphore.AsyncSemaphore is made of; see there."""

    def __init__(
        self,
        max_permits: int,
        max_queue_size: int,
        timeout_seconds: float,
        clock: Clock | None = None,
        observer: Callable[[AcquireOutcome, float, int], None] | None = None,
        rules: AdmissionRules | None = None,
    ) -> None:
        self._max_permits = max_permits
        self._max_queue_size = max_queue_size
        self._timeout_seconds = timeout_seconds
        self._clock: Clock = clock or LoopClock()
        self._observer = observer
        self._rules = rules or AdmissionRules()
        self._accounts = Accounts()
        self._admission = self._policy()
        self._holdings = Holdings(self._accounts, self._admission)
        self._acquired = 0
        self._high_water = 0
        self._queue: OrderedDict[Waiter, None] = OrderedDict()
        self._closed = False
        self._overdraft = False
        self._granting = False
        self._overdrafts_total = 0
        self._passed_total = 0
        # Grants that nobody waited for and the observer was not told of yet.
        self._untold_grants = 0
        self._on_contention: Callable[[Contention], None] | None = None
        self._more_seconds: Callable[[Waiter], float] | None = None
        self._told_contention: Waiter | None = None
        self._at_once = self._anonymous_at_once = False
        self._choose_path()

    def _policy(self) -> Admission:
        if self._rules.policy is AdmissionPolicy.FIFO:
            return FifoAdmission()
        return FairAdmission(self, self._accounts, self._rules.caps)

    def _choose_path(self) -> None:
        """Whether requests can be granted at once, and those without an owner by an addition."""
        self._at_once = self._max_permits > 0 and not self._closed
        self._anonymous_at_once = (
            self._at_once
            and self._rules.policy is AdmissionPolicy.FIFO
            and self._holdings.record is None
        )

    @property
    def unbounded(self) -> bool:
        """Whether nothing is limited and nothing counted."""
        return self._max_permits <= 0

    @property
    def max_permits(self) -> int:
        """The limit; 0 or less is unbounded."""
        return self._max_permits

    @property
    def timeout_seconds(self) -> float:
        """How long a request that comes now may wait."""
        return self._timeout_seconds

    @property
    def policy(self) -> AdmissionPolicy:
        """In which order requests are granted."""
        return self._rules.policy

    @property
    def available_permits(self) -> int:
        """What could be granted now; the largest Java long when unbounded."""
        return UNBOUNDED_PERMITS if self.unbounded else self._max_permits - self._acquired

    @property
    def acquired_permits(self) -> int:
        """The sum of all live permits; 0 when unbounded."""
        return self._acquired

    @property
    def queue_size(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    def oldest_waiter(self) -> Waiter | None:
        """Return the request that has waited for longest; None when nobody waits."""
        return next(iter(self._queue), None)

    # -- contention ---------------------------------------------------------------------------

    def contention(self) -> Contention | None:
        """Return who waits for permits of others; None when nobody does."""
        turn = self._admission.turn()
        return None if turn is None else self._contention_of(turn)

    def others_wait(self, owner: Hashable) -> bool:
        """Whether anybody but ``owner`` waits: under fifo also behind its own request."""
        return any(
            (one.owner if one.account is None else one.account.owner) is not owner
            for one in self._queue
        )

    def on_contention(self, callback: Callable[[Contention], None]) -> None:
        """Call back whenever it becomes somebody's turn who has to wait for others."""
        self._on_contention = callback

    def extend_timeouts(self, more_seconds: Callable[[Waiter], float]) -> None:
        """Ask ``more_seconds`` of a request whose time is up how much longer it may wait.

        0 or less: it is refused now.
        """
        self._more_seconds = more_seconds

    def _contention_of(self, turn: Waiter) -> Contention:
        waited_seconds = self._clock.now() - turn.enqueued_at
        owner = turn.account.owner if turn.account is not None else turn.owner
        available = self._max_permits - self._acquired
        return Contention(owner, turn.namespace, turn.needed, available, waited_seconds)

    def _tell_of_contention(self) -> None:
        if self._on_contention is None:
            return
        turn = self._admission.turn() if self._queue else None
        told, self._told_contention = self._told_contention, turn
        if turn is not None and turn is not told:
            self._on_contention(self._contention_of(turn))

    # -- decisions ----------------------------------------------------------------------------

    def _validate(self, size: int) -> None:
        if size < 0:
            raise ValueError(f"Invalid negative permits value: {size}")
        if 0 < self._max_permits < size:
            self._observe(AcquireOutcome.OVERSIZED, 0.0)
            raise PermitTooLargeError(size, self._max_permits)

    def _holder_of(self, owner: Hashable | None, namespace: str) -> Account | SharedHolder | None:
        if type(owner) is SharedHolder:
            return owner
        if owner is None and self._rules.policy is AdmissionPolicy.FIFO:
            return None
        return self._accounts.of(owner, namespace)

    def _new_work(self, size: int, owner: Hashable | None, namespace: str) -> Waiter:
        holder = self._holder_of(owner, namespace)
        waiter = Waiter(size, None, holder, namespace)
        if type(holder) is Account:
            waiter.account = holder
        elif type(holder) is SharedHolder:
            if not holder.references:
                raise ValueError("a shared holder that nobody has joined cannot ask for permits")
            waiter.namespace = holder.namespace
            waiter.account = self._admission.stands_for(holder, waiter)
        return waiter

    def _enqueue(self, waiter: Waiter) -> None:
        if self._closed:
            self._observe(AcquireOutcome.CLOSED, 0.0)
            raise PermitAcquireClosedError
        if waiter.is_cancelled is None and (not self._queue or self._admission.precedes(waiter)):
            # What most requests meet: nobody is before it and there is enough. No place, no clock.
            available = self._max_permits - self._acquired
            if 0 < available >= waiter.needed and self._admits(waiter):
                self._grant(waiter)
                self._untold_grants += 1
                return
        self._make_room(waiter)
        self._wait_in_queue(waiter)

    def _admits(self, waiter: Waiter) -> bool:
        if waiter.previous is not None:
            return self._admission.admits_growth(waiter)
        return self._admission.admits_new(waiter.account, waiter.namespace, waiter.size)

    def _make_room(self, waiter: Waiter) -> None:
        """Find a place in a full queue: policy fair takes it from who has most of them."""
        if not 0 < self._max_queue_size <= len(self._queue):
            return
        crowded_out = self._admission.crowded_out_by(waiter)
        if crowded_out is None:
            self._observe(AcquireOutcome.QUEUE_FULL, 0.0)
            raise PermitAcquireQueueFullError(len(self._queue))
        error = PermitAcquireQueueFullError(len(self._queue))
        if waiter.holder is not None:
            # Not to be forgotten if the one that goes was all its account had.
            waiter.holder.waiters[waiter] = None
        self._refuse(crowded_out, error, AcquireOutcome.QUEUE_FULL)

    def _wait_in_queue(self, waiter: Waiter) -> None:
        waiter.enqueued_at = self._clock.now()
        self._queue[waiter] = None
        if waiter.holder is not None:
            waiter.holder.waiters[waiter] = None
        self._admission.add(waiter)
        self._grant_waiters()
        if not waiter.done:
            due = waiter.enqueued_at + self._timeout_seconds
            waiter.timer = self._clock.call_at(due, self._time_out, waiter)
        elif waiter.error is not None:
            raise raised_anew(waiter.error)

    def _grant_waiters(self) -> None:
        """Grant all who can be granted, in the policy's order.

        What is called back from here may release and ask again: this loop goes on with it.
        """
        if self._granting:
            return
        self._granting = True
        try:
            while self._queue and not self._closed and self._grant_next():
                pass
        finally:
            self._granting = False
        self._tell_of_contention()

    def _grant_next(self) -> bool:
        """Grant or refuse one request; false when nobody can be."""
        turn = self._admission.turn()
        if turn is not None and self._refused_as_unwanted(turn):
            return True
        waiter = None if turn is None else self._admission.next(turn, self.available_permits)
        if turn is None or waiter is None:
            return self._end_stall(turn)
        if not self._refused_as_unwanted(waiter):
            self._admit(waiter, turn, AcquireOutcome.GRANTED)
        return True

    def _refused_as_unwanted(self, waiter: Waiter) -> bool:
        if waiter.is_cancelled is None or not waiter.is_cancelled():
            return False
        self._refuse(waiter, PermitAcquireCancelledError(), AcquireOutcome.CANCELLED)
        return True

    def _end_stall(self, turn: Waiter | None) -> bool:
        """When all that is held waits to grow: let one overdraw, or refuse the last who came."""
        if not self._admission.every_holder_waits():
            return False
        room = self._max_permits + self._rules.overdraft_max(self._max_permits) - self._acquired
        waiter = self._admission.overdraft(self.available_permits if self._overdraft else room)
        if waiter is None:
            return self._refuse_youngest_growth()
        if self._refused_as_unwanted(waiter):
            return True
        if waiter.needed <= self.available_permits:
            self._admit(waiter, turn or waiter, AcquireOutcome.GRANTED)
            return True
        self._overdraft = True
        self._overdrafts_total += 1
        self._admit(waiter, turn or waiter, AcquireOutcome.OVERDRAFT)
        return True

    def _refuse_youngest_growth(self) -> bool:
        last = self._admission.youngest_growth()
        if last is not None:
            self._refuse(last, PermitAcquireStalledError(), AcquireOutcome.STALLED)
        return last is not None

    def _overdraft_permits(self) -> int:
        return max(0, self._acquired - self._max_permits) if self._overdraft else 0

    def _admit(self, waiter: Waiter, turn: Waiter, outcome: AcquireOutcome) -> None:
        self._passed_total += self._admission.admitted(waiter, turn)
        self._end_wait(waiter, outcome)

    def _end_wait(self, waiter: Waiter, outcome: AcquireOutcome) -> None:
        self._unlist(waiter)
        self._observe(outcome, self._clock.now() - waiter.enqueued_at)
        self._grant(waiter)

    def _grant(self, waiter: Waiter) -> None:
        permit = Permit(waiter.size, waiter.holder, waiter.namespace)
        if waiter.previous is not None:
            self._admission.exchanged(waiter, permit)
            waiter.previous_size = self._empty(waiter.previous)
        self._fill(permit, waiter.previous)
        self._end_overdraft()
        waiter.settle(permit, None)

    def _fill(self, permit: Permit, instead_of: Permit | None) -> None:
        """Count what a permit holds from now on, maybe instead of one that was emptied for it."""
        self._acquired += permit.size
        self._high_water = max(self._high_water, self._acquired)
        self._holdings.took_on(permit, instead_of)

    def _time_out(self, waiter: Waiter) -> None:
        more = self._more_seconds(waiter) if self._more_seconds is not None else 0.0
        if more > 0:
            waiter.timer = self._clock.call_at(self._clock.now() + more, self._time_out, waiter)
            return
        waited = self._clock.now() - waiter.enqueued_at
        self._refuse(waiter, PermitAcquireTimeoutError(waited), AcquireOutcome.TIMED_OUT)
        self._grant_waiters()

    def _refuse(self, waiter: Waiter, error: Exception, outcome: AcquireOutcome) -> None:
        if waiter not in self._queue:
            return  # What an earlier refusal woke has abandoned it meanwhile.
        self._admission.discard(waiter)
        self._unlist(waiter)
        self._holdings.forget_if_idle(waiter.holder)
        self._observe(outcome, self._clock.now() - waiter.enqueued_at)
        waiter.settle(None, error)

    def _unlist(self, waiter: Waiter) -> None:
        """Take a waiter out of the queue and off its holder's list."""
        del self._queue[waiter]
        if waiter.holder is not None:
            waiter.holder.waiters.pop(waiter, None)

    def _take_from(self, permit: Permit) -> int:
        """Empty a permit and return what it held; the second time that is 0."""
        size = self._empty(permit)
        self._end_overdraft()
        self._holdings.forget_if_idle(permit.holder)
        return size

    def _empty(self, permit: Permit) -> int:
        if not permit.counted:
            return 0
        size = permit.take()
        self._acquired -= size
        self._holdings.gave_back(permit, size)
        return size

    def _end_overdraft(self) -> None:
        """An overdraft lasts until what is acquired is within the limit again."""
        if self.unbounded or self._acquired <= self._max_permits:
            self._overdraft = False

    def _take_back(self, waiter: Waiter, permit: Permit) -> None:
        """Undo a grant that lost its caller; an update falls back to the permit it had.

        Only what the grant still holds can go back to it: nothing once the owner was cancelled.
        """
        still_held = self._empty(permit)
        previous = waiter.previous
        refilled = min(waiter.previous_size, still_held)
        if previous is not None and not previous.returned and refilled:
            previous.refill(refilled)
            self._fill(previous, permit)
        self._end_overdraft()
        self._holdings.forget_if_idle(permit.holder)

    def _observe(self, outcome: AcquireOutcome, waited_seconds: float) -> None:
        self._tell_of_grants()
        if self._observer is not None:
            self._observer(outcome, waited_seconds, 1)

    def _tell_of_grants(self) -> None:
        """Tell the observer of the requests that waited for nothing, all at once."""
        count, self._untold_grants = self._untold_grants, 0
        if count and self._observer is not None:
            self._observer(AcquireOutcome.GRANTED, 0.0, count)
