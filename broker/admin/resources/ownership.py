"""The live brokers, their bundles, and the release of bundles.

Source: upstream BrokersBase, NamespacesBase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import done, namespace_name, segment
from broker.authorization.operations import BrokerOperation, Level
from broker.bundles import BundleRange, boundaries, bundle_named
from broker.ownership.ownership import Bundle, NotServedError, bundle_of_topic
from broker.topics.rules import no_namespace
from server.http import RestError, json_response
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from broker.admin.context import AdminContext
    from proto.names import NamespaceName

_BROKERS = "/admin/v2/brokers"
_SHARED = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"


class OwnershipAdmin:
    """Requests about the brokers of a cluster and their bundles."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    @Endpoint("GET", _BROKERS, BrokerOperation.LIST_BROKERS)
    @Endpoint("GET", f"{_BROKERS}/{{cluster}}", BrokerOperation.LIST_BROKERS)
    async def list_brokers(self, _: web.Request) -> web.Response:
        """Return the live brokers; as upstream, the cluster's name is ignored."""
        return json_response(list(await self._context.ownership.brokers()))

    @Endpoint(
        "GET",
        f"{_BROKERS}/{{cluster}}/{{id}}/ownedNamespaces",
        BrokerOperation.LIST_OWNED_NAMESPACES,
    )
    async def list_owned(self, request: web.Request) -> web.Response:
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
        return json_response(dict.fromkeys(owned, _SHARED))

    @Endpoint("PUT", f"{_NAMESPACE}/unload", Level.SUPERUSER, Takes.APPLICATION_JSON)
    async def unload_namespace(self, request: web.Request) -> web.Response:
        """Close the topics of a namespace and release all bundles, on all brokers."""
        await self.let_go(namespace_name(request))
        return done()

    async def let_go(self, namespace: NamespaceName) -> None:
        """Make the owners of all bundles of a namespace release them.

        Raises:
            RestError: The namespace does not exist, or an owner does not release.
        """
        count = await self._bundles(namespace)
        edges = [int(edge, 16) for edge in boundaries(count)]
        # The last boundary is the last hash, which belongs to the last bundle.
        highs = [*edges[1:-1], edges[-1] + 1]
        ranges = [BundleRange(low, high) for low, high in zip(edges, highs, strict=False)]
        await self._release(namespace, ranges)

    @Endpoint("PUT", f"{_NAMESPACE}/{{bundle}}/unload", Level.SUPERUSER, Takes.APPLICATION_JSON)
    async def unload_bundle(self, request: web.Request) -> web.Response:
        """Make the owner of a bundle release the bundle."""
        namespace = namespace_name(request)
        text = segment(request, "bundle")
        hashes = bundle_named(text, await self._bundles(namespace))
        if hashes is None:
            raise RestError(412, f"Invalid bundle range: {text[:100]}")
        await self._release(namespace, [hashes])
        return done()

    async def _bundles(self, namespace: NamespaceName) -> int:
        policies = await self._context.store.policies(namespace)
        if policies is None:
            raise no_namespace()
        return policies.bundles

    async def _release(self, namespace: NamespaceName, ranges: Sequence[BundleRange]) -> None:
        try:
            for hashes in ranges:
                await self._context.ownership.release(Bundle(namespace, hashes))
        except NotServedError as error:
            raise RestError(503, error.message) from None
