"""Calls of Pulsar's admin without an implementation: 501 with a sentence.

As upstream, a missing namespace is answered 404 first.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from broker.admin.paths import Resource, Takes, endpoint
from broker.admin.requests import asked_bundle, namespace_name
from broker.authorization.operations import BrokerOperation, ClusterOperation, Level, PolicyName
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web

    from broker.admin.paths import Endpoint

_PATHS = "not_implemented.txt"
_OF_SUPERUSERS = ("migration", "split")
"""Last parts of the listed paths for superusers only, excluding a tenant's admins."""


class NotImplementedAdmin(Resource):
    """Calls without an implementation."""

    def endpoints(self) -> Iterator[Endpoint]:
        """Yield the endpoints, with upstream's methods where implemented paths are adjacent."""
        yield from super().endpoints()
        handlers = {"namespaces": self.of_namespace, "clusters": self.of_clusters}
        for path, methods in _listed_paths():
            handler = handlers.get(path.partition("/")[0], self.of_root)
            is_policy = path.startswith("namespaces/{namespace}") and not path.endswith(
                _OF_SUPERUSERS
            )
            needs = PolicyName.ALL if is_policy else Level.SUPERUSER
            for method in methods:
                request = f"{method} {path}"
                yield endpoint(request, needs, Takes.NOTHING, built=False, handler=handler)

    async def of_namespace(self, request: web.Request) -> None:
        """Refuse a call about policies of an existing namespace."""
        if "namespace" in request.match_info:
            policies = await self._context.policies(namespace_name(request))
            if "bundle" in request.match_info:
                asked_bundle(request, policies.bundles)
        raise _not_implemented(f"{request.path.split('/', 6)[-1]} of namespaces")

    async def of_root(self, request: web.Request) -> None:
        """Refuse a call about another part of Pulsar."""
        raise _not_implemented(request.path.split("/")[3])

    @endpoint("PUT clusters/{cluster}", ClusterOperation.CREATE_CLUSTER, built=False)
    @endpoint("POST clusters/{cluster}", ClusterOperation.UPDATE_CLUSTER, built=False)
    @endpoint("DELETE clusters/{cluster}", ClusterOperation.DELETE_CLUSTER, built=False)
    async def of_clusters(self, _: web.Request) -> None:
        """Refuse to change clusters."""
        raise _not_implemented("more than the one cluster")

    @endpoint("POST brokers/shutdown", BrokerOperation.SHUTDOWN, built=False)
    async def of_brokers(self, request: web.Request) -> None:
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
