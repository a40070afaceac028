"""Memory that many requests share: one lease, references, the last one returns it.

A lease is acquired once for all who wait for it. Whoever cancels his own request gives back
his reference only: the others' wait goes on. The mutable state is the table of live leases.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from limiter.errors import PermitAcquireCancelledError, PermitAcquireError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limiter.dual import AsyncDualMemoryLimiter, LimitType
    from limiter.permit import Waiter


class SharedLeases:
    """The live leases of one budget, found by what they pay for.

    Bound: one lease per distinct key with at least one reference; the lease is forgotten with
    its last reference. Bytes are bounded by the limiter.
    """

    def __init__(self, limiter: AsyncDualMemoryLimiter, limit_type: LimitType) -> None:
        self._limiter = limiter
        self._limit_type = limit_type
        self._leases: dict[Hashable, _Lease] = {}
        self._owned: dict[Hashable, dict[LeaseReference, None]] = {}

    def __len__(self) -> int:
        return len(self._leases)

    async def acquire(self, key: Hashable, size_bytes: int, owner: Hashable) -> LeaseReference:
        """Return a reference to the lease of ``key``; wait until its bytes are granted.

        The first to ask opens the lease with ``size_bytes``; who comes while it lives shares it.

        Raises:
            PermitAcquireError: The lease was refused, for all who waited for it.
            PermitTooLargeError: ``size_bytes`` exceeds the limit.
        """
        reference = self.reference(key, size_bytes, owner)
        try:
            await reference.granted()
        except (PermitAcquireError, asyncio.CancelledError):
            reference.release()
            raise
        return reference

    def reference(self, key: Hashable, size_bytes: int, owner: Hashable) -> LeaseReference:
        """Return a reference that may still have to wait; see LeaseReference.granted."""
        lease = self._leases.get(key)
        if lease is None:
            lease = self._leases[key] = self._open(key, size_bytes)
        reference = LeaseReference(self, lease, owner)
        lease.references += 1
        self._owned.setdefault(owner, {})[reference] = None
        return reference

    def cancel_owner(self, owner: Hashable) -> None:
        """Give back every reference of ``owner``, in this turn."""
        for reference in list(self._owned.get(owner, ())):
            reference.release()

    def _open(self, key: Hashable, size_bytes: int) -> _Lease:
        lease = _Lease(key, self._limiter.request(self._limit_type, size_bytes))
        lease.waiter.on_done(lambda: self._answered(lease))
        return lease

    def _answered(self, lease: _Lease) -> None:
        """A refused lease is no longer found: who comes later asks anew."""
        if lease.waiter.error is not None and self._leases.get(lease.key) is lease:
            del self._leases[lease.key]

    def give_back(self, reference: LeaseReference, lease: _Lease) -> None:
        """Count one reference down; the last one ends the lease."""
        owned = self._owned[reference.owner]
        del owned[reference]
        if not owned:
            del self._owned[reference.owner]
        lease.references -= 1
        if lease.references == 0:
            if self._leases.get(lease.key) is lease:
                del self._leases[lease.key]
            self._limiter.abandon(self._limit_type, lease.waiter)


class _Lease:
    __slots__ = ("key", "references", "waiter")

    def __init__(self, key: Hashable, waiter: Waiter) -> None:
        self.key = key
        self.waiter = waiter
        self.references = 0


class LeaseReference:
    """One request's, or one outbound entry's, part in a lease."""

    __slots__ = ("_lease", "_leases", "_released", "_waiting", "owner")

    def __init__(self, leases: SharedLeases, lease: _Lease, owner: Hashable) -> None:
        self._leases = leases
        self._lease = lease
        self.owner = owner
        self._released = False
        self._waiting: asyncio.Future[None] | None = None

    @property
    def size(self) -> int:
        """Bytes of the whole lease; 0 until granted and after release."""
        permit = self._lease.waiter.permit
        return 0 if self._released or permit is None else permit.size

    async def granted(self) -> None:
        """Wait until the lease is granted.

        Raises:
            PermitAcquireError: It was refused, or this reference was released meanwhile.
        """
        waiter = self._lease.waiter
        if not waiter.done and not self._released:
            self._waiting = asyncio.get_running_loop().create_future()
            waiter.on_done(self._wake)
            await self._waiting
        if self._released:
            raise PermitAcquireCancelledError
        waiter.result()

    def release(self) -> None:
        """Give the reference back; once more is harmless."""
        if not self._released:
            self._released = True
            self._wake()
            self._leases.give_back(self, self._lease)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
