"""A semaphore that counts bytes: PIP-442's AsyncSemaphore.

Decisions are plain functions that run to completion (limiter.semaphore.granting); the coroutines
here only wait. The admission policy (limiter.admission.policy) decides the order of grants.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from limiter.admission.guarded import GuardedAdmission
from limiter.admission.rules import AdmissionRules
from limiter.admission.view import BudgetView
from limiter.admission.waiting_requests import WaitingRequests
from limiter.clock import Clock, LoopClock
from limiter.permits.account import Account, SharedHolder, Waiter
from limiter.permits.accounts import Accounts
from limiter.permits.permit import AcquireOutcome, Budget, Permit, SemaphoreStatistics
from limiter.semaphore.bookkeeping import Bookkeeping
from limiter.semaphore.granting import Granting
from limiter.semaphore.immediate_grants import ImmediateGrants
from limiter.semaphore.outcomes import ContentionWatch, Outcomes
from limiter.semaphore.owners import Owners, SharedHolders

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from limiter.permits.ledger import PermitRecord


class AsyncSemaphore:
    """Semaphore with a limited number of permits, and a queue of requests for them.

    Args:
        max_permits: The limit; 0 or less is unbounded and uncounted.
        max_queue_size: Slots for waiting requests; 0 or less is unbounded.
        timeout_seconds: The longest wait of a request.
        clock: The source of time; None is the event loop's clock.
        observer: Called with an outcome, seconds of waiting, and the number of requests. Each
            request is reported once; requests without a wait are reported in batches, at the latest
            by ``statistics``.
        rules: The admission rules; None is policy fifo, as upstream.

    Attributes:
        immediate: Grants of permits without a wait.
        owners: Operations on all permits and requests of an owner.
        shared: Permits held by several owners together.
        contention: The request that waits for permits of other owners.

    Source: PIP-442, AsyncSemaphoreImpl.
    Differs: a fitting first request is granted within the call; cancelling a waiting task removes
    its request immediately; ``is_cancelled`` of the next request is called even when no permits are
    free.
    """

    def __init__(
        self,
        max_permits: int,
        max_queue_size: int,
        timeout_seconds: float,
        clock: Clock | None = None,
        observer: Callable[[AcquireOutcome, float, int], None] | None = None,
        rules: AdmissionRules | None = None,
    ) -> None:
        self._rules = rules = rules or AdmissionRules()
        self._budget = budget = Budget(max_permits)
        clock = clock or LoopClock()
        self._waiting = waiting = WaitingRequests(max_queue_size, timeout_seconds, clock)
        self._outcomes = outcomes = Outcomes(observer)
        accounts = Accounts()
        view = BudgetView(budget, waiting, accounts, rules.caps, clock)
        own = isinstance(rules.policy, type)
        self._guarded = GuardedAdmission(rules, view) if own else None
        admission = self._guarded or rules.policy_class(view)
        self._books = books = Bookkeeping(budget, accounts, admission)
        self.contention = ContentionWatch(budget, waiting, admission)
        self.immediate = ImmediateGrants(books, waiting, outcomes)
        self._granting = Granting(books, rules, outcomes, self.contention, self.immediate, view)
        if self._guarded is not None:
            self._guarded.on_fault = self._granting.grant_waiters
        self.shared = SharedHolders(books, self._granting)
        self.owners = Owners(books, self._granting, self.shared)

    def __repr__(self) -> str:
        return (
            f"<AsyncSemaphore {self.acquired_permits}/{self.max_permits} "
            f"with {self.queue_size} waiting>"
        )

    # -- the three operations of the PIP ------------------------------------------------------

    async def acquire(
        self,
        size: int,
        is_cancelled: Callable[[], bool] | None = None,
        owner: Hashable | None = None,
        namespace: str = "",
    ) -> Permit:
        """Return a permit of ``size``, waiting in the queue until it can be granted.

        Args:
            size: 0 <= size <= limit. Under fifo a request of 0 waits too while no permit is free.
            is_cancelled: Called when the request is considered; True cancels the request.
            owner: The owner of the request; see :attr:`owners`.
            namespace: ``tenant/namespace`` of the request, for policy fair.

        Raises:
            PermitTooLargeError: ``size`` exceeds the limit (immediately).
            ValueError: ``size`` is negative (immediately).
            PermitAcquireQueueFullError: No slot in the queue (immediately).
            PermitAcquireTimeoutError: Not granted in time.
            PermitAcquireCancelledError: The owner left or ``is_cancelled`` returned True.
            PermitAcquireClosedError: The semaphore is or was closed.
            PermitAcquireRefusedError: Refused by the policy.

        Source: PIP-442, AsyncSemaphore.acquire.
        """
        if is_cancelled is None:
            permit = self.immediate.permit(size, owner, namespace)
            if permit is not None:
                return permit
        waiter = self.request(size, is_cancelled, owner, namespace)
        return waiter.permit or await self._finish(waiter)

    async def update(
        self, permit: Permit, size: int, is_cancelled: Callable[[], bool] | None = None
    ) -> Permit:
        """Exchange ``permit`` for a permit of ``size``, waiting if too few permits are free.

        Growing waits for the difference and keeps the held permits: under fifo at the tail, under
        fair before all new requests. Shrinking never waits, also after close. After any error
        ``permit`` is unchanged and still to be released.

        Raises:
            The errors of :meth:`acquire`.
            PermitAcquireStalledError: Policy fair: all held permits waited to grow, and this growth
                was the youngest.

        Source: PIP-442, AsyncSemaphore.update.
        """
        return await self._finish(self.request_update(permit, size, is_cancelled))

    def release(self, permit: Permit) -> None:
        """Release a permit; no-op for a released or superseded permit.

        Source: PIP-442, AsyncSemaphore.release.
        """
        permit.returned = True
        if permit.holder is None and permit.counted and self._books.skips_anonymous:
            size, permit.size = permit.size, 0
            self._budget.acquired -= size
        else:
            self._books.release(permit)
        if self._waiting.requests:
            self._granting.grant_waiters()

    # -- the same without awaiting ------------------------------------------------------------

    def request(
        self,
        size: int,
        is_cancelled: Callable[[], bool] | None = None,
        owner: Hashable | None = None,
        namespace: str = "",
    ) -> Waiter:
        """Request a permit without awaiting; the returned waiter may be done already.

        Raises as :meth:`acquire`.
        """
        self._granting.validate(size)
        if self.unbounded:
            waiter = Waiter(size)
            waiter.settle(_uncounted(size, owner, namespace), None)
            return waiter
        waiter = self._granting.new_work(size, owner, namespace)
        waiter.is_cancelled = is_cancelled
        self._granting.ask(waiter)
        return waiter

    def request_update(
        self, permit: Permit, size: int, is_cancelled: Callable[[], bool] | None = None
    ) -> Waiter:
        """Request an exchange of a permit without awaiting; the waiter may be done already.

        Raises as :meth:`update`.
        """
        if not permit.counted:
            return self.request(size, is_cancelled, _owner_of(permit), permit.namespace)
        if size > permit.size or size < 0:
            self._granting.validate(size)
        if self.unbounded:
            self._books.release(permit)
            return self.request(size, None, _owner_of(permit), permit.namespace)
        waiter = self._growth(size, permit)
        if size <= permit.size:
            self._granting.grant(waiter)
            self._granting.grant_waiters()
        else:
            waiter.is_cancelled = is_cancelled
            self._granting.ask(waiter)
        return waiter

    def _growth(self, size: int, permit: Permit) -> Waiter:
        holder = permit.holder
        if type(holder) is SharedHolder:
            waiter = Waiter(size, permit, holder, permit.namespace)
            waiter.account = holder.first_member()
            return waiter
        account = holder if type(holder) is Account else None
        if account is not None and account.idle:
            # A released permit may have outlived its owner's account.
            account = self._books.accounts.of(account.owner, permit.namespace)
        waiter = Waiter(size, permit, account, permit.namespace)
        waiter.account = account
        return waiter

    def abandon(self, waiter: Waiter) -> None:
        """Drop a request whose caller has left, even if it was granted just before."""
        self._granting.abandon(waiter)

    # -- run time -----------------------------------------------------------------------------

    def change_limits(
        self,
        max_permits: int | None = None,
        max_queue_size: int | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """Change limits at run time; None leaves a limit unchanged.

        A higher limit grants immediately. A lower limit revokes no held permits; waiting requests
        above it are refused with the figures. Queue size and timeout apply to new requests; waiting
        requests keep their slots and deadlines.
        """
        if max_queue_size is not None:
            self._waiting.max_size = max_queue_size
        if timeout_seconds is not None:
            self._waiting.timeout_seconds = timeout_seconds
        if max_permits is not None:
            self._budget.max_permits = max_permits
        self._granting.limits_changed()

    def close(self) -> None:
        """Refuse all requests, waiting or new; held permits can still be released."""
        self._granting.close()

    def record_with(self, record: PermitRecord) -> None:
        """Set the object that records the events of all permits, before the first request."""
        self._books.record_with(record)

    def extend_timeouts(self, more_seconds: Callable[[Waiter], float]) -> None:
        """Set the function that returns by how many seconds to extend a request's deadline.

        0 or less refuses the request.
        """
        self._waiting.more_seconds = more_seconds

    # -- queries ------------------------------------------------------------------------------

    @property
    def unbounded(self) -> bool:
        """True without a limit, when permits are not counted."""
        return self._budget.unbounded

    @property
    def max_permits(self) -> int:
        """The limit; 0 or less is unbounded."""
        return self._budget.max_permits

    @property
    def timeout_seconds(self) -> float:
        """Timeout of a new request, in seconds."""
        return self._waiting.timeout_seconds

    @property
    def policy_name(self) -> str:
        """Name of the admission policy in effect, as set by ``floodgateAdmissionPolicy``.

        Includes the fault of a failed policy.
        """
        name, fault = self._rules.policy_name, self._policy_fault
        return f"fifo, as {name} has failed: {fault}" if fault else name

    @property
    def _policy_fault(self) -> str:
        return "" if self._guarded is None else self._guarded.fault

    @property
    def available_permits(self) -> int:
        """Number of free permits; 2**63 - 1 when unbounded."""
        return self._budget.available_permits

    @property
    def acquired_permits(self) -> int:
        """The sum of all live permits; 0 when unbounded."""
        return self._budget.acquired

    @property
    def queue_size(self) -> int:
        """The number of waiting requests."""
        return len(self._waiting.requests)

    def oldest_waiter(self) -> Waiter | None:
        """Return the oldest waiting request; None with an empty queue."""
        return self._waiting.oldest()

    def waiters(self) -> Iterator[Waiter]:
        """Yield the waiting requests, oldest first; a live view."""
        yield from self._waiting.requests

    def accounts(self) -> Iterator[Account]:
        """Yield the accounts with permits or waiting requests; a live view."""
        yield from self._books.accounts

    def statistics(self) -> SemaphoreStatistics:
        """Return a snapshot of limits, held permits, waiting requests and counters."""
        self._outcomes.tell_grants()
        budget, oldest = self._budget, self._waiting.oldest()
        return SemaphoreStatistics(
            max_permits=budget.max_permits,
            acquired_permits=budget.acquired,
            available_permits=budget.available_permits,
            queue_size=self.queue_size,
            max_queue_size=self._waiting.max_size,
            high_water_permits=budget.high_water,
            holders=len(self._books.accounts),
            oldest_waiter_seconds=self._waiting.waited_seconds(oldest) if oldest else 0.0,
            overdraft_permits=budget.overdraft_permits,
            overdrafts_total=budget.overdrafts_total,
            passed_total=self._granting.passed_total,
            refused=dict(self._outcomes.refused),
            policy_fault=self._policy_fault,
        )

    async def _finish(self, waiter: Waiter) -> Permit:
        """Wait until a request is granted or refused; drop it if the caller is cancelled."""
        try:
            await waiter.wait()
        except asyncio.CancelledError:
            self.abandon(waiter)
            raise
        return waiter.result()


def _uncounted(size: int, owner: Hashable | None, namespace: str) -> Permit:
    """Return a permit of an unbounded semaphore: uncounted, but with its owner."""
    if type(owner) is SharedHolder:
        return Permit(size, owner, namespace, counted=False)
    account = None if owner is None else Account(owner, namespace, many_clients=False)
    return Permit(size, account, namespace, counted=False)


def _owner_of(permit: Permit) -> Hashable | None:
    return permit.holder if type(permit.holder) is SharedHolder else permit.owner
