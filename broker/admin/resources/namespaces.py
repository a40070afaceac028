"""Admin requests about namespaces: ``/admin/v2/namespaces``.

Source: upstream NamespacesBase, v2.Namespaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.admin.bodies import json_object
from broker.admin.openapi import schemas
from broker.admin.paths import Resource, endpoint
from broker.admin.requests import flag, namespace_name, tenant_name
from broker.admin.resources.policies.namespace_body import document_of, policies_body, policies_of
from broker.admin.resources.topics import with_system_topics
from broker.authorization.operations import NamespaceOperation, PolicyName, TenantOperation
from broker.bundles import boundaries
from broker.stores.changes import NamespaceNotEmptyError
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from broker.configuration.config import BrokerConfig
    from proto.names import NamespaceName

NAMESPACES_AT_ONCE = 500
"""The largest number of namespaces deleted in one step."""


class NamespaceAdmin(Resource):
    """Handlers of admin requests about namespaces."""

    @endpoint("GET namespaces/{tenant}", TenantOperation.LIST_NAMESPACES)
    async def list_namespaces(self, request: web.Request) -> web.StreamResponse:
        """Return the names of a tenant's namespaces, sorted."""
        tenant = tenant_name(request)
        if await self._context.store.tenant(tenant) is None:
            raise RestError(404, "Tenant not found")
        namespaces = await self._context.store.namespaces(tenant)
        return await self._context.listings.respond_with_names(request, namespaces)

    @endpoint("GET namespaces/{namespace}", PolicyName.ALL)
    async def get_policies(self, request: web.Request) -> object:
        """Return a namespace's policies."""
        namespace = namespace_name(request)
        policies = await self._context.policies(namespace)
        document = self._context.message_policies.document(namespace)
        return policies_body(policies, document, self._context.config.cluster_name)

    @endpoint("GET namespaces/{namespace}/bundles", NamespaceOperation.GET_BUNDLE)
    async def get_bundles(self, request: web.Request) -> object:
        """Return the number of a namespace's bundles, and their hash boundaries."""
        bundles = (await self._context.policies(namespace_name(request))).bundles
        return {"boundaries": boundaries(bundles), "numBundles": bundles}

    @endpoint(
        "GET namespaces/{namespace}/topics?mode&includeSystemTopic", NamespaceOperation.GET_TOPICS
    )
    async def list_topics(self, request: web.Request) -> web.StreamResponse:
        """Return a namespace's topics selected by ``mode``, each partition separately."""
        namespace = namespace_name(request)
        mode = _mode(request.query.get("mode", ""))
        snapshot = await self._context.snapshot(namespace)
        sequences = snapshot.listing(mode).sequences
        if flag(request, "includeSystemTopic"):
            sequences = with_system_topics(snapshot, mode)
        return await self._context.listings.respond(request, sequences)

    @endpoint(
        "PUT namespaces/{namespace}",
        TenantOperation.CREATE_NAMESPACE,
        body=schemas.POLICIES,
        body_required=False,
        refused=(403,),
    )
    async def create(self, request: web.Request) -> None:
        """Create a namespace of an existing tenant."""
        body, namespace = await json_object(request), namespace_name(request)
        tenant = await self._context.store.tenant(namespace.tenant)
        if tenant is None:
            raise RestError(404, "Tenant does not exist")
        allowed = tenant.allowed_clusters or (self._context.config.cluster_name,)
        config = self._context.config
        policies = policies_of(body, namespace, allowed, config.default_number_of_namespace_bundles)
        document = document_of(body or {}, namespace, config)
        await self._check_room(namespace)
        if await self._context.store.policies(namespace) is None:
            # A broker killed during a deletion of the same name has not notified its peers.
            await self._context.ownership.namespaces_deleted([namespace])
        made = self._context.message_policies.create_namespace(namespace, policies, document)
        if not await made:
            raise RestError(409, "Namespace already exists")

    @endpoint("DELETE namespaces/{namespace}?force", TenantOperation.DELETE_NAMESPACE)
    async def delete(self, request: web.Request) -> None:
        """Delete a namespace; with ``force``, if the configuration allows, also its topics."""
        namespace = namespace_name(request)
        if flag(request, "force"):
            check_forced_deletion(self._context.config)
            deleted = await self.delete_with_topics(namespace)
        elif self._context.rules.forgets_non_persistent and await self._has_non_persistent_only(
            namespace
        ):
            deleted = await self.delete_with_topics(namespace)
        else:
            deleted = await self._delete(namespace)
        if not deleted:
            raise RestError(404, f"Namespace {namespace} does not exist.")

    async def delete_with_topics(self, *namespaces: NamespaceName) -> bool:
        """Delete namespaces with their topics and policies; return False if none exists."""
        lots = range(0, len(namespaces), NAMESPACES_AT_ONCE)
        deleted = [await self._delete_lot(namespaces[at : at + NAMESPACES_AT_ONCE]) for at in lots]
        return any(deleted)

    async def _delete_lot(self, namespaces: Sequence[NamespaceName]) -> bool:
        store = self._context.store
        there = [one for one in namespaces if await store.policies(one) is not None]
        # Names go last: a new owner of a name must not find data left by a kill halfway.
        async with self._context.messaging.deletion.emptied(there):
            await self._context.message_policies.forget_namespaces(there)
            found = list(await store.delete_all(there))
            # Repeated: a policy may have been set meanwhile.
            await self._context.message_policies.forget_namespaces(there)
        if found:
            await self._context.ownership.namespaces_deleted(found)
        return bool(found)

    async def _has_non_persistent_only(self, namespace: NamespaceName) -> bool:
        """Return True if a namespace has no persistent topic.

        Upstream ignores non-persistent topics.
        """
        snapshot = await self._context.store.snapshot(namespace)
        return snapshot is not None and not snapshot.persistent and not snapshot.partitioned

    async def _delete(self, namespace: NamespaceName) -> bool:
        try:
            deleted = await self._context.store.delete_namespace(namespace)
        except NamespaceNotEmptyError:
            raise RestError(409, "Cannot delete non empty namespace") from None
        if deleted:
            await self._context.message_policies.forget_namespaces([namespace])
            await self._context.ownership.namespaces_deleted([namespace])
        return deleted

    async def _check_room(self, namespace: NamespaceName) -> None:
        limit = self._context.config.max_namespaces_per_tenant
        if limit > 0:
            tenant = namespace.tenant
            namespaces = await self._context.store.namespaces(tenant)
            if self._context.rules.counts_namespaces_before:
                exceeded = len(namespaces) > limit
            else:
                exceeded = len(namespaces) >= limit and namespace not in namespaces
            if exceeded:
                reason = f"Exceed the maximum number of namespace in tenant :{tenant}"
                raise RestError(412, reason)


def check_forced_deletion(config: BrokerConfig) -> None:
    """Refuse to delete namespaces together with their topics, unless the configuration allows it.

    Raises:
        RestError: 405.
    """
    if not config.force_delete_namespace_allowed:
        raise RestError(405, "Broker doesn't allow forced deletion of namespaces")


def _mode(text: str) -> pb.CommandGetTopicsOfNamespace.Mode.ValueType:
    """Parse the query parameter ``mode``; as in Java, an unknown mode is answered 404."""
    try:
        return pb.CommandGetTopicsOfNamespace.Mode.Value(text or "PERSISTENT")
    except ValueError:
        raise RestError(
            404, f"mode={text[:40]!r} should be one of: PERSISTENT, NON_PERSISTENT, ALL"
        ) from None
