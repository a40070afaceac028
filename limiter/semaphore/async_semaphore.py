"""A semaphore that counts bytes: PIP-442's AsyncSemaphore.

Everything is decided in plain functions that run to completion (limiter.semaphore.granting); the
coroutines here only wait. In which order requests are granted is the admission policy's
(limiter.admission.fifo, limiter.admission.fair), who holds what is in its accounts
(limiter.semaphore.bookkeeping).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitTooLargeError,
)
from limiter.permits.account import Account, SharedHolder, Waiter
from limiter.permits.permit import AcquireOutcome, Permit, SemaphoreStatistics
from limiter.semaphore.granting import Granting

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from limiter.permits.ledger import PermitRecord


class AsyncSemaphore(Granting):
    """A bounded number of permits.

    Args:
        max_permits: The limit; 0 or less is unbounded, and then nothing is counted.
        max_queue_size: Places for waiting requests; 0 or less is an unbounded queue.
        timeout_seconds: How long a request may wait.
        clock: Where time comes from.
        observer: Told how requests ended, after how many seconds, and how many did so. Each
            request is told of once; those that did not wait are told of together, at the latest
            when ``statistics`` is asked for.
        rules: In which order requests are granted; as shipped unless told otherwise.

    Source: PIP-442, AsyncSemaphoreImpl.
    Differs: a request that is first and fits is granted within the call; cancelling the task
    that waits removes its request at once; ``is_cancelled`` of the one whose turn it is is asked
    even when nothing is available.
    """

    def __repr__(self) -> str:
        return (
            f"<AsyncSemaphore {self.acquired_permits}/{self._max_permits} "
            f"with {len(self._queue)} waiting>"
        )

    # -- the three operations of the PIP ------------------------------------------------------

    async def acquire(
        self,
        size: int,
        is_cancelled: Callable[[], bool] | None = None,
        owner: Hashable | None = None,
        namespace: str = "",
    ) -> Permit:
        """Return a permit of ``size``; wait in the queue until it can be granted.

        Args:
            size: 0 <= size <= limit. Under fifo a request of 0 waits too while nothing is free.
            is_cancelled: Asked when the request is considered; true gives it up.
            owner: Whose request this is; see :meth:`cancel_owner`.
            namespace: ``tenant/namespace`` it is for; policy fair takes turns between them.

        Raises:
            PermitTooLargeError: ``size`` exceeds the limit (at once).
            ValueError: ``size`` is negative (at once).
            PermitAcquireQueueFullError: No place in the queue (at once).
            PermitAcquireTimeoutError: Not granted in time.
            PermitAcquireCancelledError: The owner left or ``is_cancelled`` was true.
            PermitAcquireClosedError: The semaphore is or was closed.

        Source: PIP-442, AsyncSemaphore.acquire.
        """
        if not self._queue and is_cancelled is None and self._at_once:
            permit = self._granted_at_once(size, owner, namespace)
            if permit is not None:
                return permit
        waiter = self.request(size, is_cancelled, owner, namespace)
        return waiter.permit or await self._finish(waiter)

    def _granted_at_once(self, size: int, owner: Hashable | None, namespace: str) -> Permit | None:
        """What most requests meet: nobody waits and there is enough. No waiter and no clock."""
        acquired = self._acquired + size
        if size <= 0 or acquired > self._max_permits or type(owner) is SharedHolder:
            return None
        if owner is None and self._anonymous_at_once:
            permit = Permit(size)
        else:
            holder = self._holder_of(owner, namespace)
            account = holder if type(holder) is Account else None
            if not self._admission.admits_new(account, namespace, size):
                self._holdings.forget_if_idle(account)
                return None
            permit = Permit(size, account, namespace)
            self._holdings.took_on(permit, None)
        self._acquired = acquired
        if acquired > self._high_water:
            self._high_water = acquired
        self._untold_grants += 1
        return permit

    async def update(
        self, permit: Permit, size: int, is_cancelled: Callable[[], bool] | None = None
    ) -> Permit:
        """Exchange ``permit`` for one of ``size``; wait if that needs more than is free.

        Growing waits for the difference and keeps what is held: under fifo at the tail, under
        fair before all new requests. Shrinking never waits, also after close. On any error
        ``permit`` is unchanged and still to be released.

        Raises:
            The errors of :meth:`acquire`.
            PermitAcquireStalledError: Policy fair: all that is held waited to grow, and this
                growth came last.

        Source: PIP-442, AsyncSemaphore.update.
        """
        return await self._finish(self.request_update(permit, size, is_cancelled))

    def release(self, permit: Permit) -> None:
        """Give a permit back; once more, or after an update superseded it, is harmless.

        Source: PIP-442, AsyncSemaphore.release.
        """
        if self._anonymous_at_once and permit.holder is None and permit.counted:
            permit.returned = True
            size, permit.size = permit.size, 0
            self._acquired -= size
        else:
            permit.returned = True
            self._take_from(permit)
        if self._queue:
            self._grant_waiters()

    # -- the same without waiting -------------------------------------------------------------

    def request(
        self,
        size: int,
        is_cancelled: Callable[[], bool] | None = None,
        owner: Hashable | None = None,
        namespace: str = "",
    ) -> Waiter:
        """Ask for a permit; the answer may be there already. Raises as :meth:`acquire`."""
        self._validate(size)
        if self._max_permits <= 0:
            waiter = Waiter(size)
            waiter.settle(_uncounted(size, owner, namespace), None)
            return waiter
        waiter = self._new_work(size, owner, namespace)
        waiter.is_cancelled = is_cancelled
        self._ask(waiter)
        return waiter

    def _ask(self, waiter: Waiter) -> None:
        """Let a request be granted, or wait; one that a cap can never allow is refused."""
        try:
            self._admission.validate(waiter.account, waiter.size)
            self._enqueue(waiter)
        except PermitTooLargeError:
            self._observe(AcquireOutcome.OVERSIZED, 0.0)
            raise
        finally:
            self._holdings.forget_if_idle(waiter.holder)

    def request_update(
        self, permit: Permit, size: int, is_cancelled: Callable[[], bool] | None = None
    ) -> Waiter:
        """Ask for an exchange; the answer may be there already. Raises as :meth:`update`."""
        if not permit.counted:
            return self.request(size, is_cancelled, _owner_of(permit), permit.namespace)
        if size > permit.size or size < 0:
            self._validate(size)
        if self._max_permits <= 0:
            self._take_from(permit)
            return self.request(size, None, _owner_of(permit), permit.namespace)
        holder = permit.holder
        if type(holder) is Account and not (holder.permits or holder.waiters or holder.shared):
            # A permit that was given back may have outlived its owner's account.
            holder = self._accounts.of(holder.owner, permit.namespace)
        waiter = Waiter(size, permit, holder, permit.namespace)
        waiter.account = holder if type(holder) is Account else _first_member(holder)
        if size <= permit.size:
            self._grant(waiter)
            self._grant_waiters()
        else:
            waiter.is_cancelled = is_cancelled
            self._ask(waiter)
        return waiter

    def abandon(self, waiter: Waiter) -> None:
        """Forget a request whose caller has left, even when it was granted in this very turn."""
        if waiter in self._queue:
            self._refuse(waiter, PermitAcquireCancelledError(), AcquireOutcome.CANCELLED)
        elif waiter.permit is not None:
            self._take_back(waiter, waiter.permit)
        self._grant_waiters()

    # -- owners -------------------------------------------------------------------------------

    def cancel_owner(self, owner: Hashable) -> None:
        """Drop everything ``owner`` waits for and release everything it holds, in this turn.

        What it shares with others stays theirs; what it was the last to share is released.
        """
        for account in self._accounts.all_of(owner):
            self._give_up(account)
            for holder in list(account.shared):
                self._leave(holder, account, holder.references_of(account))
            self._holdings.forget_if_idle(account)
        self._accounts.forget_owner(owner)
        self._grant_waiters()

    def exempt_from_share(self, owner: Hashable) -> None:
        """Many clients are behind ``owner``: its namespaces count apart, and no share applies.

        For a connection that announces a proxy, until ``cancel_owner``. Policy fair.
        """
        self._accounts.stands_for_many(owner)

    def defer(self, *owners: Hashable) -> None:
        """Let others who wait go before ``owners``, until ``undefer`` or ``cancel_owner``.

        For connections that take nothing of what they were sent. Policy fair.
        """
        self._defer(owners, deferred=True)

    def undefer(self, *owners: Hashable) -> None:
        """Let ``owners`` wait like everybody else again."""
        self._defer(owners, deferred=False)

    def _defer(self, owners: tuple[Hashable, ...], *, deferred: bool) -> None:
        for owner in owners:
            for account in self._accounts.defer(owner, deferred=deferred):
                self._admission.deferred_changed(account)
        self._grant_waiters()

    def acquire_at_once(self, size: int, owner: Hashable, namespace: str = "") -> Permit | None:
        """Return a permit if nobody waits and there is enough; None means :meth:`request`.

        Its owner has an account, so that what it holds can be shared; see :meth:`share_held`.
        """
        if self._queue or not self._at_once or owner is None:
            return None
        return self._granted_at_once(size, owner, namespace)

    def grants(self, size: int, owner: Hashable, namespace: str = "") -> bool:
        """Tell whether ``acquire_at_once`` would grant this now, or nothing is limited."""
        if self._max_permits <= 0:
            return True
        if self._queue or not self._at_once or not 0 < size <= self._max_permits - self._acquired:
            return False
        account = self._accounts.of(owner, namespace)
        admitted = self._admission.admits_new(account, namespace, size)
        self._accounts.forget_if_idle(account)
        return admitted

    def passed(self, size: int, owner: Hashable, namespace: str = "") -> None:
        """Count what was granted and given back before anybody else could ask.

        For what :meth:`grants` said yes to in this turn.
        """
        if self._max_permits <= 0:
            return
        self._high_water = max(self._high_water, self._acquired + size)
        self._untold_grants += 1
        if self._holdings.record is not None:
            self._holdings.record.passed(owner, namespace, size)

    def share_held(self, permit: Permit) -> SharedHolder:
        """Turn what one owner holds alone into a holder that others can join."""
        return self._holdings.share_held(permit)

    def share(self, namespace: str = "") -> SharedHolder:
        """Return a holder that several owners can be part of; it may ask when one has joined."""
        return SharedHolder(namespace)

    def join(self, holder: SharedHolder, owner: Hashable) -> None:
        """Let ``owner`` have a reference to what ``holder`` holds or waits for."""
        self._holdings.join(holder, owner)
        if self._queue:
            self._grant_waiters()

    def leave(self, holder: SharedHolder, owner: Hashable) -> None:
        """Drop a reference; the last one of all gives back what is held and waited for."""
        for account in self._accounts.members_of(holder, owner)[:1]:
            self._leave(holder, account, 1)
            if self._queue:
                self._grant_waiters()

    def disband(self, holder: SharedHolder) -> None:
        """Let everybody leave a holder: what it holds is given back, and is nobody's."""
        for account in list(holder.members()):
            self._leave(holder, account, holder.references_of(account))
        self._grant_waiters()

    def _leave(self, holder: SharedHolder, account: Account, references: int) -> None:
        self._holdings.leave(holder, account, references)
        if not holder.references:
            self._give_up(holder)
            # What stood behind a growth of it may go first now.
            self._holdings.held_changed(account)
        self._holdings.forget_if_idle(account)

    def _give_up(self, holder: Account | SharedHolder) -> None:
        """End what a holder waits for and release what it holds."""
        for waiter in list(holder.waiters):
            self._refuse(waiter, PermitAcquireCancelledError(), AcquireOutcome.CANCELLED)
        for permit in list(holder.permits):
            self._take_from(permit)

    # -- run time -----------------------------------------------------------------------------

    def change_limits(
        self,
        max_permits: int | None = None,
        max_queue_size: int | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """Change what is limited; None leaves a figure as it is.

        A higher limit grants at once. A lower one takes nothing back that is held; a waiting
        request that exceeds it is refused with the figures. Queue size and timeout apply to
        requests that come; who waits keeps its place and its deadline.
        """
        if max_queue_size is not None:
            self._max_queue_size = max_queue_size
        if timeout_seconds is not None:
            self._timeout_seconds = timeout_seconds
        if max_permits is not None:
            self._max_permits = max_permits
            self._refuse_oversized()
        if self.unbounded:
            self._grant_all()
        self._end_overdraft()
        self._choose_path()
        self._admission.accounts_changed()
        self._grant_waiters()

    def _grant_all(self) -> None:
        """Nothing is limited any more: nobody waits, for a share or a cap either."""
        for waiter in list(self._queue):
            if waiter in self._queue:
                self._admission.discard(waiter)
                self._end_wait(waiter, AcquireOutcome.GRANTED)

    def _refuse_oversized(self) -> None:
        limit = self._max_permits
        for waiter in [one for one in self._queue if 0 < limit < one.size]:
            error = PermitTooLargeError(waiter.size, limit)
            self._refuse(waiter, error, AcquireOutcome.OVERSIZED)

    def close(self) -> None:
        """Refuse all who wait and all who come; what is held can still be released."""
        self._closed = True
        self._choose_path()
        for waiter in list(self._queue):
            self._refuse(waiter, PermitAcquireClosedError(), AcquireOutcome.CLOSED)

    # -- what is known ------------------------------------------------------------------------

    def statistics(self) -> SemaphoreStatistics:
        """Return a frozen snapshot of the figures."""
        self._tell_of_grants()
        oldest = next(iter(self._queue), None)
        return SemaphoreStatistics(
            max_permits=self._max_permits,
            acquired_permits=self._acquired,
            available_permits=self.available_permits,
            queue_size=len(self._queue),
            max_queue_size=self._max_queue_size,
            high_water_permits=self._high_water,
            holders=len(self._accounts),
            oldest_waiter_seconds=self._clock.now() - oldest.enqueued_at if oldest else 0.0,
            overdraft_permits=self._overdraft_permits(),
            overdrafts_total=self._overdrafts_total,
            passed_total=self._passed_total,
        )

    def accounts(self) -> Iterator[Account]:
        """Yield who holds or waits for something; a view for reading, not to be kept."""
        yield from self._accounts

    def record_with(self, record: PermitRecord) -> None:
        """Name who keeps a record of every permit; before the first request."""
        self._holdings.record = record
        self._choose_path()

    def pinned_by(self, owner: Hashable) -> int:
        """Return the permits that ``owner`` holds, its part of shared ones included."""
        return sum(account.held for account in self._accounts.all_of(owner))

    async def _finish(self, waiter: Waiter) -> Permit:
        """Wait for the answer; a caller that is cancelled meanwhile leaves nothing behind."""
        try:
            await waiter.wait()
        except asyncio.CancelledError:
            self.abandon(waiter)
            raise
        return waiter.result()


def _first_member(holder: Account | SharedHolder | None) -> Account | None:
    return holder.first_member() if type(holder) is SharedHolder else None


def _uncounted(size: int, owner: Hashable | None, namespace: str) -> Permit:
    """Return a permit of an unbounded semaphore: in no book, but it remembers whose it is."""
    if type(owner) is SharedHolder:
        return Permit(size, owner, namespace, counted=False)
    account = None if owner is None else Account(owner, namespace, many_clients=False)
    return Permit(size, account, namespace, counted=False)


def _owner_of(permit: Permit) -> Hashable | None:
    return permit.holder if type(permit.holder) is SharedHolder else permit.owner
