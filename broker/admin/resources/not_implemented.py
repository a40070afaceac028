"""Calls of Pulsar's admin without an implementation: 501 with a sentence.

As upstream, a missing topic or namespace is answered 404 first.
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
    from broker.admin.paths import Handler
    from broker.admin.resources.topics import TopicAdmin
    from broker.authorization.operations import Needs

_PATHS = "not_implemented.txt"
_OF_SUPERUSERS = ("migration", "split")
"""Last parts of the listed paths for superusers only, excluding a tenant's admins."""
_CHANGES = ("PUT", "POST", "DELETE")
_METHODS = ("GET", *_CHANGES)
_ROOTS = (
    "bookies",
    "broker-stats",
    "resource-quotas",
    "resourcegroups",
)
"""Parts of Pulsar with paths of their own below ``/admin/v2``."""
_CLUSTER = "/admin/v2/clusters/{cluster}"
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
    """Calls without an implementation."""

    def __init__(self, context: AdminContext, topics: TopicAdmin) -> None:
        self._context = context
        self._topics = topics

    def listed(self) -> Iterator[Endpoint]:
        """Yield the endpoints, with upstream's methods where implemented paths are adjacent."""
        for path, methods in _listed_paths():
            handler = self.of_topic if path.startswith("{domain}") else self.of_namespace
            is_policy = "{tenant}" in path and not path.endswith(_OF_SUPERUSERS)
            needs = PolicyName.ALL if is_policy else Level.SUPERUSER
            for method in methods:
                yield _refused(method, path, needs, handler)
        for root in _ROOTS:
            for method in _CHANGES if root == "resourcegroups" else _METHODS:
                yield _refused(method, f"{root}/{{rest}}", Level.SUPERUSER, self.of_root)
        for part in _CLUSTER_PARTS:
            for method in _CHANGES:
                path = f"clusters/{{cluster}}/{part}"
                yield _refused(method, path, Level.SUPERUSER, self.of_clusters)

    async def of_topic(self, request: web.Request) -> web.Response:
        """Refuse a call about messages or policies of an existing topic."""
        await self._topics.check_exists(topic_name(request))
        raise _not_implemented(f"{request.path.split('/', 7)[-1]} of topics")

    async def of_namespace(self, request: web.Request) -> web.Response:
        """Refuse a call about policies of an existing namespace."""
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

    @Endpoint("PUT", _CLUSTER, ClusterOperation.CREATE_CLUSTER, built=False)
    @Endpoint("POST", _CLUSTER, ClusterOperation.UPDATE_CLUSTER, built=False)
    @Endpoint("DELETE", _CLUSTER, ClusterOperation.DELETE_CLUSTER, built=False)
    async def of_clusters(self, _: web.Request) -> web.Response:
        """Refuse to change clusters."""
        raise _not_implemented("more than the one cluster")

    @Endpoint("POST", "/admin/v2/brokers/shutdown", BrokerOperation.SHUTDOWN, built=False)
    async def of_brokers(self, request: web.Request) -> web.Response:
        """Refuse a call about load balancing or storage."""
        raise _not_implemented(request.path.rpartition("/")[2])


def _not_implemented(what: str) -> RestError:
    return RestError(501, f"{what[:100]}: not built here")


def _listed_paths() -> Iterator[tuple[str, list[str]]]:
    """Yield paths below ``/admin/v2`` without an implementation, with their methods."""
    text = resources.files(__package__).joinpath(_PATHS).read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            path, methods = line.split()
            yield path, methods.split(",")


def _refused(method: str, path: str, needs: Needs, handler: Handler) -> Endpoint:
    return Endpoint(method, f"/admin/v2/{path}", needs, built=False, handler=handler)
