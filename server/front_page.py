"""Front page of a web port (``GET /``): a list of the port's paths, as plain text.

Differs: upstream returns 404.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from proto.version import VERSION
from server.limiter_report.routes import LIMITER_PATH
from server.seeing.connections import CONNECTIONS_PATH
from server.seeing.openapi import OPENAPI_PATH
from server.seeing.page import PAGE_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from server.configuration.common import ServerConfig


class Place(NamedTuple):
    """A path of the web port and its description; braces mark variables."""

    path: str
    what: str


SHARED_PLACES = (
    Place("/metrics/", "metrics for Prometheus; OpenMetrics on request"),
    Place("/admin/v2/brokers/ready", "health: ok, or 503 before the start and in the drain"),
    Place(PAGE_PATH, "a page for people: connections, budgets with holders and waiters, live"),
    Place(CONNECTIONS_PATH, "the connections and their states"),
    Place(OPENAPI_PATH, "a description of these paths for programs: OpenAPI"),
    Place(LIMITER_PATH, "the limiter's ledger: the holders of memory; ?format=table for people"),
)


def front_page_route(
    role: str, config: ServerConfig, state: Callable[[], str], places: Iterable[Place]
) -> web.RouteDef:
    """Return the route ``GET /`` of a server.

    Args:
        role: broker or proxy.
        config: Has the names of cluster and profile.
        state: Returns the readiness and the address for clients.
        places: Paths besides SHARED_PLACES.
    """
    all_places = (*SHARED_PLACES, *places)
    width = max(len(place.path) for place in all_places)
    listed = "".join(f"{place.path:{width}}  {place.what}\n" for place in all_places)
    cluster, profile = config.cluster_name, config.profile.value
    who = f"Floodgate {VERSION}: {role} of cluster {cluster}, profile {profile}"

    async def front_page(_: web.Request) -> web.Response:
        return web.Response(text=f"{who}\n{state()}\n\n{listed}")

    return web.get("/", front_page)
