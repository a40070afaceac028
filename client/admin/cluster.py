"""Brokers, clusters, tenants and namespaces over the admin REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from client.admin.rest import Body
from client.admin.url import namespace_path, path, query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from client.admin.rest import AdminRest, NameBatches
    from proto.names import NamespaceName

_CONFIGURATION = "/admin/v2/brokers/configuration"
_FLOODGATE = "/admin/v2/floodgate"


class Brokers:
    """The calls of ``pulsar-admin brokers``. Every method raises AdminError."""

    def __init__(self, rest: AdminRest) -> None:
        self._rest = rest

    async def active(self, cluster: str | None = None) -> list[str]:
        """Return the brokers, ``host:port`` of their web ports."""
        segments = ["admin", "v2", "brokers"]
        return await self._rest.strings(path(*segments, *([cluster] if cluster else [])))

    async def leader(self) -> dict[str, Any]:
        """Return ``serviceUrl`` and ``brokerId`` of the leading broker."""
        return await self._rest.mapping("/admin/v2/brokers/leaderBroker")

    async def version(self) -> str:
        """Return the broker's version."""
        return (await self._rest.text("GET", "/admin/v2/brokers/version")).strip()

    async def health(self, topic_version: str | None = None) -> str:
        """Return ``ok``; raise an error if the broker is unhealthy."""
        asked = query(topicVersion=topic_version)
        return (await self._rest.text("GET", f"/admin/v2/brokers/health{asked}")).strip()

    async def dynamic_keys(self) -> list[str]:
        """Return the names of the configuration keys that can change at run time, sorted."""
        return sorted(await self._rest.strings(_CONFIGURATION))

    async def dynamic_values(self) -> dict[str, Any]:
        """Return the keys that were changed at run time, with their values, sorted by key."""
        return dict(sorted((await self._rest.mapping(f"{_CONFIGURATION}/values")).items()))

    async def runtime_configuration(self) -> dict[str, Any]:
        """Return all keys with their effective values, sorted by key."""
        return dict(sorted((await self._rest.mapping(f"{_CONFIGURATION}/runtime")).items()))

    async def update_dynamic(self, key: str, value: str) -> None:
        """Change a dynamic key of the running broker."""
        await self._rest.text("POST", f"{_CONFIGURATION}{path(key, value)}")

    async def delete_dynamic(self, key: str) -> None:
        """Undo a dynamic key's change: the configuration file's value applies again."""
        await self._rest.text("DELETE", f"{_CONFIGURATION}{path(key)}")


class Floodgate:
    """Calls specific to Floodgate brokers. Every method raises AdminError."""

    def __init__(self, rest: AdminRest) -> None:
        self._rest = rest

    async def limiter(self) -> dict[str, Any]:
        """Return the holders of topic-list memory, and the requests waiting for memory."""
        return await self._rest.mapping(f"{_FLOODGATE}/limiter")

    async def limiter_table(self) -> str:
        """Return the limiter's state as a table for people."""
        return await self._rest.text("GET", f"{_FLOODGATE}/limiter?format=table")

    async def import_topics(self, file: str, *, skip_invalid: bool = False) -> dict[str, Any]:
        """Load topics from a file or folder on the broker's machine; return the counts of topics.

        An invalid topic prevents the import, unless ``skip_invalid`` omits the topic.
        """
        body = {"path": file, **({"skipInvalid": True} if skip_invalid else {})}
        return await self._rest.mapping(f"{_FLOODGATE}/import", "POST", Body(body))

    async def imports(self) -> dict[str, Any]:
        """Return the running imports: the number of topics imported until now, by path."""
        return await self._rest.mapping(f"{_FLOODGATE}/import")

    async def reset(self) -> None:
        """Reset the broker: delete all of its data."""
        await self._rest.text("POST", f"{_FLOODGATE}/reset")

    async def set_fault(self, fault: Mapping[str, Any]) -> dict[str, Any]:
        """Set a fault at the broker or proxy; return the fault with its id."""
        return await self._rest.mapping(f"{_FLOODGATE}/faults", "POST", Body(fault))

    async def faults(self) -> list[dict[str, Any]]:
        """Return the active faults with their counts."""
        found = await self._rest.value("GET", f"{_FLOODGATE}/faults")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    async def wait_for_fault(
        self, fault_id: str, hits: int = 1, timeout_ms: int = 10_000
    ) -> dict[str, Any]:
        """Wait until a fault has acted a number of times; return the fault."""
        query = f"?hits={hits}&timeoutMs={timeout_ms}"
        return await self._rest.mapping(f"{_FLOODGATE}/faults{path(fault_id, 'wait')}{query}")

    async def advance_clock(self, time: str) -> dict[str, Any]:
        """Move the broker's time ahead by ``90s``, ``5m``, ``1h``, ``2d``; return the new time."""
        return await self._rest.mapping(f"{_FLOODGATE}/clock", "POST", Body({"advance": time}))

    async def clear_faults(self, fault_id: str | None = None) -> None:
        """Clear a fault, or all faults."""
        which = "" if fault_id is None else path(fault_id)
        await self._rest.text("DELETE", f"{_FLOODGATE}/faults{which}")


GLOBAL_CLUSTER = "global"
"""A cluster's name that old brokers list; no tenant may use the cluster."""


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
