"""HTTP paths that the proxy forwards: ``/admin`` and ``/lookup`` to brokers, and configured ones.

Source: upstream ProxyServiceStarter.addWebServerHandlers. Differs: a proxy answers for its own
readiness and limiter under paths below ``/admin``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from server.front_page import Place
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from proxy.config import ReverseProxy
    from proxy.forwarding.forwarder import Forwarder

FORWARDED = ("/admin", "/lookup")
PLACES = (
    Place("/admin/v2/tenants", "Pulsar's admin REST, forwarded to a broker"),
    Place("/lookup/v2/topic/persistent/{tenant}/{namespace}/{topic}", "the broker of a topic, too"),
)


def forwarding_routes(
    forwarder: Forwarder, broker_web_service_url: str, others: tuple[ReverseProxy, ...]
) -> list[web.RouteDef]:
    """Return the HTTP routes whose requests the proxy forwards.

    Args:
        forwarder: Forwards requests.
        broker_web_service_url: brokerWebServiceURL; empty refuses requests for a broker.
        others: The paths of other servers.
    """

    async def to_broker(request: web.Request) -> web.StreamResponse:
        if not broker_web_service_url:
            raise RestError(
                404, "this proxy forwards no admin requests: set its brokerWebServiceURL"
            )
        return await forwarder.forward(request, broker_web_service_url, "")

    routes: list[web.RouteDef] = []
    for path in FORWARDED:
        routes += _below(path, to_broker)
    for other in others:
        routes += _below(other.path, _to_server(forwarder, other))
    return routes


def _to_server(
    forwarder: Forwarder, other: ReverseProxy
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def forward(request: web.Request) -> web.StreamResponse:
        return await forwarder.forward(
            request, other.proxy_to, other.path, with_credentials=other.forwards_credentials
        )

    return forward


def _below(
    path: str, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> list[web.RouteDef]:
    return [web.route("*", path, handler), web.route("*", f"{path}/{{rest:.*}}", handler)]
