"""Memory shared by many requests: a lease with references, released with the last reference.

A lease is acquired once for all requests waiting for it. A cancelled request drops its reference
only: the remaining requests wait on.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from limiter.clock import wake
from limiter.errors import PermitAcquireCancelledError, PermitAcquireError, PermitTooLargeError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType
    from limiter.permits.account import SharedHolder, Waiter
    from limiter.permits.permit import Permit
    from limiter.semaphore.async_semaphore import AsyncSemaphore


class SharedLeases:
    """Leases of a memory budget by key; requests with equal keys share a lease.

    Bound: a lease per distinct key with at least one reference; a lease is forgotten with its last
    reference. Bytes are bounded by the limiter.
    """

    def __init__(self, limiter: AsyncDualMemoryLimiter, limit_type: LimitType) -> None:
        self._semaphore = limiter.semaphore(limit_type)
        self._leases: dict[Hashable, _Lease] = {}
        self._owned: dict[Hashable, dict[LeaseReference, None]] = {}

    def __len__(self) -> int:
        return len(self._leases)

    async def acquire(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> LeaseReference:
        """Return a reference to the lease of ``key``, waiting until its bytes are granted.

        The first request opens the lease with ``size_bytes``; later requests share the lease.

        Raises:
            PermitAcquireError: The lease was refused, for all of its waiting requests.
            PermitTooLargeError: ``size_bytes`` exceeds the limit.
        """
        reference = self.reference(key, size_bytes, owner, namespace)
        if reference.size:
            return reference
        try:
            await reference.granted()
        except (PermitAcquireError, PermitTooLargeError, asyncio.CancelledError):
            reference.release()
            raise
        return reference

    def reference(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> LeaseReference:
        """Return a reference to the lease of ``key``, whether granted or still waiting.

        See LeaseReference.granted.
        """
        lease = self._leases.get(key)
        if lease is None or not lease.live:
            lease = self._leases[key] = self._open(key, size_bytes, owner, namespace)
        else:
            self._semaphore.shared.join(lease.shared_holder(), owner)
        reference = LeaseReference(self, lease, owner)
        self._owned.setdefault(owner, {})[reference] = None
        return reference

    def covers(self, key: Hashable, size_bytes: int) -> bool | None:
        """Return True if the lease of ``key`` holds ``size_bytes``; None without a lease."""
        lease = self._leases.get(key)
        if lease is None or not lease.live:
            return None
        return lease.permit is not None and lease.permit.size >= size_bytes

    def cancel_owner(self, owner: Hashable) -> None:
        """Release every reference of ``owner`` immediately."""
        for reference in list(self._owned.get(owner, ())):
            reference.release()

    def _open(self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str) -> _Lease:
        """Open a lease for a single owner if possible without a wait, otherwise a shared lease.

        Sharing costs four times as much.
        """
        if owner is not None:  # Other owners join through this owner's account.
            permit = self._semaphore.immediate.permit(size_bytes, owner, namespace)
            if permit is not None:
                return _Lease(key, self._semaphore, permit=permit)
        return self._open_shared(key, size_bytes, owner, namespace)

    def _open_shared(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str
    ) -> _Lease:
        holder = self._semaphore.shared.new(namespace)
        self._semaphore.shared.join(holder, owner)
        try:
            waiter = self._semaphore.request(size_bytes, None, holder)
        except (PermitAcquireError, PermitTooLargeError):
            self._semaphore.shared.leave(holder, owner)
            raise
        lease = _Lease(key, self._semaphore, holder, waiter)
        waiter.on_done(lambda: self._answered(lease, waiter))
        return lease

    def _answered(self, lease: _Lease, waiter: Waiter) -> None:
        """Forget a lease that was refused, so that the next request opens a new lease."""
        if waiter.error is not None:
            self._forget(lease)

    def rename(self, lease: _Lease, key: Hashable) -> bool:
        """Change a lease's key; return False if the key has a lease. Called by a reference."""
        other = self._leases.get(key)
        if other is not None and other.live:
            return False
        self._forget(lease)
        lease.key = key
        self._leases[key] = lease
        return True

    def _forget(self, lease: _Lease) -> None:
        if self._leases.get(lease.key) is lease:
            del self._leases[lease.key]

    def give_back(self, reference: LeaseReference, lease: _Lease) -> None:
        """Drop a reference; the last reference ends the lease. Called by the reference."""
        owned = self._owned[reference.owner]
        del owned[reference]
        if not owned:
            del self._owned[reference.owner]
        holder = lease.holder
        if holder is None or holder.references <= 1:
            self._forget(lease)
        if holder is not None:
            self._semaphore.shared.leave(holder, reference.owner)
        elif lease.permit is not None:
            self._semaphore.release(lease.permit)


class _Lease:
    """Memory shared under a key, held by a single owner until another owner joins.

    Attributes:
        holder: The lease's owners; None while a single owner holds the lease.
        waiter: The request that opened the lease; None if it was granted immediately.
    """

    __slots__ = ("_growth", "_semaphore", "holder", "key", "permit", "waiter")

    def __init__(
        self,
        key: Hashable,
        semaphore: AsyncSemaphore,
        holder: SharedHolder | None = None,
        waiter: Waiter | None = None,
        permit: Permit | None = None,
    ) -> None:
        self.key = key
        self.holder = holder
        self.waiter = waiter
        self.permit = permit
        self._growth: Waiter | None = None
        self._semaphore = semaphore
        if waiter is not None:
            waiter.on_done(partial(self._take, waiter))

    @property
    def live(self) -> bool:
        if self.holder is not None:
            return self.holder.references > 0
        return self.permit is not None and self.permit.size > 0

    def shared_holder(self) -> SharedHolder:
        """Return the holder that owners can join, converting a single owner's permit.

        Raises:
            PermitAcquireCancelledError: The owner was cancelled and holds nothing.
        """
        if self.holder is None:
            if self.permit is None or not self.permit.size:
                raise PermitAcquireCancelledError
            self.holder = self._semaphore.shared.of(self.permit)
        return self.holder

    def growth_to(self, permit: Permit, size_bytes: int) -> Waiter:
        """Return the current request to enlarge the lease, or begin one.

        Raises as AsyncSemaphore.update.
        """
        if self._growth is not None:
            return self._growth
        self.shared_holder()  # A joining owner must find the growth shared.
        growth = self._growth = self._semaphore.request_update(permit, size_bytes)
        growth.on_done(partial(self._take, growth))
        return growth

    def _take(self, waiter: Waiter) -> None:
        """Store a granted permit in the lease; a refusal leaves the lease unchanged."""
        self._growth = None
        if waiter.permit is not None:
            self.permit = waiter.permit


class LeaseReference:
    """A reference to a lease, held by a request or an outbound entry."""

    __slots__ = ("_asked_for", "_lease", "_leases", "_released", "_waiting", "owner")

    def __init__(self, leases: SharedLeases, lease: _Lease, owner: Hashable) -> None:
        self._leases = leases
        self._lease = lease
        self._asked_for = lease.key
        self.owner = owner
        self._released = False
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def size(self) -> int:
        """Size of the whole lease in bytes; 0 until granted and after release."""
        permit = self._lease.permit
        return 0 if self._released or permit is None else permit.size

    async def granted(self) -> None:
        """Wait until the lease is granted.

        Raises:
            PermitAcquireError, PermitTooLargeError: The lease was refused, or released meanwhile.
        """
        waiter = self._lease.waiter
        if waiter is not None:
            await self._until(waiter)
        elif self._released:
            raise PermitAcquireCancelledError

    def pays_for(self, key: Hashable, size_bytes: int) -> bool:
        """Assign a lease requested in advance to a buffer, if the lease is large enough.

        The lease's first reference decides the buffer, and the lease is renamed to the buffer's
        key.

        Returns:
            False if the lease is too small, or pays for another buffer, or another lease pays for
                this buffer.
        """
        lease = self._lease
        if not self.size or lease.key == key:
            return self.size > 0
        enough = self.size >= size_bytes
        return enough and lease.key == self._asked_for and self._leases.rename(lease, key)

    async def grow(self, size_bytes: int) -> None:
        """Wait until the lease holds ``size_bytes`` or more, for all its owners.

        A refused growth leaves the lease unchanged.

        Raises:
            PermitAcquireError, PermitTooLargeError: The growth was refused.
        """
        await self.granted()
        while (permit := self._lease.permit) is not None and permit.size < size_bytes:
            await self._until(self._lease.growth_to(permit, size_bytes))

    async def _until(self, waiter: Waiter) -> None:
        """Wait until a shared request is granted or refused, or this reference is released."""
        if not waiter.done and not self._released:
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(woken)
            waiter.on_done(partial(wake, woken))
            try:
                await woken
            finally:
                self._waiting.remove(woken)
        if self._released:
            raise PermitAcquireCancelledError
        waiter.result()

    def release(self) -> None:
        """Release the reference; idempotent."""
        if not self._released:
            self._released = True
            for woken in self._waiting:
                wake(woken)
            self._leases.give_back(self, self._lease)
