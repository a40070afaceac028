"""The roles that administer tenants, read from the store and trusted for a moment."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING

from server.tasks.single_flight import SingleFlight

if TYPE_CHECKING:
    from broker.stores.store import MetadataStore, TenantInfo
    from limiter.clock import Clock

TRUSTED_SECONDS = 1.0
"""So long may what was read allow something: a role that was taken away acts no longer."""
MOST_TENANTS = 10_000
"""Tenants whose admins are kept."""
_NOTHING = (-inf, frozenset[str]())


class TenantMissingError(Exception):
    """There is no such tenant."""


class TenantAdmins:
    """The admins of tenants.

    What is kept only ever allows: before somebody is refused, the tenant is read again. So a role
    that was just given counts at once.

    Bound: MOST_TENANTS; the one read first goes first.

    Args:
        store: Has the tenants.
        clock: The time.
    """

    def __init__(self, store: MetadataStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._read: dict[str, tuple[float, frozenset[str]]] = {}
        self._forgotten = 0
        self._reading: SingleFlight[TenantInfo | None] = SingleFlight()

    def forget(self) -> None:
        """Trust nothing that was read, nor what is being read: a tenant was changed here."""
        self._read.clear()
        self._forgotten += 1

    def surely(self, tenant: str, roles: frozenset[str]) -> bool:
        """Tell whether one of the roles was an admin of a tenant a moment ago."""
        read_at, admins = self._read.get(tenant, _NOTHING)
        return self._clock.now() - read_at <= TRUSTED_SECONDS and not roles.isdisjoint(admins)

    async def read(self, tenant: str) -> frozenset[str]:
        """Return the admins of a tenant, as they are stored now.

        Raises:
            TenantMissingError: There is no such tenant.
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
