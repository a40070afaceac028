"""Memory of responses, charged per response, or once for all requests that send equal bytes.

Both kinds have the same operations, so requests use either (``floodgateResponseBuffers``).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, Self

from limiter.errors import PermitAcquireError
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType
from limiter.memory.shared_leases import SharedLeases

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from contextlib import AbstractAsyncContextManager

    from limiter.memory.shared_leases import LeaseReference
    from limiter.semaphore.async_semaphore import AsyncSemaphore


class TransientPermit:
    """Memory for a response that is sent in this event-loop iteration, acquired only if needed.

    A response that the kernel takes immediately holds its memory for a part of one iteration. The
    memory is checked to be free beforehand, and its use is counted and recorded; only a response
    that stays takes the memory. Measured: heap and direct memory of a topic list cost 5.4 us this
    way, and 10.8 us as two leases that are acquired and released.

    Args:
        take: Takes the memory, without waiting in this turn, and returns the release callback.
        semaphore: Counts memory that was not taken; None if a lease holds the memory already.
        size_bytes: The size of the request.
        owner: The owner of the request.
        namespace: The namespace of the request.
    """

    __slots__ = ("_namespace", "_owner", "_semaphore", "_size_bytes", "_take")

    def __init__(
        self,
        take: Callable[[], Callable[[], object]],
        semaphore: AsyncSemaphore | None,
        size_bytes: int,
        owner: Hashable,
        namespace: str,
    ) -> None:
        self._take = take
        self._semaphore = semaphore
        self._size_bytes = size_bytes
        self._owner = owner
        self._namespace = namespace

    def stay(self) -> Callable[[], object]:
        """Acquire the memory for a response that is not sent yet; return the release callback."""
        self._semaphore = None
        return self._take()

    def end(self) -> None:
        """Count the memory as acquired and released, unless ``stay`` acquired it; idempotent."""
        semaphore, self._semaphore = self._semaphore, None
        if semaphore is not None:
            semaphore.immediate.count_transient(self._size_bytes, self._owner, self._namespace)


class HeapHold(Protocol):
    """Heap memory held while a response is being built."""

    async def resize(self, size_bytes: int) -> None:
        """Change the number of held bytes; an increase may wait until memory is free.

        Raises:
            The errors of :meth:`limiter.semaphore.async_semaphore.AsyncSemaphore.update`.
        """


class DirectAhead:
    """Direct memory granted in advance, held until a response uses it.

    Only direct memory waits for peers. A request waiting for direct memory with its response
    already made would hold heap needed elsewhere; so the request waits first, and makes its
    response after.

    Args:
        pays_for: Returns True if the memory is enough for the given key's bytes, of the given size.
        release: Releases the memory.
    """

    __slots__ = ("_pays_for", "_release")

    def __init__(
        self, pays_for: Callable[[Hashable, int], bool], release: Callable[[], object]
    ) -> None:
        self._pays_for = pays_for
        self._release: Callable[[], object] | None = release

    def pay(self, key: Hashable, size_bytes: int) -> Callable[[], object] | None:
        """Return the callback that releases the memory; None if the response needs more."""
        if self._release is None or not self._pays_for(key, size_bytes):
            return None
        release, self._release = self._release, None
        return release

    def release(self) -> None:
        """Release the memory if no response uses it; idempotent."""
        release, self._release = self._release, None
        if release is not None:
            release()


class ResponseMemory:
    """Base class for acquiring heap and direct memory for responses.

    Attributes:
        shares: True if equal bytes are charged once, however many requests send them.
    """

    shares = False

    def __init__(self, limiter: AsyncDualMemoryLimiter) -> None:
        self._limiter = limiter

    def heap(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> AbstractAsyncContextManager[HeapHold]:
        """Return a context manager that holds heap memory for an ``async with`` block.

        Requests with equal keys may share memory, here and in the methods below.

        Raises:
            The errors of :meth:`limiter.semaphore.async_semaphore.AsyncSemaphore.acquire`.
        """
        raise NotImplementedError

    async def direct(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> Callable[[], object]:
        """Acquire direct memory for an outbound entry and return its release callback.

        Raises:
            The errors of :meth:`limiter.semaphore.async_semaphore.AsyncSemaphore.acquire`.
        """
        return (await self.direct_ahead(key, size_bytes, owner, namespace)).release

    async def direct_ahead(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> DirectAhead:
        """Acquire the expected direct memory of a response before the response is made.

        Raises as ``direct``.
        """
        raise NotImplementedError

    def direct_at_once(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> Callable[[], object] | None:
        """Acquire direct memory without waiting; return None if that needs a wait.

        Raises:
            PermitTooLargeError: ``size_bytes`` exceeds the limit.
        """
        raise NotImplementedError

    def transient(
        self,
        limit_type: LimitType,
        key: Hashable,
        size_bytes: int,
        owner: Hashable,
        namespace: str = "",
    ) -> TransientPermit | None:
        """Return memory for bytes that may be sent within this event-loop iteration.

        See TransientPermit.

        Return None if the memory is not free: no request was made then.
        """
        raise NotImplementedError

    @property
    def pays(self) -> bool:
        """True if direct memory has a limit, and so is counted."""
        return not self._limiter.semaphore(LimitType.DIRECT_MEMORY).unbounded

    def exempt_from_quota(self, owner: Hashable) -> None:
        """Exempt from quotas an owner that stands for many clients."""
        self._limiter.exempt_from_quota(owner)

    def cancel_owner(self, owner: Hashable) -> None:
        """Drop the waiting requests of ``owner`` and release its memory immediately."""
        self._limiter.cancel_owner(owner)


class PrivateMemory(ResponseMemory):
    """Memory accounting that charges each response separately, as upstream."""

    def heap(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> AbstractAsyncContextManager[HeapHold]:
        """Return a context manager that holds heap memory for one response."""
        return self._limiter.hold(LimitType.HEAP_MEMORY, size_bytes, owner, namespace)

    async def direct_ahead(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> DirectAhead:
        """Acquire the expected direct memory of a response before the response is made."""
        direct = LimitType.DIRECT_MEMORY
        permit = await self._limiter.acquire(direct, size_bytes, None, owner, namespace)
        return DirectAhead(
            lambda _, needed_bytes: needed_bytes <= permit.size,
            partial(self._limiter.release, permit),
        )

    def direct_at_once(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> Callable[[], object] | None:
        """Acquire direct memory without waiting; return None if that needs a wait."""
        semaphore = self._limiter.semaphore(LimitType.DIRECT_MEMORY)
        try:
            waiter = semaphore.request(size_bytes, None, owner, namespace)
        except PermitAcquireError:
            return None
        if waiter.permit is None:
            semaphore.abandon(waiter)
            return None
        return partial(semaphore.release, waiter.permit)

    def transient(
        self,
        limit_type: LimitType,
        key: Hashable,
        size_bytes: int,
        owner: Hashable,
        namespace: str = "",
    ) -> TransientPermit | None:
        """Return memory for bytes that may be sent in this iteration; None if it is not free."""
        semaphore = self._limiter.semaphore(limit_type)
        if not semaphore.immediate.allows(size_bytes, owner, namespace):
            return None
        take = partial(_taken, semaphore, size_bytes, owner, namespace)
        return TransientPermit(take, semaphore, size_bytes, owner, namespace)


def _taken(
    semaphore: AsyncSemaphore, size_bytes: int, owner: Hashable, namespace: str
) -> Callable[[], object]:
    waiter = semaphore.request(size_bytes, None, owner, namespace)
    return partial(semaphore.release, waiter.result())


class SharedMemory(ResponseMemory):
    """Memory accounting that charges equal response bytes once, however many requests send them."""

    shares = True

    def __init__(self, limiter: AsyncDualMemoryLimiter) -> None:
        super().__init__(limiter)
        self._heap = SharedLeases(limiter, LimitType.HEAP_MEMORY)
        self._direct = SharedLeases(limiter, LimitType.DIRECT_MEMORY)

    def heap(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> AbstractAsyncContextManager[HeapHold]:
        """Return a context manager that holds heap memory shared by requests with an equal key."""
        return _SharedHeapHold(self._heap, key, size_bytes, owner, namespace)

    async def direct_ahead(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> DirectAhead:
        """Acquire a response's expected direct memory, shared by requests with an equal key."""
        reference = await self._direct.acquire(key, size_bytes, owner, namespace)
        return DirectAhead(reference.pays_for, reference.release)

    def direct_at_once(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> Callable[[], object] | None:
        """Acquire direct memory, shared by requests with an equal key, or return None."""
        try:
            reference = self._direct.reference(key, size_bytes, owner, namespace)
        except PermitAcquireError:
            return None
        if not reference.size:
            reference.release()
            return None
        return reference.release

    def transient(
        self,
        limit_type: LimitType,
        key: Hashable,
        size_bytes: int,
        owner: Hashable,
        namespace: str = "",
    ) -> TransientPermit | None:
        """Return memory for bytes that may be sent in this iteration; None if it is not free.

        Joining and leaving a lease within one event-loop iteration changes nothing. Sharing
        requests send equal bytes, apart from a few bytes for a longer request id.
        """
        heap = limit_type is LimitType.HEAP_MEMORY
        leases = self._heap if heap else self._direct
        covered = leases.covers(key, size_bytes if heap else 0)
        if covered is False:
            return None
        semaphore = None if covered else self._limiter.semaphore(limit_type)
        if semaphore is not None and not semaphore.immediate.allows(size_bytes, owner, namespace):
            return None
        return TransientPermit(
            lambda: leases.reference(key, size_bytes, owner, namespace).release,
            semaphore,
            size_bytes,
            owner,
            namespace,
        )

    def cancel_owner(self, owner: Hashable) -> None:
        """Drop the waiting requests of ``owner`` and release its memory immediately."""
        self._heap.cancel_owner(owner)
        self._direct.cancel_owner(owner)
        super().cancel_owner(owner)


class _SharedHeapHold:
    __slots__ = ("_acquiring", "_reference")

    def __init__(
        self,
        leases: SharedLeases,
        key: Hashable,
        size_bytes: int,
        owner: Hashable,
        namespace: str,
    ) -> None:
        self._acquiring = partial(leases.acquire, key, size_bytes, owner, namespace)
        self._reference: LeaseReference | None = None

    async def __aenter__(self) -> Self:
        self._reference = await self._acquiring()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reference is not None:
            self._reference.release()

    async def resize(self, size_bytes: int) -> None:
        """Enlarge the shared memory to ``size_bytes`` if it is smaller; it never shrinks."""
        if self._reference is None:
            raise RuntimeError("resize() was called outside the `async with` block")
        await self._reference.grow(size_bytes)
