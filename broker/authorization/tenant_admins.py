"""The roles that administer tenants, read from the store and trusted for a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.tasks.single_flight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.stores.store import MetadataStore, TenantInfo
    from limiter.clock import Clock

TRUSTED_SECONDS = 1.0
"""So long may what was read allow something: a role that was taken away acts no longer."""


class TenantMissingError(Exception):
    """There is no such tenant."""


class TenantAdmins:
    """The admins of tenants.

    What is kept only ever allows: before somebody is refused, the tenants are read again. So a role
    that was just given counts at once.

    Bound: the tenants that there are.

    Args:
        store: Has the tenants.
        clock: The time.
    """

    def __init__(self, store: MetadataStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._tenants: Mapping[str, TenantInfo] = {}
        self._read_at: float | None = None
        self._forgotten = 0
        self._reading: SingleFlight[Mapping[str, TenantInfo]] = SingleFlight()

    def forget(self) -> None:
        """Trust nothing that was read, nor what is being read: a tenant was changed here."""
        self._read_at = None
        self._forgotten += 1

    def surely(self, tenant: str, roles: frozenset[str]) -> bool:
        """Tell whether one of the roles was an admin of a tenant a moment ago."""
        if self._read_at is None or self._clock.now() - self._read_at > TRUSTED_SECONDS:
            return False
        return not roles.isdisjoint(_admins(self._tenants, tenant))

    async def read(self, tenant: str) -> frozenset[str]:
        """Return the admins of a tenant, as they are stored now.

        Raises:
            TenantMissingError: There is no such tenant.
            StoreError: The store failed.
        """
        now, forgotten = self._clock.now(), self._forgotten
        found = await self._reading.join(str(forgotten), self._read)
        if forgotten == self._forgotten:
            self._tenants, self._read_at = found, now
        if tenant not in found:
            raise TenantMissingError(tenant)
        return _admins(found, tenant)

    async def _read(self) -> Mapping[str, TenantInfo]:
        return await self._store.tenants()


def _admins(tenants: Mapping[str, TenantInfo], tenant: str) -> frozenset[str]:
    info = tenants.get(tenant)
    return frozenset(info.admin_roles or ()) if info is not None else frozenset()
