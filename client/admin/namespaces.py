"""Namespaces, tenants and clusters over the admin REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from client.admin.rest import Body
from client.admin.url import namespace_path, path, query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from client.admin.rest import AdminRest, NameBatches
    from proto.names import NamespaceName

GLOBAL_CLUSTER = "global"
"""Listed by old brokers; no tenant may use it."""


class Namespaces:
    """The calls of ``pulsar-admin namespaces``. Every method raises AdminError."""

    def __init__(self, rest: AdminRest) -> None:
        self._rest = rest

    async def list(self, tenant: str) -> list[str]:
        """Return a tenant's namespaces, ``tenant/namespace``."""
        return await self._rest.strings(path("admin", "v2", "namespaces", tenant))

    async def create(
        self, namespace: NamespaceName, bundles: int | None = None, clusters: Sequence[str] = ()
    ) -> None:
        """Create a namespace; by default the broker chooses ``bundles`` and ``clusters``."""
        policies: dict[str, object] = {}
        if bundles is not None:
            policies["bundles"] = {"numBundles": bundles}
        if clusters:
            policies["replication_clusters"] = list(clusters)
        await self._rest.text("PUT", _of(namespace), Body(policies))

    async def delete(self, namespace: NamespaceName, *, force: bool = False) -> None:
        """Delete an empty namespace; with ``force`` also its topics, if the broker permits."""
        await self._rest.text("DELETE", f"{_of(namespace)}{query(force=force)}")

    async def policies(self, namespace: NamespaceName) -> dict[str, Any]:
        """Return a namespace's policies."""
        return await self._rest.mapping(_of(namespace))

    def topics(
        self,
        namespace: NamespaceName,
        mode: str | None = None,
        *,
        include_system_topics: bool = False,
    ) -> NameBatches:
        """Yield the full names of a namespace's topics as they arrive.

        Args:
            namespace: The namespace.
            mode: ``PERSISTENT`` (the brokers' default), ``NON_PERSISTENT`` or ``ALL``.
            include_system_topics: Whether to include hidden system topics.
        """
        asked = query(mode=mode, includeSystemTopic=include_system_topics)
        return self._rest.names([f"{_of(namespace)}/topics{asked}"])

    async def bundles(self, namespace: NamespaceName) -> dict[str, Any]:
        """Return ``boundaries`` and ``numBundles`` of a namespace's hash ranges."""
        return await self._rest.mapping(f"{_of(namespace)}/bundles")


class Tenants:
    """The calls of ``pulsar-admin tenants``. Every method raises AdminError."""

    def __init__(self, rest: AdminRest) -> None:
        self._rest = rest

    async def list(self) -> list[str]:
        """Return all tenants."""
        return await self._rest.strings("/admin/v2/tenants")

    async def get(self, tenant: str) -> dict[str, Any]:
        """Return ``adminRoles`` and ``allowedClusters``."""
        return await self._rest.mapping(_tenant(tenant))

    async def create(
        self, tenant: str, admin_roles: Sequence[str] = (), clusters: Sequence[str] = ()
    ) -> None:
        """Create a tenant; without ``clusters`` all clusters are allowed."""
        allowed = list(clusters) or [
            cluster for cluster in await Clusters(self._rest).list() if cluster != GLOBAL_CLUSTER
        ]
        await self._rest.text("PUT", _tenant(tenant), _tenant_info(admin_roles, allowed))

    async def update(
        self, tenant: str, admin_roles: Sequence[str] = (), clusters: Sequence[str] = ()
    ) -> None:
        """Change a tenant's roles, clusters or both; empty arguments change nothing."""
        before = await self.get(tenant)
        info = _tenant_info(
            admin_roles or before.get("adminRoles") or (),
            clusters or before.get("allowedClusters") or (),
        )
        await self._rest.text("POST", _tenant(tenant), info)

    async def delete(self, tenant: str, *, force: bool = False) -> None:
        """Delete a tenant without namespaces; with ``force`` also its namespaces."""
        await self._rest.text("DELETE", f"{_tenant(tenant)}{query(force=force)}")


class Clusters:
    """The calls of ``pulsar-admin clusters``. Every method raises AdminError."""

    def __init__(self, rest: AdminRest) -> None:
        self._rest = rest

    async def list(self) -> list[str]:
        """Return the names of all clusters."""
        return await self._rest.strings("/admin/v2/clusters")

    async def get(self, cluster: str) -> dict[str, Any]:
        """Return a cluster's addresses."""
        return await self._rest.mapping(path("admin", "v2", "clusters", cluster))


def _of(namespace: NamespaceName) -> str:
    return namespace_path("namespaces", namespace)


def _tenant(tenant: str) -> str:
    return path("admin", "v2", "tenants", tenant)


def _tenant_info(admin_roles: Sequence[str], clusters: Sequence[str]) -> Body:
    return Body({"adminRoles": list(admin_roles), "allowedClusters": list(clusters)})
