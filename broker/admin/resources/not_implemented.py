"""Calls of Pulsar's admin that are not implemented here: 501 with a sentence.

A topic or namespace that does not exist is answered 404 first, as upstream does.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from broker.admin.paths import Endpoint
from broker.admin.requests import namespace_name, segment, topic_name
from broker.authorization.operations import BrokerOperation, ClusterOperation, Level, PolicyName
from broker.bundles import bundle_named
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web

    from broker.admin.context import AdminContext
    from broker.admin.resources.topics import TopicAdmin

_PATHS = "not_implemented.txt"
_OF_SUPERUSERS = ("migration", "split")
"""Last parts of the listed paths that not even a tenant's admins may call."""
_CHANGES = ("PUT", "POST", "DELETE")
_METHODS = ("GET", *_CHANGES)
_ROOTS = (
    "bookies",
    "broker-stats",
    "resource-quotas",
    "resourcegroups",
)
"""Parts of Pulsar that have a path of their own below ``/admin/v2``."""
_CLUSTER_PARTS = (
    "failureDomains",
    "failureDomains/{name}",
    "migrate",
    "namespaceIsolationPolicies",
    "namespaceIsolationPolicies/{name}",
    "namespaceIsolationPolicies/brokers/{broker}",
    "peers",
)


class NotImplementedAdmin:
    """Calls that are not implemented."""

    def __init__(self, context: AdminContext, topics: TopicAdmin) -> None:
        self._context = context
        self._topics = topics

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints, with upstream's methods where implemented paths lie beside them."""
        superuser = Level.SUPERUSER
        path = "/admin/v2/brokers/shutdown"
        found = [Endpoint("POST", path, self.of_brokers, BrokerOperation.SHUTDOWN)]
        cluster = "/admin/v2/clusters/{cluster}"
        changes = (
            ("PUT", ClusterOperation.CREATE_CLUSTER),
            ("POST", ClusterOperation.UPDATE_CLUSTER),
            ("DELETE", ClusterOperation.DELETE_CLUSTER),
        )
        found += [Endpoint(one, cluster, self.of_clusters, needs) for one, needs in changes]
        for path, methods in _listed_paths():
            handler = self.of_topic if path.startswith("{domain}") else self.of_namespace
            is_policy = "{tenant}" in path and not path.endswith(_OF_SUPERUSERS)
            needs = PolicyName.ALL if is_policy else superuser
            found += [Endpoint(method, f"/admin/v2/{path}", handler, needs) for method in methods]
        for root in _ROOTS:
            path = f"/admin/v2/{root}"
            for method in _CHANGES if root == "resourcegroups" else _METHODS:
                found.append(Endpoint(method, f"{path}/{{rest}}", self.of_root, superuser))
        for part in _CLUSTER_PARTS:
            path = f"/admin/v2/clusters/{{cluster}}/{part}"
            found += [Endpoint(method, path, self.of_clusters, superuser) for method in _CHANGES]
        return found

    async def of_topic(self, request: web.Request) -> web.Response:
        """Refuse a call about messages or policies of a topic that exists."""
        await self._topics.check_exists(topic_name(request))
        raise _not_implemented(f"{request.path.split('/', 7)[-1]} of topics")

    async def of_namespace(self, request: web.Request) -> web.Response:
        """Refuse a call about policies of a namespace that exists."""
        if "namespace" in request.match_info:
            await self._check_namespace(request)
        raise _not_implemented(f"{request.path.split('/', 6)[-1]} of namespaces")

    async def _check_namespace(self, request: web.Request) -> None:
        policies = await self._context.policies(namespace_name(request))
        if "bundle" in request.match_info:
            text = segment(request, "bundle")
            if bundle_named(text, policies.bundles) is None:
                raise RestError(412, f"Invalid bundle range: {text[:100]}")

    async def of_root(self, request: web.Request) -> web.Response:
        """Refuse a call about another part of Pulsar."""
        raise _not_implemented(request.path.split("/")[3])

    async def of_clusters(self, _: web.Request) -> web.Response:
        """Refuse to change clusters."""
        raise _not_implemented("more than the one cluster")

    async def of_brokers(self, request: web.Request) -> web.Response:
        """Refuse a call about load balancing or storage."""
        raise _not_implemented(request.path.rpartition("/")[2])


def _not_implemented(what: str) -> RestError:
    return RestError(501, f"{what[:100]}: not built here")


def _listed_paths() -> Iterator[tuple[str, list[str]]]:
    """Yield paths below ``/admin/v2`` that are not implemented, with their methods."""
    text = resources.files(__package__).joinpath(_PATHS).read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            path, methods = line.split()
            yield path, methods.split(",")
