"""Calls of the admin REST API about brokers, clusters, tenants and namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from client.admin.rest import AdminRequests, Body
from client.admin.url import namespace_path, path, query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from client.admin.rest import NameBatches
    from proto.names import NamespaceName

_CONFIGURATION = "/admin/v2/brokers/configuration"
_FLOODGATE = "/admin/v2/floodgate"


class Brokers(AdminRequests):
    """The admin requests that the commands ``pulsar-admin brokers`` send."""

    async def active(self, cluster: str | None = None) -> list[str]:
        """Return the addresses of the active brokers' web ports, each as ``host:port``."""
        segments = ["admin", "v2", "brokers"]
        return await self._rest.strings(path(*segments, *([cluster] if cluster else [])))

    async def leader(self) -> dict[str, Any]:
        """Return ``serviceUrl`` and ``brokerId`` of the cluster's leader broker."""
        return await self._rest.mapping("/admin/v2/brokers/leaderBroker")

    async def version(self) -> str:
        """Return the version of the broker's software."""
        return (await self._rest.text("GET", "/admin/v2/brokers/version")).strip()

    async def health(self, topic_version: str | None = None) -> str:
        """Return ``ok``; raise AdminError if the broker is unhealthy."""
        asked = query(topicVersion=topic_version)
        return (await self._rest.text("GET", f"/admin/v2/brokers/health{asked}")).strip()

    async def dynamic_keys(self) -> list[str]:
        """Return the sorted names of the configuration keys that can change at run time."""
        return sorted(await self._rest.strings(_CONFIGURATION))

    async def dynamic_values(self) -> dict[str, Any]:
        """Return the configuration keys changed at run time with their values, sorted by key."""
        return dict(sorted((await self._rest.mapping(f"{_CONFIGURATION}/values")).items()))

    async def runtime_configuration(self) -> dict[str, Any]:
        """Return all configuration keys with the values in effect, sorted by key."""
        return dict(sorted((await self._rest.mapping(f"{_CONFIGURATION}/runtime")).items()))

    async def update_dynamic(self, key: str, value: str) -> None:
        """Change the value of a configuration key of the running broker."""
        await self._rest.text("POST", f"{_CONFIGURATION}{path(key, value)}")

    async def delete_dynamic(self, key: str) -> None:
        """Undo the run-time change of a configuration key; the file's value applies again."""
        await self._rest.text("DELETE", f"{_CONFIGURATION}{path(key)}")


class Floodgate(AdminRequests):
    """The admin requests that Floodgate's brokers serve, and a real Pulsar's do not."""

    async def limiter(self) -> dict[str, Any]:
        """Return the holders of topic-list memory permits, and the requests waiting for permits."""
        return await self._rest.mapping(f"{_FLOODGATE}/limiter")

    async def limiter_table(self) -> str:
        """Return the state of the topic-list memory limiter as a readable table."""
        return await self._rest.text("GET", f"{_FLOODGATE}/limiter?format=table")

    async def import_topics(self, file: str, *, skip_invalid: bool = False) -> dict[str, Any]:
        """Import topics from a file or folder on the broker's machine; return the number imported.

        An invalid topic prevents the import, unless ``skip_invalid`` omits the topic.
        """
        body = {"path": file, **({"skipInvalid": True} if skip_invalid else {})}
        return await self._rest.mapping(f"{_FLOODGATE}/import", "POST", Body(body))

    async def imports(self) -> dict[str, Any]:
        """Return each running import of topics: its path, and the number imported so far."""
        return await self._rest.mapping(f"{_FLOODGATE}/import")

    async def reset(self) -> None:
        """Delete all data of the broker."""
        await self._rest.text("POST", f"{_FLOODGATE}/reset")

    async def set_fault(self, fault: Mapping[str, Any]) -> dict[str, Any]:
        """Make the broker or proxy inject a fault; return the fault with its id."""
        return await self._rest.mapping(f"{_FLOODGATE}/faults", "POST", Body(fault))

    async def faults(self) -> list[dict[str, Any]]:
        """Return the active injected faults, each with the number of times that it acted."""
        found = await self._rest.value("GET", f"{_FLOODGATE}/faults")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    async def wait_for_fault(
        self, fault_id: str, hits: int = 1, timeout_ms: int = 10_000
    ) -> dict[str, Any]:
        """Wait until an injected fault has acted ``hits`` times; return that fault."""
        query = f"?hits={hits}&timeoutMs={timeout_ms}"
        return await self._rest.mapping(f"{_FLOODGATE}/faults{path(fault_id, 'wait')}{query}")

    async def advance_clock(self, time: str) -> dict[str, Any]:
        """Advance the broker's clock by ``90s``, ``5m``, ``1h`` or ``2d``; return the new time."""
        return await self._rest.mapping(f"{_FLOODGATE}/clock", "POST", Body({"advance": time}))

    async def clear_faults(self, fault_id: str | None = None) -> None:
        """Remove the injected fault with this id; without an id, remove all faults."""
        which = "" if fault_id is None else path(fault_id)
        await self._rest.text("DELETE", f"{_FLOODGATE}/faults{which}")


GLOBAL_CLUSTER = "global"
"""Name of a cluster that old brokers list, and that no tenant may use."""


class Namespaces(AdminRequests):
    """The admin requests that the commands ``pulsar-admin namespaces`` send."""

    async def list(self, tenant: str) -> list[str]:
        """Return the names of a tenant's namespaces, each as ``tenant/namespace``."""
        return await self._rest.strings(path("admin", "v2", "namespaces", tenant))

    async def create(
        self, namespace: NamespaceName, bundles: int | None = None, clusters: Sequence[str] = ()
    ) -> None:
        """Create a namespace.

        Without ``bundles`` or ``clusters`` the broker uses its defaults.
        """
        policies: dict[str, object] = {}
        if bundles is not None:
            policies["bundles"] = {"numBundles": bundles}
        if clusters:
            policies["replication_clusters"] = list(clusters)
        await self._rest.text("PUT", _of(namespace), Body(policies))

    async def delete(self, namespace: NamespaceName, *, force: bool = False) -> None:
        """Delete an empty namespace.

        With ``force`` its topics are deleted, too, if the broker's configuration allows it.
        """
        await self._rest.text("DELETE", f"{_of(namespace)}{query(force=force)}")

    async def policies(self, namespace: NamespaceName) -> dict[str, Any]:
        """Return all policies set for a namespace."""
        return await self._rest.mapping(_of(namespace))

    def topics(
        self,
        namespace: NamespaceName,
        mode: str | None = None,
        *,
        include_system_topics: bool = False,
    ) -> NameBatches:
        """Yield the full names of a namespace's topics while the response is received.

        Args:
            namespace: The namespace.
            mode: ``PERSISTENT`` (the brokers' default), ``NON_PERSISTENT`` or ``ALL``.
            include_system_topics: Whether to include hidden system topics.
        """
        asked = query(mode=mode, includeSystemTopic=include_system_topics)
        return self._rest.names([f"{_of(namespace)}/topics{asked}"])

    async def bundles(self, namespace: NamespaceName) -> dict[str, Any]:
        """Return the hash ranges (bundles) of a namespace: ``boundaries`` and ``numBundles``."""
        return await self._rest.mapping(f"{_of(namespace)}/bundles")


class Tenants(AdminRequests):
    """The admin requests that the commands ``pulsar-admin tenants`` send."""

    async def list(self) -> list[str]:
        """Return the names of all tenants."""
        return await self._rest.strings("/admin/v2/tenants")

    async def get(self, tenant: str) -> dict[str, Any]:
        """Return a tenant's two settings: ``adminRoles`` and ``allowedClusters``."""
        return await self._rest.mapping(_tenant(tenant))

    async def create(
        self, tenant: str, admin_roles: Sequence[str] = (), clusters: Sequence[str] = ()
    ) -> None:
        """Create a tenant; if ``clusters`` is empty, the tenant may use all clusters."""
        allowed = list(clusters) or [
            cluster for cluster in await Clusters(self._rest).list() if cluster != GLOBAL_CLUSTER
        ]
        await self._rest.text("PUT", _tenant(tenant), _tenant_info(admin_roles, allowed))

    async def update(
        self, tenant: str, admin_roles: Sequence[str] = (), clusters: Sequence[str] = ()
    ) -> None:
        """Change a tenant's roles, clusters or both; an empty argument keeps the current value."""
        before = await self.get(tenant)
        info = _tenant_info(
            admin_roles or before.get("adminRoles") or (),
            clusters or before.get("allowedClusters") or (),
        )
        await self._rest.text("POST", _tenant(tenant), info)

    async def delete(self, tenant: str, *, force: bool = False) -> None:
        """Delete a tenant that has no namespaces.

        With ``force`` its namespaces are deleted, too.
        """
        await self._rest.text("DELETE", f"{_tenant(tenant)}{query(force=force)}")


class Clusters(AdminRequests):
    """The admin requests that the commands ``pulsar-admin clusters`` send."""

    async def list(self) -> list[str]:
        """Return the names of all clusters."""
        return await self._rest.strings("/admin/v2/clusters")

    async def get(self, cluster: str) -> dict[str, Any]:
        """Return the service URLs of a cluster."""
        return await self._rest.mapping(path("admin", "v2", "clusters", cluster))


def _of(namespace: NamespaceName) -> str:
    return namespace_path("namespaces", namespace)


def _tenant(tenant: str) -> str:
    return path("admin", "v2", "tenants", tenant)


def _tenant_info(admin_roles: Sequence[str], clusters: Sequence[str]) -> Body:
    return Body({"adminRoles": list(admin_roles), "allowedClusters": list(clusters)})
