"""Permits granted without a wait, when no request waits and enough permits are free.

The common case. It costs no waiter, no slot in the queue and no clock read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.permits.account import SharedHolder
from limiter.permits.permit import Permit

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limiter.admission.waiting_requests import WaitingRequests
    from limiter.permits.account import Waiter
    from limiter.semaphore.bookkeeping import Bookkeeping
    from limiter.semaphore.outcomes import Outcomes


class ImmediateGrants:
    """Grants of permits to requests that need not wait."""

    __slots__ = ("_admission", "_books", "_budget", "_outcomes", "_waiting")

    def __init__(self, books: Bookkeeping, waiting: WaitingRequests, outcomes: Outcomes) -> None:
        self._books = books
        self._budget = books.budget
        self._admission = books.admission
        self._waiting = waiting
        self._outcomes = outcomes

    def permit(self, size: int, owner: Hashable | None, namespace: str = "") -> Permit | None:
        """Return a permit if no request waits and enough permits are free, else None."""
        budget = self._budget
        acquired = budget.acquired + size
        if size <= 0 or acquired > budget.max_permits or self._waiting.requests or budget.closed:
            return None
        books = self._books
        if owner is None and books.skips_anonymous:
            permit = Permit(size)
        else:
            account = books.holder_of(owner, namespace)
            if isinstance(account, SharedHolder):
                return None
            if not self._admission.admits_new(account, namespace, size):
                books.forget_if_idle(account)
                return None
            permit = Permit(size, account, namespace)
            books.assign(permit)
        budget.acquired = acquired
        if acquired > budget.high_water:
            budget.high_water = acquired
        self._outcomes.untold_grants += 1
        return permit

    def allows(self, size: int, owner: Hashable, namespace: str = "") -> bool:
        """Return True if :meth:`permit` would grant the request now, or no limit is set."""
        budget = self._budget
        if budget.max_permits <= 0:
            return True
        if not 0 < size <= budget.max_permits - budget.acquired:
            return False
        if self._waiting.requests or budget.closed:
            return False
        account = self._books.accounts.of(owner, namespace)
        admitted = self._admission.admits_new(account, namespace, size)
        self._books.accounts.forget_if_idle(account)
        return admitted

    def count_transient(self, size: int, owner: Hashable, namespace: str = "") -> None:
        """Count a request as granted and released within this event-loop iteration.

        For a request that :meth:`allows` has allowed.
        """
        budget, record = self._budget, self._books.record
        if budget.max_permits > 0:
            self._outcomes.untold_grants += 1
            budget.high_water = max(budget.high_water, budget.acquired + size)
            if record is not None:
                record.passed(owner, namespace, size)

    def admits(self, waiter: Waiter) -> bool:
        """Return True if a request, for a new or a larger permit, can be granted now."""
        if waiter.is_cancelled is not None:
            return False
        if self._waiting.requests and not self._admission.precedes(waiter):
            return False
        if not 0 < self._budget.available_permits >= waiter.needed:
            return False
        if waiter.previous is not None:
            return self._admission.admits_growth(waiter)
        return self._admission.admits_new(waiter.account, waiter.namespace, waiter.size)
