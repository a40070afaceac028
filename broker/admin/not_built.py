"""Calls of Pulsar's admin that concern parts which are not built here: 501 with a sentence.

What does not exist is answered 404 first, as upstream does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.requests import namespace_name, routes, segment, topic_name
from broker.admin.topics import NO_NAMESPACE, TOPIC, TopicAdmin
from server.http import RestError

if TYPE_CHECKING:
    from aiohttp import web

    from broker.admin.admin_parts import AdminParts

_SCHEMAS = "/admin/v2/schemas/{tenant}/{namespace}/{topic:[^/]+}/schema"
_METHODS = ("GET", "PUT", "POST", "DELETE")
_ROOTS = (
    "bookies",
    "broker-stats",
    "functions",
    "packages",
    "proxy-stats",
    "resource-quotas",
    "resourcegroups",
    "schemas",
    "sinks",
    "sources",
    "transactions",
    "worker",
    "worker-stats",
)
"""Parts of Pulsar that have a path of their own below ``/admin/v2``."""


class NotBuiltAdmin:
    """Says what is not built.

    Args:
        parts: What handlers work with.
        topics: Knows which topics exist.
    """

    def __init__(self, parts: AdminParts, topics: TopicAdmin) -> None:
        self._parts = parts
        self._topics = topics

    def routes(self) -> list[web.RouteDef]:
        """Return the routes; they come after those that are built."""
        namespace = "/admin/v2/namespaces/{tenant}/{namespace}/{part}"
        roots = f"/admin/v2/{{root:{'|'.join(_ROOTS)}}}"
        found = routes(("GET", _SCHEMAS, self.schema), ("GET", f"{_SCHEMAS}/{{v}}", self.schema))
        for method in _METHODS:
            found += routes(
                (method, f"{TOPIC}/{{part}}", self.of_topic),
                (method, f"{TOPIC}/{{part}}/{{rest:.+}}", self.of_topic),
                (method, namespace, self.of_namespace),
                (method, f"{namespace}/{{rest:.+}}", self.of_namespace),
                (method, roots, self.of_root),
                (method, f"{roots}/{{rest:.+}}", self.of_root),
                (method, "/admin/v2/clusters/{cluster}/{rest:.+}", self.of_clusters),
                (method, "/admin/v2/brokers/{cluster}/{rest:.+}", self.of_brokers),
            )
        found += routes(
            ("GET", "/admin/v2/brokers/internal-configuration", self.of_brokers),
            ("GET", "/admin/v2/brokers/backlog-quota-check", self.of_brokers),
            ("PUT", "/admin/v2/clusters/{cluster}", self.of_clusters),
            ("POST", "/admin/v2/clusters/{cluster}", self.of_clusters),
            ("DELETE", "/admin/v2/clusters/{cluster}", self.of_clusters),
        )
        return found

    async def of_topic(self, request: web.Request) -> web.Response:
        """Refuse what concerns the messages or policies of a topic that exists."""
        await self._topics.check_exists(topic_name(request))
        raise _not_built(f"{segment(request, 'part')} of topics")

    async def of_namespace(self, request: web.Request) -> web.Response:
        """Refuse what concerns the policies of a namespace that exists."""
        if await self._parts.store.policies(namespace_name(request)) is None:
            raise RestError(404, NO_NAMESPACE)
        raise _not_built(f"{segment(request, 'part')} of namespaces")

    async def of_root(self, request: web.Request) -> web.Response:
        """Refuse what concerns another part of Pulsar."""
        raise _not_built(segment(request, "root"))

    async def of_clusters(self, _: web.Request) -> web.Response:
        """Refuse to change clusters."""
        raise _not_built("more than the one cluster")

    async def of_brokers(self, request: web.Request) -> web.Response:
        """Refuse what concerns load balancing and storage."""
        raise _not_built(request.path.rpartition("/")[2])

    async def schema(self, _: web.Request) -> web.Response:
        """Say that a topic has no schema, which is true of all: clients ask before they read."""
        raise RestError(404, "Schema not found")


def _not_built(what: str) -> RestError:
    return RestError(501, f"{what[:100]}: not built here, Floodgate lists topics only")
