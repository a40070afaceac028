"""Brokers, and configuration that changes at run time: ``/admin/v2/brokers``.

Source: upstream BrokersBase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from broker.admin.lockouts import still_superuser
from broker.admin.paths import Endpoint
from broker.admin.requests import done, segment
from broker.authorization.operations import BrokerOperation, Level
from broker.stores.store_url import without_password
from proto.names import NamespaceName
from proto.version import FLOODGATE_VERSION
from server.cross_site import check_change
from server.http import JSON_TYPE, RestError, json_response
from server.seeing.audit import tell_change

if TYPE_CHECKING:
    from broker.admin.context import AdminContext

_PATH = "/admin/v2/brokers"
_CONFIGURATION = f"{_PATH}/configuration"
_METADATA = (
    "zookeeperServers",
    "configurationStoreServers",
    "metadataStoreUrl",
    "configurationMetadataStoreUrl",
)
_ASKED_FOR_HEALTH = NamespaceName.parse("public/default")


class BrokerAdmin:
    """Requests about this broker; every broker names itself as leader, a role without tasks."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    @Endpoint("GET", f"{_PATH}/leaderBroker", BrokerOperation.GET_LEADER_BROKER)
    async def leader(self, _: web.Request) -> web.Response:
        """Return this broker as the leader, with TLS if available (upstream: the same)."""
        urls = self._context.urls()
        url = urls.web_tls or urls.web
        return json_response({"serviceUrl": url, "brokerId": self._context.broker_id})

    @Endpoint("GET", f"{_PATH}/version", Level.AUTHENTICATED)
    async def version(self, _: web.Request) -> web.Response:
        """Return the version."""
        return _text(FLOODGATE_VERSION)

    @Endpoint("GET", f"{_PATH}/ready", Level.AUTHENTICATED)
    async def ready(self, _: web.Request) -> web.Response:
        """Report whether the broker serves clients; the usual path has a separate route."""
        if not self._context.urls().any_service:
            raise RestError(503, "the process is starting")
        return _text("ok")

    @Endpoint("GET", f"{_PATH}/health", BrokerOperation.HEALTH_CHECK)
    async def health(self, _: web.Request) -> web.Response:
        """Report whether clients are served, the store answers, and messages can be stored."""
        if not self._context.urls().any_service:
            raise RestError(503, "the process is starting")
        await self._context.store.policies(_ASKED_FOR_HEALTH)
        await self._context.messaging.store.flushed()
        return _text("ok")

    @Endpoint(
        "GET", f"{_PATH}/internal-configuration", BrokerOperation.GET_INTERNAL_CONFIGURATION_DATA
    )
    async def internals(self, _: web.Request) -> web.Response:
        """Return the metadata store's URL without password, under all of upstream's names."""
        url = without_password(self._context.config.metadata_store_url)
        return json_response({**dict.fromkeys(_METADATA, url), "ledgersRootPath": "/ledgers"})

    @Endpoint(
        "GET", f"{_PATH}/backlog-quota-check", BrokerOperation.CHECK_BACKLOG_QUOTA, done=(204,)
    )
    async def enforce_quotas(self, request: web.Request) -> web.Response:
        """Enforce exceeded backlog quotas immediately."""
        check_change(request)
        await self._context.messaging.monitors.enforce_quotas()
        tell_change(request)
        return done()

    # -- configuration ------------------------------------------------------------------------

    @Endpoint("GET", _CONFIGURATION, BrokerOperation.LIST_DYNAMIC_CONFIGURATIONS)
    async def dynamic_names(self, _: web.Request) -> web.Response:
        """Return the keys that can be changed at run time."""
        return json_response(self._context.dynamic.names)

    @Endpoint("GET", f"{_CONFIGURATION}/values", BrokerOperation.LIST_DYNAMIC_CONFIGURATIONS)
    async def dynamic_values(self, _: web.Request) -> web.Response:
        """Return the values set at run time."""
        return json_response(await self._context.dynamic.values())

    @Endpoint("GET", f"{_CONFIGURATION}/runtime", BrokerOperation.LIST_RUNTIME_CONFIGURATIONS)
    async def runtime_values(self, _: web.Request) -> web.Response:
        """Return every key with its effective value."""
        return json_response(self._context.dynamic.runtime())

    @Endpoint(
        "POST",
        f"{_CONFIGURATION}/{{key}}/{{value}}",
        BrokerOperation.UPDATE_DYNAMIC_CONFIGURATION,
        done=(200,),
    )
    async def set_value(self, request: web.Request) -> web.Response:
        """Set a value at run time; 200 without a body, as recorded."""
        key, value = segment(request, "key"), segment(request, "value")
        await self._context.dynamic.set(key, value, still_superuser(request))
        return done(200)

    @Endpoint(
        "DELETE",
        f"{_CONFIGURATION}/{{key}}",
        BrokerOperation.DELETE_DYNAMIC_CONFIGURATION,
        done=(200,),
    )
    async def delete_value(self, request: web.Request) -> web.Response:
        """Restore the file's value; 200 without a body, as recorded."""
        await self._context.dynamic.delete(segment(request, "key"), still_superuser(request))
        return done(200)


def _text(text: str) -> web.Response:
    # As recorded: plain text labelled as JSON.
    return web.Response(body=text.encode(), headers={"Content-Type": JSON_TYPE})
