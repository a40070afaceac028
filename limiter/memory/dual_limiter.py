"""PIP-442's dual memory limiter: a semaphore for heap, and a semaphore for direct memory.

A permit knows its semaphore; ``hold`` is the block form on top of the PIP's three operations. A
request that waits for DIRECT_MEMORY, which peers hold, should hold no HEAP_MEMORY; in Pulsar's
release it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Self, TypeAlias

from limiter.semaphore.async_semaphore import AsyncSemaphore

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from limiter.admission.rules import AdmissionRules
    from limiter.clock import Clock
    from limiter.permits.account import Waiter
    from limiter.permits.permit import AcquireOutcome, Permit, SemaphoreStatistics


DualObserver: TypeAlias = "Callable[[LimitType, AcquireOutcome, float, int], None]"


class LimitType(Enum):
    """The two memory budgets: heap and direct memory.

    Upstream: AsyncDualMemoryLimiter.LimitType.
    """

    HEAP_MEMORY = "heap"
    DIRECT_MEMORY = "direct"

    # Members compare by identity; Enum's own hash is a slow Python function, called for each
    # permit.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Settings of a memory budget.

    A ``max_bytes`` or ``max_queue_size`` of 0 or less is unbounded.
    """

    max_bytes: int
    max_queue_size: int
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class DualStatistics:
    """Snapshot of the heap budget and the direct memory budget.

    Units: bytes, requests.
    """

    heap: SemaphoreStatistics
    direct: SemaphoreStatistics


@dataclass(frozen=True, slots=True)
class MemoryPermit:
    """Bytes of one budget, held until released or superseded by an update."""

    limit_type: LimitType
    permit: Permit

    @property
    def size(self) -> int:
        """Held bytes; 0 once the permit was released or superseded."""
        return self.permit.size


class SharedOwner:
    """Owner of permits in both budgets that other owners join; the last to leave releases them.

    Made by :meth:`AsyncDualMemoryLimiter.share`, and passed back as the owner of requests.
    """

    __slots__ = ("_limiter", "holders")

    def __init__(self, limiter: AsyncDualMemoryLimiter, namespace: str) -> None:
        self._limiter = limiter
        self.holders = {one: limiter.semaphore(one).shared.new(namespace) for one in LimitType}

    def join(self, owner: Hashable) -> None:
        """Add a reference of ``owner`` to the shared permits of both budgets."""
        for limit_type, holder in self.holders.items():
            self._limiter.semaphore(limit_type).shared.join(holder, owner)

    def done_with(self, limit_type: LimitType) -> None:
        """Release a budget's permits, and remove all members from the budget."""
        self._limiter.semaphore(limit_type).shared.disband(self.holders[limit_type])

    def leave(self, owner: Hashable) -> None:
        """Drop a reference of ``owner`` to shared permits of both budgets; no-op without one."""
        for limit_type, holder in self.holders.items():
            self._limiter.semaphore(limit_type).shared.leave(holder, owner)


class AsyncDualMemoryLimiter:
    """Grants bytes of heap and of direct memory from separate budgets, or queues the requests.

    Args:
        heap: The settings of the heap budget.
        direct: The settings of the direct memory budget.
        clock: The source of time; None is the event loop's clock.
        observer: Called with a budget, an outcome, seconds of waiting, and the number of requests.
        rules: The admission rules; None is policy fifo, as upstream.

    Source: PIP-442, AsyncDualMemoryLimiterImpl.
    """

    def __init__(
        self,
        heap: MemoryLimit,
        direct: MemoryLimit,
        clock: Clock | None = None,
        observer: DualObserver | None = None,
        rules: AdmissionRules | None = None,
    ) -> None:
        self._observer = observer
        limits = {LimitType.HEAP_MEMORY: heap, LimitType.DIRECT_MEMORY: direct}
        self._semaphores = {
            limit_type: AsyncSemaphore(
                limit.max_bytes,
                limit.max_queue_size,
                limit.timeout_seconds,
                clock,
                partial(self._observe, limit_type),
                rules,
            )
            for limit_type, limit in limits.items()
        }

    def _observe(
        self, limit_type: LimitType, outcome: AcquireOutcome, waited_seconds: float, count: int
    ) -> None:
        if self._observer is not None:
            self._observer(limit_type, outcome, waited_seconds, count)

    def observe_with(self, observer: DualObserver) -> None:
        """Set the function that is called with the outcome of each request."""
        self._observer = observer

    def semaphore(self, limit_type: LimitType) -> AsyncSemaphore:
        """Return a budget's semaphore."""
        return self._semaphores[limit_type]

    async def acquire(
        self,
        limit_type: LimitType,
        size_bytes: int,
        is_cancelled: Callable[[], bool] | None = None,
        owner: Hashable | None = None,
        namespace: str = "",
    ) -> MemoryPermit:
        """Return a permit of ``size_bytes``, waiting until it can be granted.

        Raises:
            The errors of :meth:`limiter.semaphore.async_semaphore.AsyncSemaphore.acquire`.
        """
        if type(owner) is SharedOwner:
            owner = owner.holders[limit_type]
        semaphore = self._semaphores[limit_type]
        permit = await semaphore.acquire(size_bytes, is_cancelled, owner, namespace)
        return MemoryPermit(limit_type, permit)

    async def update(
        self,
        permit: MemoryPermit,
        size_bytes: int,
        is_cancelled: Callable[[], bool] | None = None,
    ) -> MemoryPermit:
        """Exchange a permit for a permit of ``size_bytes`` of the same budget.

        Raises:
            The errors of :meth:`limiter.semaphore.async_semaphore.AsyncSemaphore.update`.
            TypeError: The argument is not a permit of a dual limiter.
        """
        semaphore = self._semaphores[_ours(permit).limit_type]
        exchanged = await semaphore.update(permit.permit, size_bytes, is_cancelled)
        return MemoryPermit(permit.limit_type, exchanged)

    def try_update(self, permit: MemoryPermit, size_bytes: int) -> MemoryPermit | None:
        """Exchange a permit without waiting; otherwise return None and leave the permit unchanged.

        Raises:
            PermitTooLargeError: ``size_bytes`` exceeds the limit.
            PermitAcquireQueueFullError: The queue is full, so growing had to wait.
        """
        semaphore = self._semaphores[_ours(permit).limit_type]
        waiter = semaphore.request_update(permit.permit, size_bytes)
        if waiter.permit is None:
            semaphore.abandon(waiter)
            return None
        return MemoryPermit(permit.limit_type, waiter.permit)

    def release(self, permit: MemoryPermit) -> None:
        """Release a permit; no-op for a released or superseded permit."""
        self._semaphores[_ours(permit).limit_type].release(permit.permit)

    def hold(
        self,
        limit_type: LimitType,
        size_bytes: int,
        owner: Hashable | None = None,
        namespace: str = "",
    ) -> MemoryHold:
        """Hold ``size_bytes`` for the duration of an ``async with`` block."""
        return MemoryHold(self, limit_type, size_bytes, owner, namespace)

    def request(
        self,
        limit_type: LimitType,
        size_bytes: int,
        owner: Hashable | None = None,
        namespace: str = "",
    ) -> Waiter:
        """Request memory without awaiting; the returned waiter has the outcome when done."""
        if type(owner) is SharedOwner:
            owner = owner.holders[limit_type]
        return self._semaphores[limit_type].request(size_bytes, None, owner, namespace)

    def abandon(self, limit_type: LimitType, waiter: Waiter) -> None:
        """Drop a request made with :meth:`request`, granted or not."""
        self._semaphores[limit_type].abandon(waiter)

    def cancel_owner(self, owner: Hashable) -> None:
        """Drop the waiting requests of ``owner`` and release its permits, granting waiters now."""
        for semaphore in self._semaphores.values():
            semaphore.owners.cancel(owner)

    def share(self, namespace: str = "") -> SharedOwner:
        """Create an owner that several other owners can join, to hold memory together."""
        return SharedOwner(self, namespace)

    def exempt_from_quota(self, owner: Hashable) -> None:
        """Exempt from quotas an owner that stands for many clients; see Owners."""
        for semaphore in self._semaphores.values():
            semaphore.owners.exempt_from_quota(owner)

    def defer(self, *owners: Hashable) -> None:
        """Grant requests of ``owners`` after all other owners' requests; see Owners."""
        for semaphore in self._semaphores.values():
            semaphore.owners.defer(*owners)

    def undefer(self, *owners: Hashable) -> None:
        """Grant requests of ``owners`` in normal order again."""
        for semaphore in self._semaphores.values():
            semaphore.owners.undefer(*owners)

    def pinned_by(self, owner: Hashable) -> dict[LimitType, int]:
        """Return the bytes held by ``owner`` in each budget, with its part of shared permits."""
        return {one: self._semaphores[one].owners.pinned_by(owner) for one in LimitType}

    def change_limit(
        self,
        limit_type: LimitType,
        max_bytes: int | None = None,
        max_queue_size: int | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """Change a budget's limits at run time; None leaves a limit unchanged.

        See AsyncSemaphore.change_limits.
        """
        semaphore = self._semaphores[limit_type]
        semaphore.change_limits(max_bytes, max_queue_size, timeout_seconds)

    def close(self) -> None:
        """Refuse all requests, waiting or new."""
        for semaphore in self._semaphores.values():
            semaphore.close()

    def available_permits(self, limit_type: LimitType) -> int:
        """Return the free bytes of a budget."""
        return self._semaphores[limit_type].available_permits

    def acquired_permits(self, limit_type: LimitType) -> int:
        """Return the held bytes of a budget."""
        return self._semaphores[limit_type].acquired_permits

    def queue_size(self, limit_type: LimitType) -> int:
        """Return the number of waiting requests of a budget."""
        return self._semaphores[limit_type].queue_size

    def statistics(self) -> DualStatistics:
        """Return a snapshot of both budgets."""
        return DualStatistics(*(one.statistics() for one in self._semaphores.values()))


def _ours(permit: MemoryPermit) -> MemoryPermit:
    if type(permit) is not MemoryPermit:
        raise TypeError(f"Invalid permit type: {permit!r} was not granted by this limiter")
    return permit


class MemoryHold:
    """Bytes held for the duration of an ``async with`` block, resizable within the block."""

    __slots__ = ("_limit_type", "_limiter", "_namespace", "_owner", "_permit", "_size_bytes")

    def __init__(
        self,
        limiter: AsyncDualMemoryLimiter,
        limit_type: LimitType,
        size_bytes: int,
        owner: Hashable | None,
        namespace: str,
    ) -> None:
        self._limiter = limiter
        self._limit_type = limit_type
        self._size_bytes = size_bytes
        self._owner = owner
        self._namespace = namespace
        self._permit: MemoryPermit | None = None

    async def __aenter__(self) -> Self:
        self._permit = await self._limiter.acquire(
            self._limit_type, self._size_bytes, None, self._owner, self._namespace
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._permit is not None:
            self._limiter.release(self._permit)

    @property
    def size(self) -> int:
        """Number of held bytes."""
        return self._permit.size if self._permit is not None else 0

    async def resize(self, size_bytes: int) -> None:
        """Change the held bytes; growing may wait, and an error leaves the old amount held."""
        if self._permit is None:
            raise RuntimeError("resize() was called outside the `async with` block")
        self._permit = await self._limiter.update(self._permit, size_bytes)
