"""The brokers that live, the bundles that they serve, and those that are to be let go.

Source: upstream BrokersBase, NamespacesBase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import done, namespace_name, segment
from broker.authorization.operations import BrokerOperation, Level
from broker.bundles import BundleRange, boundaries, bundle_named
from broker.ownership.ownership import Bundle, NotServedError
from broker.topics.rules import no_namespace
from server.http import RestError, json_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from broker.admin.context import AdminContext
    from proto.names import NamespaceName

_BROKERS = "/admin/v2/brokers"
_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"


class OwnershipAdmin:
    """Requests about the brokers of a cluster and their bundles."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints."""
        takes = Takes.APPLICATION_JSON
        return [
            Endpoint("GET", _BROKERS, self.list_brokers, BrokerOperation.LIST_BROKERS),
            Endpoint(
                "GET", f"{_BROKERS}/{{cluster}}", self.list_brokers, BrokerOperation.LIST_BROKERS
            ),
            Endpoint("PUT", f"{_NAMESPACE}/unload", self.unload_namespace, Level.SUPERUSER, takes),
            Endpoint(
                "PUT", f"{_NAMESPACE}/{{bundle}}/unload", self.unload_bundle, Level.SUPERUSER, takes
            ),
        ]

    async def list_brokers(self, _: web.Request) -> web.Response:
        """Return the brokers that live; as upstream, whatever cluster is named."""
        return json_response(list(await self._context.ownership.brokers()))

    async def unload_namespace(self, request: web.Request) -> web.Response:
        """Have the owners of all bundles of a namespace let them go, with their topics closed."""
        namespace = namespace_name(request)
        count = await self._bundles(namespace)
        edges = [int(edge, 16) for edge in boundaries(count)]
        # The last edge is written as the last hash, which belongs to its bundle.
        highs = [*edges[1:-1], edges[-1] + 1]
        ranges = [BundleRange(low, high) for low, high in zip(edges, highs, strict=False)]
        await self._release(namespace, ranges)
        return done()

    async def unload_bundle(self, request: web.Request) -> web.Response:
        """Have the owner of a bundle let it go."""
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
