"""Admin roles of tenants, read from the store and cached briefly."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING

from limiter.single_flight import SingleFlight

if TYPE_CHECKING:
    from broker.stores.store import MetadataStore, TenantInfo
    from limiter.clock import Clock

TRUSTED_SECONDS = 1.0
"""The seconds for which a cached role is used, and so the longest delay of a revocation."""
MOST_TENANTS = 10_000
"""The largest number of cached tenants."""
_NOTHING = (-inf, frozenset[str]())


class TenantMissingError(Exception):
    """A tenant that an operation needs does not exist."""


class TenantAdmins:
    """The admin roles of tenants, with a cache of recently read tenants.

    The cache can only allow an operation: before a refusal the tenant is read again, so that new
    admins are effective immediately.

    Bound: MOST_TENANTS tenants; the tenant that was read longest ago is evicted.
    """

    def __init__(self, store: MetadataStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._read: dict[str, tuple[float, frozenset[str]]] = {}
        self._forgotten = 0
        self._reading: SingleFlight[TenantInfo | None] = SingleFlight()

    def forget(self) -> None:
        """Invalidate the cache and in-flight reads after a change of a tenant on this broker."""
        self._read.clear()
        self._forgotten += 1

    def surely(self, tenant: str, roles: frozenset[str]) -> bool:
        """Return True if, according to the cache, one of the roles is an admin of a tenant."""
        read_at, admins = self._read.get(tenant, _NOTHING)
        return self._clock.now() - read_at <= TRUSTED_SECONDS and not roles.isdisjoint(admins)

    async def read(self, tenant: str) -> frozenset[str]:
        """Return the admin roles of a tenant, read from the store.

        Raises:
            TenantMissingError: The tenant does not exist.
            StoreError: The store failed.
        """
        now, forgotten = self._clock.now(), self._forgotten
        work = partial(self._store.tenant, tenant)
        found = await self._reading.join((forgotten, tenant), work)
        if found is None:
            raise TenantMissingError(tenant)
        admins = frozenset(found.admin_roles or ())
        if forgotten == self._forgotten:
            self._read.pop(tenant, None)
            self._read[tenant] = now, admins
            if len(self._read) > MOST_TENANTS:
                del self._read[next(iter(self._read))]
        return admins
