"""Admin requests about tenants, ``/admin/v2/tenants``, and clusters, ``/admin/v2/clusters``.

Source: upstream TenantsBase, ClustersBase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.bodies import JAVA_BLANKS, json_object
from broker.admin.lockouts import check_stays_admin
from broker.admin.openapi import schemas
from broker.admin.paths import Resource, endpoint
from broker.admin.requests import flag, segment, tenant_name
from broker.admin.resources.namespaces import NamespaceAdmin, check_forced_deletion
from broker.authorization.operations import ClusterOperation, Level, TenantOperation
from broker.policies.values import BadBodyError, strings
from broker.stores.changes import NamespaceNotEmptyError
from broker.stores.store import TenantInfo
from proto.names import is_blank
from server.http import RestError

if TYPE_CHECKING:
    from aiohttp import web


_WITHOUT_TLS = {
    "brokerClientTlsEnabled": False,
    "tlsAllowInsecureConnection": False,
    "brokerClientTlsEnabledWithKeyStore": False,
    "brokerClientTlsTrustStoreType": "JKS",
    "brokerClientTlsKeyStoreType": "JKS",
    "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
}
"""Upstream's defaults of a cluster's fields, apart from its addresses."""


class TenantAdmin(Resource):
    """Handlers of admin requests about tenants and clusters."""

    @endpoint("GET clusters", Level.AUTHENTICATED)
    async def list_clusters(self, _: web.Request) -> object:
        """Return the name of the broker's cluster, in a list."""
        return [self._cluster]

    @endpoint("GET clusters/{cluster}", ClusterOperation.GET_CLUSTER)
    async def get_cluster(self, request: web.Request) -> object:
        """Return the addresses of the broker's cluster."""
        if segment(request, "cluster") != self._cluster:
            raise RestError(404, "Cluster does not exist")
        urls = self._context.urls()
        named = {
            "serviceUrl": urls.web,
            "serviceUrlTls": urls.web_tls,
            "brokerServiceUrl": urls.service,
            "brokerServiceUrlTls": urls.service_tls,
        }
        return {**{name: url for name, url in named.items() if url}, **_WITHOUT_TLS}

    @endpoint("GET tenants", TenantOperation.LIST_TENANTS)
    async def list_tenants(self, request: web.Request) -> web.StreamResponse:
        """Return the names of all tenants, sorted."""
        tenants = list(await self._context.store.tenants())
        return await self._context.listings.respond_with_names(request, tenants)

    @endpoint("GET tenants/{tenant}", TenantOperation.GET_TENANT)
    async def get_tenant(self, request: web.Request) -> object:
        """Return a tenant's admin roles and allowed clusters."""
        info = await self._context.store.tenant(segment(request, "tenant"))
        if info is None:
            raise RestError(404, "Tenant does not exist")
        clusters = info.allowed_clusters or (self._cluster,)
        roles = {} if info.admin_roles is None else {"adminRoles": list(info.admin_roles)}
        return roles | {"allowedClusters": list(clusters)}

    @endpoint("PUT tenants/{tenant}", TenantOperation.CREATE_TENANT, body=schemas.TENANT)
    async def create(self, request: web.Request) -> None:
        """Create a tenant with admin roles and allowed clusters."""
        body, tenant = await json_object(request), tenant_name(request)
        info = self._info(body)
        await self._check_room(tenant)
        if not await self._context.store.create_tenant(tenant, info):
            raise RestError(409, "Tenant already exist")
        self._context.tenants_changed()

    @endpoint("POST tenants/{tenant}", TenantOperation.UPDATE_TENANT, body=schemas.TENANT)
    async def update(self, request: web.Request) -> None:
        """Replace a tenant's admin roles and allowed clusters."""
        body, tenant = await json_object(request), segment(request, "tenant")
        info = self._info(body)
        check_stays_admin(request, self._context.config, info.admin_roles or ())
        if not await self._context.store.change_tenant(tenant, info):
            raise RestError(404, f"Tenant {tenant} not found")
        self._context.tenants_changed()

    @endpoint("DELETE tenants/{tenant}?force", TenantOperation.DELETE_TENANT)
    async def delete(self, request: web.Request) -> None:
        """Delete a tenant; with ``force``, if the configuration allows, also its namespaces."""
        tenant, force = segment(request, "tenant"), flag(request, "force")
        if force:
            if not self._context.config.force_delete_tenant_allowed:
                raise RestError(405, "Broker doesn't allow forced deletion of tenants")
            namespaces = await self._context.store.namespaces(tenant)
            if namespaces:
                check_forced_deletion(self._context.config)
            await NamespaceAdmin(self._context).delete_with_topics(*namespaces)
        try:
            deleted = await self._context.store.delete_tenant(tenant)
        except NamespaceNotEmptyError:
            raise RestError(409, "The tenant still has active namespaces") from None
        if not deleted:
            raise RestError(404, "Tenant doesn't exist")
        self._context.tenants_changed()

    @property
    def _cluster(self) -> str:
        return self._context.config.cluster_name

    def _info(self, body: dict[str, object] | None) -> TenantInfo:
        """Parse a tenant's admin roles and allowed clusters from a request's body.

        Raises:
            RestError: 412, the body is empty, or names a foreign cluster.
            BadBodyError: A member has the wrong type.
        """
        if body is None:
            raise RestError(412, "TenantInfo is null")
        clusters = strings(body.get("allowedClusters"), "allowedClusters")
        roles = strings(body.get("adminRoles"), "adminRoles")
        given = body.get("adminRoles")
        if isinstance(given, list) and None in given:
            raise BadBodyError("adminRoles has null in it", upstream_status=500)
        if any(role != role.strip(JAVA_BLANKS) for role in roles or ()):
            raise RestError(412, "AdminRoles contains whitespace in the beginning or end.")
        if clusters is None:
            raise RestError(412, "Clusters cannot be null")
        if not clusters or any(map(is_blank, clusters)):
            raise RestError(412, "Clusters cannot be empty or blank")
        if any(cluster != self._cluster for cluster in clusters):
            raise RestError(412, "Clusters do not exist")
        return TenantInfo(roles, clusters)

    async def _check_room(self, tenant: str) -> None:
        limit = self._context.config.max_tenants
        if limit > 0:
            tenants = await self._context.store.tenants()
            if len(tenants) >= limit and tenant not in tenants:
                raise RestError(412, "Exceed the maximum number of tenants")
