"""The live brokers, their bundles, and the release of bundles.

Source: upstream BrokersBase, NamespacesBase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.paths import Resource, endpoint
from broker.admin.requests import asked_bundle, namespace_name, segment
from broker.authorization.operations import BrokerOperation, Level
from broker.bundles import BundleRange, boundaries
from broker.ownership.ownership import Bundle, NotServedError, bundle_of_topic
from server.http import RestError
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from proto.names import NamespaceName

_SHARED = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}


class OwnershipAdmin(Resource):
    """Requests about the brokers of a cluster and their bundles."""

    @endpoint("GET brokers", BrokerOperation.LIST_BROKERS)
    @endpoint("GET brokers/{cluster}", BrokerOperation.LIST_BROKERS)
    async def list_brokers(self, _: web.Request) -> object:
        """Return the live brokers; as upstream, the cluster's name is ignored."""
        return list(await self._context.ownership.brokers())

    @endpoint("GET brokers/{cluster}/{id}/ownedNamespaces", BrokerOperation.LIST_OWNED_NAMESPACES)
    async def list_owned(self, request: web.Request) -> object:
        """Return the bundles of this broker's loaded topics, and its heartbeat's bundle."""
        asked, own = segment(request, "id"), self._context.broker_id
        if asked not in await self._context.ownership.brokers():
            reason = f"Broker id '{asked[:100]}' not found in available brokers."
            raise RestError(404, reason)
        if asked != own:
            raise RestError(501, f"bundles of {asked[:100]}: not built here, ask that broker")
        owned = dict.fromkeys([f"pulsar/{own}/0x00000000_0xffffffff"])
        async for topic in in_turns(tuple(self._context.messaging.loaded_topics)):
            policies = await self._context.store.policies(topic.name.namespace)
            if policies is not None:
                owned[str(bundle_of_topic(topic.name, policies.bundles))] = None
        return dict.fromkeys(owned, _SHARED)

    @endpoint("PUT namespaces/{namespace}/unload", Level.SUPERUSER)
    async def unload_namespace(self, request: web.Request) -> None:
        """Close the topics of a namespace and release all bundles, on all brokers."""
        await self.let_go(namespace_name(request))

    async def let_go(self, namespace: NamespaceName) -> None:
        """Make the owners of all bundles of a namespace release them.

        Raises:
            RestError: The namespace does not exist, or an owner does not release.
        """
        count = await self._context.bundles(namespace)
        edges = [int(edge, 16) for edge in boundaries(count)]
        # The last boundary is the last hash, which belongs to the last bundle.
        highs = [*edges[1:-1], edges[-1] + 1]
        ranges = [BundleRange(low, high) for low, high in zip(edges, highs, strict=False)]
        await self._release(namespace, ranges)

    @endpoint("PUT namespaces/{namespace}/{bundle}/unload", Level.SUPERUSER)
    async def unload_bundle(self, request: web.Request) -> None:
        """Make the owner of a bundle release the bundle."""
        namespace = namespace_name(request)
        hashes = asked_bundle(request, await self._context.bundles(namespace))
        await self._release(namespace, [hashes])

    async def _release(self, namespace: NamespaceName, ranges: Sequence[BundleRange]) -> None:
        try:
            for hashes in ranges:
                await self._context.ownership.release(Bundle(namespace, hashes))
        except NotServedError as error:
            raise RestError(503, error.message) from None
