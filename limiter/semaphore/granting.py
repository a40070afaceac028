"""Decisions of a semaphore: which requests to grant, to queue, or to refuse.

Plain functions that run to completion, without await.

Invariants: acquired is the sum of all live permits, and at most the limit (in an overdraft: plus
its bound; after the limit was lowered: the permits held before); a waiter is either in the queue or
done; the next request does not fit (otherwise it would have been granted).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.admission.policy import Admission
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
from limiter.permits.permit import AcquireOutcome, Permit

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limiter.admission.rules import AdmissionRules
    from limiter.admission.view import BudgetView
    from limiter.errors import PermitAcquireRefusedError
    from limiter.semaphore.bookkeeping import Bookkeeping
    from limiter.semaphore.immediate_grants import ImmediateGrants
    from limiter.semaphore.outcomes import ContentionWatch, Outcomes


class Granting:
    """Grants and refusals of a semaphore's requests, in the order of the admission policy.

    Attributes:
        passed_total: Requests that overtook the next request.
    """

    def __init__(
        self,
        books: Bookkeeping,
        rules: AdmissionRules,
        outcomes: Outcomes,
        contention: ContentionWatch,
        immediate: ImmediateGrants,
        view: BudgetView,
    ) -> None:
        self._books = books
        self._budget = books.budget
        self._admission = books.admission
        self._waiting = view.queue
        self._rules = rules
        self._outcomes = outcomes
        self._contention = contention
        self._immediate = immediate
        self._view = view
        # Policies that never shed are not called in every iteration.
        sheds = type(books.admission).sheds is not Admission.sheds
        self._sheds = books.admission.sheds if sheds else None
        self._running = False
        self.passed_total = 0

    # -- new requests --------------------------------------------------------------------------

    def validate(self, size: int) -> None:
        """Raise an error if a size is negative or larger than the limit."""
        if size < 0:
            raise ValueError(f"Invalid negative permits value: {size}")
        limit = self._budget.max_permits
        if 0 < limit < size:
            self._outcomes.tell(AcquireOutcome.OVERSIZED)
            raise PermitTooLargeError(size, limit)

    def new_work(self, size: int, owner: Hashable | None, namespace: str) -> Waiter:
        """Create a request for a new permit, with the account in whose line it waits."""
        holder = self._books.holder_of(owner, namespace)
        waiter = Waiter(size, None, holder, namespace)
        if type(holder) is Account:
            waiter.account = holder
        elif type(holder) is SharedHolder:
            if not holder.references:
                raise ValueError("a shared holder without members cannot request permits")
            waiter.namespace = holder.namespace
            waiter.account = self._admission.stands_for(holder, waiter)
        return waiter

    def ask(self, waiter: Waiter) -> None:
        """Grant a request, or queue it; refuse a request above a cap."""
        try:
            self._admission.validate(waiter.account, waiter.size)
            self._enqueue(waiter)
        except PermitTooLargeError:
            self._outcomes.tell(AcquireOutcome.OVERSIZED)
            raise
        finally:
            self._books.forget_if_idle(waiter.holder)

    def _enqueue(self, waiter: Waiter) -> None:
        if self._budget.closed:
            self._outcomes.tell(AcquireOutcome.CLOSED)
            raise PermitAcquireClosedError
        if self._immediate.admits(waiter):
            self.grant(waiter)
            self._outcomes.untold_grants += 1
            return
        refusal = self._admission.refuses(waiter)
        if refusal is not None:
            self._outcomes.count_reason(refusal.label)
            self._outcomes.tell(AcquireOutcome.REFUSED)
            raise refusal
        if self._waiting.full:
            self._make_room(waiter)
        self._wait_in_queue(waiter)

    def _make_room(self, waiter: Waiter) -> None:
        """Free a slot in a full queue by refusing another request, or raise an error.

        Policy fair takes the slot from the account with the most slots.
        """
        error = PermitAcquireQueueFullError(len(self._waiting.requests))
        crowded_out = self._admission.crowded_out_by(waiter)
        if crowded_out is None:
            self._outcomes.tell(AcquireOutcome.QUEUE_FULL)
            raise error
        if waiter.holder is not None:
            # Keeps the account, in case the refused request was its last.
            waiter.holder.waiters[waiter] = None
        self.refuse(crowded_out, error, AcquireOutcome.QUEUE_FULL)

    def _wait_in_queue(self, waiter: Waiter) -> None:
        self._waiting.add(waiter)
        self._admission.add(waiter)
        if self._view.drain is not None:
            self._view.drain.begins(waiter.enqueued_at)
        self.grant_waiters()
        if not waiter.done:
            seconds = self._admission.wait_seconds(waiter)
            self._waiting.limit_wait(waiter, seconds, self._time_out)
        elif waiter.error is not None:
            raise raised_anew(waiter.error)

    # -- the next request --------------------------------------------------------------------

    def grant_waiters(self) -> None:
        """Grant all requests that can be granted, in the policy's order.

        Callbacks may release and request again: the running loop serves them as well.
        """
        if self._running:
            return
        self._running = True
        try:
            requests, budget = self._waiting.requests, self._budget
            while requests and not budget.closed and self._grant_next():
                pass
        finally:
            self._running = False
        self._contention.check()

    def _grant_next(self) -> bool:
        """Grant or refuse one request; return False if no request can be granted or refused."""
        if self._sheds is not None and self._shed(self._sheds()):
            return True
        turn = self._admission.turn()
        if turn is not None and self._refused_as_unwanted(turn):
            return True
        available = self._budget.available_permits
        waiter = None if turn is None else self._admission.next(turn, available)
        if turn is None or waiter is None:
            return self._end_stall(turn)
        if not self._refused_as_unwanted(waiter):
            self._admit(waiter, turn, AcquireOutcome.GRANTED)
        return True

    def _refused_as_unwanted(self, waiter: Waiter) -> bool:
        if waiter.is_cancelled is None or not waiter.is_cancelled():
            return False
        self.refuse(waiter, PermitAcquireCancelledError(), AcquireOutcome.CANCELLED)
        return True

    def _shed(self, one: tuple[Waiter, PermitAcquireRefusedError] | None) -> bool:
        if one is None:
            return False
        waiter, reason = one
        self._outcomes.count_reason(reason.label)
        self.refuse(waiter, reason, AcquireOutcome.REFUSED)
        return True

    def _end_stall(self, turn: Waiter | None) -> bool:
        """If all permits wait to grow, grant one beyond the limit or refuse the newest request."""
        budget, limit = self._budget, self._budget.max_permits
        beyond = 0 if budget.overdraft else self._rules.overdraft_max(limit)
        ended = self._admission.ends_stall(budget.available_permits + beyond)
        if ended is None:
            return False
        waiter, granted = ended
        if not granted:
            self.refuse(waiter, PermitAcquireStalledError(), AcquireOutcome.STALLED)
            return True
        if self._refused_as_unwanted(waiter):
            return True
        outcome = AcquireOutcome.GRANTED
        if waiter.needed > budget.available_permits:
            outcome = AcquireOutcome.OVERDRAFT
            budget.overdraft = True
            budget.overdrafts_total += 1
        self._admit(waiter, turn or waiter, outcome)
        return True

    # -- ends of requests ---------------------------------------------------------------------

    def _admit(self, waiter: Waiter, turn: Waiter, outcome: AcquireOutcome) -> None:
        self.passed_total += waiter is not turn
        self._admission.admitted(waiter, turn)
        if self._view.drain is not None:
            self._view.drain.granted(waiter.needed, self._view.clock.now())
        self._end_wait(waiter, outcome)

    def _leave_queue(self, waiter: Waiter) -> None:
        self._waiting.remove(waiter)
        if self._view.drain is not None and not self._waiting.requests:
            self._view.drain.ends(self._view.clock.now())

    def _end_wait(self, waiter: Waiter, outcome: AcquireOutcome) -> None:
        self._leave_queue(waiter)
        self._outcomes.tell(outcome, self._waiting.waited_seconds(waiter))
        self.grant(waiter)

    def grant(self, waiter: Waiter) -> None:
        """Grant a request, in exchange for the permit that it enlarges, if any."""
        permit = Permit(waiter.size, waiter.holder, waiter.namespace)
        if waiter.previous is not None:
            self._admission.exchanged(waiter, permit)
            waiter.previous_size = self._books.empty(waiter.previous)
        self._books.fill(permit, waiter.previous)
        self._budget.end_overdraft()
        waiter.settle(permit, None)

    def limits_changed(self) -> None:
        """Apply changed limits: refuse requests now too large, and grant requests that now fit."""
        self._refuse_oversized()
        if self._budget.unbounded:
            self._grant_all()
        self._budget.end_overdraft()
        self._admission.accounts_changed()
        self.grant_waiters()

    def _grant_all(self) -> None:
        for waiter in list(self._waiting.requests):
            if waiter in self._waiting.requests:
                self._admission.discard(waiter)
                self._end_wait(waiter, AcquireOutcome.GRANTED)

    def _time_out(self, waiter: Waiter) -> None:
        if not self._waiting.extend_wait(waiter, self._time_out):
            waited = self._waiting.waited_seconds(waiter)
            self.refuse(waiter, PermitAcquireTimeoutError(waited), AcquireOutcome.TIMED_OUT)
            self.grant_waiters()

    def refuse(self, waiter: Waiter, error: Exception, outcome: AcquireOutcome) -> None:
        """Remove a request from the queue, and end its wait with an error."""
        if waiter not in self._waiting.requests:
            return  # A callback of an earlier refusal has abandoned the request.
        self._admission.discard(waiter)
        self._leave_queue(waiter)
        self._books.forget_if_idle(waiter.holder)
        self._outcomes.tell(outcome, self._waiting.waited_seconds(waiter))
        waiter.settle(None, error)

    def _refuse_oversized(self) -> None:
        limit = self._budget.max_permits
        for waiter in [one for one in self._waiting.requests if 0 < limit < one.size]:
            error = PermitTooLargeError(waiter.size, limit)
            self.refuse(waiter, error, AcquireOutcome.OVERSIZED)

    def close(self) -> None:
        """Refuse all waiting and future requests."""
        self._budget.closed = True
        for waiter in list(self._waiting.requests):
            self.refuse(waiter, PermitAcquireClosedError(), AcquireOutcome.CLOSED)

    def abandon(self, waiter: Waiter) -> None:
        """Drop a request; a granted update falls back to its former permit."""
        if waiter in self._waiting.requests:
            self.refuse(waiter, PermitAcquireCancelledError(), AcquireOutcome.CANCELLED)
        elif waiter.permit is not None:
            self._take_back(waiter, waiter.permit)
        self.grant_waiters()

    def _take_back(self, waiter: Waiter, permit: Permit) -> None:
        """Undo a grant whose caller has left, restoring the permit that it replaced.

        Only permits that the grant still holds are restored: none once the owner was cancelled.
        """
        still_held = self._books.empty(permit)
        previous = waiter.previous
        refilled = min(waiter.previous_size, still_held)
        if previous is not None and not previous.returned and refilled:
            previous.size = refilled
            self._books.fill(previous, permit)
        self._budget.end_overdraft()
        self._books.forget_if_idle(permit.holder)

    def give_up(self, holder: Account | SharedHolder) -> None:
        """Cancel a holder's waiting requests and release its permits."""
        for waiter in list(holder.waiters):
            self.refuse(waiter, PermitAcquireCancelledError(), AcquireOutcome.CANCELLED)
        for permit in list(holder.permits):
            self._books.release(permit)
