"""A semaphore that counts bytes: PIP-442's AsyncSemaphore.

Everything is decided in plain functions that run to completion; the coroutines only wait.
The mutable state is: what is acquired, the queue of waiters, and who holds or waits for what.

Invariants: acquired <= limit; acquired is the sum of all live permits; a waiter is either in
the queue or done; the head of the queue does not fit (otherwise it would have been granted).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from limiter.clock import Clock, LoopClock
from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireError,
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
)
from limiter.permit import (
    UNBOUNDED_PERMITS,
    AcquireOutcome,
    Permit,
    SemaphoreStatistics,
    Waiter,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class AsyncSemaphore:
    """A bounded number of permits, granted in the order of asking.

    A small request never overtakes a large one. Growth of a permit (``update``) waits at the
    tail like everybody else and keeps what it holds meanwhile.

    Args:
        max_permits: The limit; 0 or less is unbounded, and then nothing is counted.
        max_queue_size: Places for waiting requests; 0 or less is an unbounded queue.
        timeout_seconds: How long a request may wait.
        clock: Where time comes from.
        observer: Told how each request ended, and after how many seconds.

    Source: PIP-442, AsyncSemaphoreImpl.
    Differs: a request that is first and fits is granted within the call; cancelling the task
    that waits removes its request at once; ``is_cancelled`` of the head is asked even when
    nothing is available.
    """

    def __init__(
        self,
        max_permits: int,
        max_queue_size: int,
        timeout_seconds: float,
        clock: Clock | None = None,
        observer: Callable[[AcquireOutcome, float], None] | None = None,
    ) -> None:
        self._max_permits = max_permits
        self._max_queue_size = max_queue_size
        self._timeout_seconds = timeout_seconds
        self._clock: Clock = clock or LoopClock()
        self._observer = observer
        self._acquired = 0
        self._high_water = 0
        self._queue: OrderedDict[Waiter, None] = OrderedDict()
        self._held: dict[Hashable, dict[Permit, None]] = {}
        self._waiting: dict[Hashable, dict[Waiter, None]] = {}
        self._closed = False

    def __repr__(self) -> str:
        return (
            f"<AsyncSemaphore {self.acquired_permits}/{self._max_permits} "
            f"with {len(self._queue)} waiting>"
        )

    @property
    def unbounded(self) -> bool:
        """Whether nothing is limited and nothing counted."""
        return self._max_permits <= 0

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

    def statistics(self) -> SemaphoreStatistics:
        """Return a frozen snapshot of the figures."""
        return SemaphoreStatistics(
            self._max_permits,
            self._acquired,
            self.available_permits,
            len(self._queue),
            self._max_queue_size,
            self._high_water,
        )

    # -- the three operations of the PIP ------------------------------------------------------

    async def acquire(
        self,
        size: int,
        is_cancelled: Callable[[], bool] | None = None,
        owner: Hashable | None = None,
    ) -> Permit:
        """Return a permit of ``size``; wait in the queue until it can be granted.

        Args:
            size: 0 <= size <= limit. A request of 0 waits too while nothing is available.
            is_cancelled: Asked when the request is considered; true gives it up.
            owner: Whose request this is; see :meth:`cancel_owner`.

        Raises:
            PermitTooLargeError: ``size`` exceeds the limit (at once).
            ValueError: ``size`` is negative (at once).
            PermitAcquireQueueFullError: No place in the queue (at once).
            PermitAcquireTimeoutError: Not granted in time.
            PermitAcquireCancelledError: The owner left or ``is_cancelled`` was true.
            PermitAcquireClosedError: The semaphore is or was closed.

        Source: PIP-442, AsyncSemaphore.acquire.
        """
        return await self._finish(self.request(size, is_cancelled, owner))

    async def update(
        self, permit: Permit, size: int, is_cancelled: Callable[[], bool] | None = None
    ) -> Permit:
        """Exchange ``permit`` for one of ``size``; wait if that needs more than is free.

        Growing waits at the tail for the difference and keeps what is held. Shrinking never
        waits, also after close. On any error ``permit`` is unchanged and still to be released.

        Raises:
            The errors of :meth:`acquire`.

        Source: PIP-442, AsyncSemaphore.update.
        """
        return await self._finish(self.request_update(permit, size, is_cancelled))

    def release(self, permit: Permit) -> None:
        """Give a permit back; once more, or after an update superseded it, is harmless.

        Source: PIP-442, AsyncSemaphore.release.
        """
        permit.returned = True
        if self._take_from(permit):
            self._grant_waiters()

    # -- the same without waiting -------------------------------------------------------------

    def request(
        self,
        size: int,
        is_cancelled: Callable[[], bool] | None = None,
        owner: Hashable | None = None,
    ) -> Waiter:
        """Ask for a permit; the answer may be there already. Raises as :meth:`acquire`."""
        self._validate(size)
        waiter = Waiter(size, None, owner)
        if self.unbounded:
            waiter.settle(Permit(size, owner), None)
            return waiter
        waiter.is_cancelled = is_cancelled
        return self._enqueue(waiter)

    def request_update(
        self, permit: Permit, size: int, is_cancelled: Callable[[], bool] | None = None
    ) -> Waiter:
        """Ask for an exchange; the answer may be there already. Raises as :meth:`update`."""
        self._validate(size)
        waiter = Waiter(size, permit, permit.owner)
        if self.unbounded:
            waiter.settle(Permit(size, permit.owner), None)
        elif size <= permit.size:
            self._grant(waiter)
            self._grant_waiters()
        else:
            waiter.is_cancelled = is_cancelled
            self._enqueue(waiter)
        return waiter

    def abandon(self, waiter: Waiter) -> None:
        """Forget a request whose caller has left, even when it was granted in this very turn."""
        if waiter in self._queue:
            self._refuse(waiter, PermitAcquireCancelledError(), AcquireOutcome.CANCELLED)
        elif waiter.permit is not None:
            self._take_back(waiter, waiter.permit)
        self._grant_waiters()

    def cancel_owner(self, owner: Hashable) -> None:
        """Drop everything ``owner`` waits for and release everything it holds, in this turn."""
        for waiter in list(self._waiting.get(owner, ())):
            self._refuse(waiter, PermitAcquireCancelledError(), AcquireOutcome.CANCELLED)
        for permit in list(self._held.get(owner, ())):
            self._take_from(permit)
        self._grant_waiters()

    def close(self) -> None:
        """Refuse all who wait and all who come; what is held can still be released."""
        self._closed = True
        for waiter in list(self._queue):
            self._refuse(waiter, PermitAcquireClosedError(), AcquireOutcome.CLOSED)

    # -- decisions ----------------------------------------------------------------------------

    def _validate(self, size: int) -> None:
        if size < 0:
            raise ValueError(f"Invalid negative permits value: {size}")
        if not self.unbounded and size > self._max_permits:
            self._observe(AcquireOutcome.OVERSIZED, 0.0)
            raise PermitTooLargeError(size, self._max_permits)

    def _enqueue(self, waiter: Waiter) -> Waiter:
        if self._closed:
            self._observe(AcquireOutcome.CLOSED, 0.0)
            raise PermitAcquireClosedError
        if 0 < self._max_queue_size <= len(self._queue):
            self._observe(AcquireOutcome.QUEUE_FULL, 0.0)
            raise PermitAcquireQueueFullError(len(self._queue))
        if not self._queue and waiter.is_cancelled is None and self._fits(waiter):
            # What most requests meet: nobody waits and there is enough. No place, no clock.
            self._grant(waiter)
            self._observe(AcquireOutcome.GRANTED, 0.0)
            return waiter
        waiter.enqueued_at = self._clock.now()
        self._queue[waiter] = None
        if waiter.owner is not None:
            self._waiting.setdefault(waiter.owner, {})[waiter] = None
        self._grant_waiters()
        if not waiter.done:
            due = waiter.enqueued_at + self._timeout_seconds
            waiter.timer = self._clock.call_at(due, self._time_out, waiter)
        elif waiter.error is not None:
            raise waiter.error
        return waiter

    def _grant_waiters(self) -> None:
        """Grant from the head only, and stop at the first request that does not fit."""
        while self._queue and not self._closed:
            head = next(iter(self._queue))
            if head.is_cancelled is not None and head.is_cancelled():
                self._refuse(head, PermitAcquireCancelledError(), AcquireOutcome.CANCELLED)
                continue
            if not self._fits(head):
                return
            self._forget(head)
            self._grant(head)
            self._observe(AcquireOutcome.GRANTED, self._clock.now() - head.enqueued_at)

    def _fits(self, waiter: Waiter) -> bool:
        """Whether a request could be granted now; one of 0 needs something to be free, too."""
        available = self._max_permits - self._acquired
        return 0 < available >= waiter.needed

    def _grant(self, waiter: Waiter) -> None:
        if waiter.previous is not None:
            waiter.previous_size = self._take_from(waiter.previous)
        self._acquired += waiter.size
        self._high_water = max(self._high_water, self._acquired)
        permit = Permit(waiter.size, waiter.owner)
        self._index(permit)
        waiter.settle(permit, None)

    def _index(self, permit: Permit) -> None:
        if permit.owner is not None:
            self._held.setdefault(permit.owner, {})[permit] = None

    def _time_out(self, waiter: Waiter) -> None:
        waited = self._clock.now() - waiter.enqueued_at
        self._refuse(waiter, PermitAcquireTimeoutError(waited), AcquireOutcome.TIMED_OUT)
        self._grant_waiters()

    def _refuse(self, waiter: Waiter, error: PermitAcquireError, outcome: AcquireOutcome) -> None:
        if waiter not in self._queue:
            return  # What an earlier refusal woke has abandoned it meanwhile.
        self._forget(waiter)
        self._observe(outcome, self._clock.now() - waiter.enqueued_at)
        waiter.settle(None, error)

    def _forget(self, waiter: Waiter) -> None:
        """Take a waiter out of the queue and off its owner's list."""
        del self._queue[waiter]
        waiters = self._waiting.get(waiter.owner)
        if waiters is not None:
            waiters.pop(waiter, None)
            if not waiters:
                del self._waiting[waiter.owner]

    def _take_from(self, permit: Permit) -> int:
        """Empty a permit and return what it held; the second time that is 0."""
        size = permit.take()
        permits = self._held.get(permit.owner)
        if permits is not None:
            permits.pop(permit, None)
            if not permits:
                del self._held[permit.owner]
        if not self.unbounded:
            self._acquired -= size
        return size if not self.unbounded else 0

    def _take_back(self, waiter: Waiter, permit: Permit) -> None:
        """Undo a grant that lost its caller; an update falls back to the permit it had.

        Only what the grant still holds can go back to it: nothing once the owner was cancelled.
        """
        still_held = self._take_from(permit)
        previous = waiter.previous
        if previous is None or previous.returned:
            return
        if refilled := min(waiter.previous_size, still_held):
            previous.refill(refilled)
            self._acquired += refilled
            self._index(previous)

    def _observe(self, outcome: AcquireOutcome, waited_seconds: float) -> None:
        if self._observer is not None:
            self._observer(outcome, waited_seconds)

    async def _finish(self, waiter: Waiter) -> Permit:
        """Wait for the answer; a caller that is cancelled meanwhile leaves nothing behind."""
        try:
            await waiter.wait()
        except asyncio.CancelledError:
            self.abandon(waiter)
            raise
        return waiter.result()
