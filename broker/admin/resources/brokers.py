"""Brokers, their bundles, and configuration that changes at run time: ``/admin/v2/brokers``.

Source: upstream BrokersBase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.lockouts import still_superuser
from broker.admin.paths import Resource, endpoint
from broker.admin.requests import asked_bundle, namespace_name, plain, segment
from broker.authorization.operations import BrokerOperation, Level
from broker.bundles import BundleRange, boundaries
from broker.ownership.ownership import Bundle, NotServedError, bundle_of_topic
from broker.stores.store_url import without_password
from proto.names import NamespaceName
from proto.version import FLOODGATE_VERSION
from server.cross_site import check_change
from server.http import RestError
from server.seeing.audit import tell_change
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

_METADATA = (
    "zookeeperServers",
    "configurationStoreServers",
    "metadataStoreUrl",
    "configurationMetadataStoreUrl",
)
_ASKED_FOR_HEALTH = NamespaceName.parse("public/default")


class BrokerAdmin(Resource):
    """Handlers of admin requests about this broker and its configuration.

    Every broker names itself as leader, a role without tasks.
    """

    @endpoint("GET brokers/leaderBroker", BrokerOperation.GET_LEADER_BROKER)
    async def leader(self, _: web.Request) -> object:
        """Return this broker as the cluster's leader, with its TLS address if available."""
        urls = self._context.urls()
        url = urls.web_tls or urls.web
        return {"serviceUrl": url, "brokerId": self._context.broker_id}

    @endpoint("GET brokers/version", Level.AUTHENTICATED)
    async def version(self, _: web.Request) -> object:
        """Return the broker's version."""
        return plain(FLOODGATE_VERSION)

    @endpoint("GET brokers/ready", Level.AUTHENTICATED)
    async def ready(self, _: web.Request) -> object:
        """Report whether the broker serves clients.

        The usual path for this has a separate route.
        """
        if not self._context.urls().any_service:
            raise RestError(503, "the process is starting")
        return plain("ok")

    @endpoint("GET brokers/health", BrokerOperation.HEALTH_CHECK)
    async def health(self, _: web.Request) -> object:
        """Report whether clients are served, the store answers, and messages can be stored."""
        if not self._context.urls().any_service:
            raise RestError(503, "the process is starting")
        await self._context.store.policies(_ASKED_FOR_HEALTH)
        await self._context.messaging.store.flushed()
        return plain("ok")

    @endpoint("GET brokers/internal-configuration", BrokerOperation.GET_INTERNAL_CONFIGURATION_DATA)
    async def internals(self, _: web.Request) -> object:
        """Return the metadata store's URL without its password, under all of upstream's names."""
        url = without_password(self._context.config.metadata_store_url)
        return {**dict.fromkeys(_METADATA, url), "ledgersRootPath": "/ledgers"}

    @endpoint("GET brokers/backlog-quota-check", BrokerOperation.CHECK_BACKLOG_QUOTA, done=(204,))
    async def enforce_quotas(self, request: web.Request) -> None:
        """Enforce backlog quotas now instead of at the next periodic check."""
        check_change(request)
        await self._context.messaging.monitors.check_quotas()
        tell_change(request)

    # -- configuration ------------------------------------------------------------------------

    @endpoint("GET brokers/configuration", BrokerOperation.LIST_DYNAMIC_CONFIGURATIONS)
    async def dynamic_names(self, _: web.Request) -> object:
        """Return the configuration keys that can be changed at run time."""
        return self._context.dynamic.names

    @endpoint("GET brokers/configuration/values", BrokerOperation.LIST_DYNAMIC_CONFIGURATIONS)
    async def dynamic_values(self, _: web.Request) -> object:
        """Return the configuration values set at run time."""
        return await self._context.dynamic.values()

    @endpoint("GET brokers/configuration/runtime", BrokerOperation.LIST_RUNTIME_CONFIGURATIONS)
    async def runtime_values(self, _: web.Request) -> object:
        """Return every configuration key with its effective value."""
        return self._context.dynamic.runtime()

    @endpoint(
        "POST brokers/configuration/{key}/{value}",
        BrokerOperation.UPDATE_DYNAMIC_CONFIGURATION,
        done=(200,),
    )
    async def set_value(self, request: web.Request) -> None:
        """Set a configuration value at run time.

        The response is 200 without a body, as recorded.
        """
        key, value = segment(request, "key"), segment(request, "value")
        await self._context.dynamic.set(key, value, still_superuser(request))

    @endpoint(
        "DELETE brokers/configuration/{key}",
        BrokerOperation.DELETE_DYNAMIC_CONFIGURATION,
        done=(200,),
    )
    async def delete_value(self, request: web.Request) -> None:
        """Remove a configuration value set at run time, and apply the file's value again.

        The response is 200 without a body, as recorded.
        """
        await self._context.dynamic.delete(segment(request, "key"), still_superuser(request))


_SHARED = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}


class OwnershipAdmin(Resource):
    """Handlers of admin requests about the brokers of a cluster and their bundles.

    Source: upstream BrokersBase, NamespacesBase.
    """

    @endpoint("GET brokers", BrokerOperation.LIST_BROKERS)
    @endpoint("GET brokers/{cluster}", BrokerOperation.LIST_BROKERS)
    async def list_brokers(self, _: web.Request) -> object:
        """Return the live brokers; as upstream, the cluster in the path is ignored."""
        return list(await self._context.ownership.brokers())

    @endpoint("GET brokers/{cluster}/{id}/ownedNamespaces", BrokerOperation.LIST_OWNED_NAMESPACES)
    async def list_owned(self, request: web.Request) -> object:
        """Return the bundles of this broker's loaded topics and of its heartbeat namespace."""
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
        """Close all topics of a namespace, and release its bundles on all brokers."""
        await self.let_go(namespace_name(request))

    async def let_go(self, namespace: NamespaceName) -> None:
        """Make the owners of all bundles of a namespace release them.

        Raises:
            RestError: The namespace does not exist, or an owner does not release its bundles.
        """
        count = await self._context.bundles(namespace)
        edges = [int(edge, 16) for edge in boundaries(count)]
        # The last boundary is the last hash, which belongs to the last bundle.
        highs = [*edges[1:-1], edges[-1] + 1]
        ranges = [BundleRange(low, high) for low, high in zip(edges, highs, strict=False)]
        await self._release(namespace, ranges)

    @endpoint("PUT namespaces/{namespace}/{bundle}/unload", Level.SUPERUSER)
    async def unload_bundle(self, request: web.Request) -> None:
        """Make the broker that owns a bundle close its topics and release the bundle."""
        namespace = namespace_name(request)
        hashes = asked_bundle(request, await self._context.bundles(namespace))
        await self._release(namespace, [hashes])

    async def _release(self, namespace: NamespaceName, ranges: Sequence[BundleRange]) -> None:
        try:
            for hashes in ranges:
                await self._context.ownership.release(Bundle(namespace, hashes))
        except NotServedError as error:
            raise RestError(503, error.message) from None
