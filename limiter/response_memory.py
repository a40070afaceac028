"""How a response's memory is accounted: each its own, or shared by all who send the same bytes.

Both kinds have the same three operations, so that a request reads the same under either
(``floodgateResponseBuffers``): hold heap for a block, acquire direct memory for an outbound
entry, and give back everything an owner has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from limiter.dual import AsyncDualMemoryLimiter, LimitType, MemoryPermit
from limiter.shared import LeaseReference, SharedLeases

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType


class HeapHold(Protocol):
    """Heap that is held while a response is made."""

    async def resize(self, size_bytes: int) -> None:
        """Hold ``size_bytes`` instead; growing may wait.

        Raises:
            The errors of :meth:`limiter.semaphore.AsyncSemaphore.update`.
        """


class ResponseMemory(Protocol):
    """Heap and direct memory of responses."""

    def heap(
        self, key: Hashable, size_bytes: int, owner: Hashable
    ) -> AbstractAsyncContextManager[HeapHold]:
        """Hold heap for a block; ``key`` names what it is held for.

        Raises:
            The errors of :meth:`limiter.semaphore.AsyncSemaphore.acquire`.
        """

    async def direct(self, key: Hashable, size_bytes: int, owner: Hashable) -> Callable[[], object]:
        """Acquire direct memory for one outbound entry and return how it is given back.

        Raises:
            The errors of :meth:`limiter.semaphore.AsyncSemaphore.acquire`.
        """

    def cancel_owner(self, owner: Hashable) -> None:
        """Drop queued places and give back everything of ``owner``, in this turn."""


class PrivateMemory:
    """Every response is charged for itself: as shipped."""

    def __init__(self, limiter: AsyncDualMemoryLimiter) -> None:
        self._limiter = limiter

    def heap(
        self, key: Hashable, size_bytes: int, owner: Hashable
    ) -> AbstractAsyncContextManager[HeapHold]:
        """See ResponseMemory.heap."""
        return self._limiter.hold(LimitType.HEAP_MEMORY, size_bytes, owner)

    async def direct(self, key: Hashable, size_bytes: int, owner: Hashable) -> Callable[[], object]:
        """See ResponseMemory.direct."""
        permit = await self._limiter.acquire(LimitType.DIRECT_MEMORY, size_bytes, None, owner)
        return lambda: self._limiter.release(permit)

    def cancel_owner(self, owner: Hashable) -> None:
        """See ResponseMemory.cancel_owner."""
        self._limiter.cancel_owner(owner)


class SharedMemory:
    """Each distinct live buffer is charged once, whoever sends it."""

    def __init__(self, limiter: AsyncDualMemoryLimiter) -> None:
        self._limiter = limiter
        self._heap = SharedLeases(limiter, LimitType.HEAP_MEMORY)
        self._direct = SharedLeases(limiter, LimitType.DIRECT_MEMORY)

    def heap(
        self, key: Hashable, size_bytes: int, owner: Hashable
    ) -> AbstractAsyncContextManager[HeapHold]:
        """See ResponseMemory.heap."""
        return _SharedHeapHold(self._limiter, self._heap, (key, size_bytes, owner))

    async def direct(self, key: Hashable, size_bytes: int, owner: Hashable) -> Callable[[], object]:
        """See ResponseMemory.direct."""
        return (await self._direct.acquire(key, size_bytes, owner)).release

    def cancel_owner(self, owner: Hashable) -> None:
        """See ResponseMemory.cancel_owner."""
        self._heap.cancel_owner(owner)
        self._direct.cancel_owner(owner)
        self._limiter.cancel_owner(owner)


class _SharedHeapHold:
    """A reference to the shared heap, and what one request needs beyond it, for a block."""

    __slots__ = ("_growth", "_leases", "_limiter", "_reference", "_request")

    def __init__(
        self,
        limiter: AsyncDualMemoryLimiter,
        leases: SharedLeases,
        request: tuple[Hashable, int, Hashable],
    ) -> None:
        self._limiter = limiter
        self._leases = leases
        self._request = request
        self._reference: LeaseReference | None = None
        self._growth: MemoryPermit | None = None

    async def __aenter__(self) -> Self:
        self._reference = await self._leases.acquire(*self._request)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._reference is not None:
            self._reference.release()
        if self._growth is not None:
            self._limiter.release(self._growth)

    async def resize(self, size_bytes: int) -> None:
        """Hold the difference to the shared amount; that amount itself stays as it is."""
        if self._reference is None:
            raise RuntimeError("resize outside the block")
        missing = max(0, size_bytes - self._reference.size)
        if self._growth is not None:
            self._growth = await self._limiter.update(self._growth, missing)
        elif missing:
            self._growth = await self._limiter.acquire(
                LimitType.HEAP_MEMORY, missing, None, self._reference.owner
            )
