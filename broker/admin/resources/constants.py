"""Admin requests with a constant response: features that are disabled or empty here.

Source: recorded from a real broker without load, as its standalone starts it.
"""

from __future__ import annotations

from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from broker.admin.paths import Resource, Takes, endpoint, given
from broker.admin.requests import asked_bundle, namespace_name, segment
from broker.authorization.operations import (
    BrokerOperation,
    ClusterOperation,
    ClusterPolicyOperation,
    Level,
    PolicyName,
)
from broker.policies.policy import NO_NAMESPACE
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web

    from broker.admin.paths import Endpoint
    from broker.authorization.operations import Needs


class Constant(NamedTuple):
    """Admin paths with the same constant response.

    Attributes:
        paths: Lines that each have a path below ``/admin`` and its HTTP methods.
        answer: The body of the response, None for an empty body; for an error its text, with path
            variables in braces.
        status: The HTTP status.
        needs: The required permission.
        elsewhere: Status and error text for a missing namespace or a foreign cluster; None if the
            response is the same.
    """

    paths: str
    answer: object = None
    status: int = 200
    needs: Needs = Level.SUPERUSER
    elsewhere: tuple[int, str] | None = None


_NO_CLUSTER = "Cluster {cluster} does not exist."
_NO_ISOLATION = "NamespaceIsolationPolicies for cluster {cluster} does not exist"
_QUOTA = {
    "msgRateIn": 40.0,
    "msgRateOut": 120.0,
    "bandwidthIn": 100_000.0,
    "bandwidthOut": 300_000.0,
    "memory": 80.0,
    "dynamic": True,
}
"""Upstream's default resource quota of a bundle, which has no effect here."""
_OF_FUNCTIONS = "".join(
    f"""
    {root}/{{tenant}}/{{namespace}} GET
    {root}/{{tenant}}/{{namespace}}/{{name}} GET,POST,PUT,DELETE
    {root}/{{tenant}}/{{namespace}}/{{name}}/{{rest}} GET,POST,PUT,DELETE
    """
    for root in ("v3/functions", "v3/sinks", "v3/sources", "v2/functions")
)
CONSTANTS = (
    # Disabled parts, refused to every authenticated client.
    Constant(
        f"""
        {_OF_FUNCTIONS}
        v3/functions/connectors GET
        v2/functions/connectors GET
        v3/sinks/builtinsinks GET
        v3/sources/builtinsources GET
        v2/worker/{{rest}} GET,POST,PUT,DELETE
        v2/worker-stats/{{rest}} GET
        """,
        "Pulsar Function Worker is not enabled, probably functionsWorkerEnabled is set to false",
        409,
        Level.AUTHENTICATED,
    ),
    Constant(
        """
        v3/transactions/coordinators GET
        v3/transactions/coordinatorStats GET
        v3/transactions/coordinatorInternalStats/{id} GET
        v3/transactions/slowTransactions/{timeout} GET
        v3/transactions/transactionMetadata/{most}/{least} GET
        v3/transactions/transactionBufferStats/{tenant}/{namespace}/{topic} GET
        v3/transactions/transactionInBufferStats/{tenant}/{namespace}/{topic}/{most}/{least} GET
        v3/transactions/pendingAckStats/{tenant}/{namespace}/{topic}/{subName} GET
        v3/transactions/pendingAckInternalStats/{tenant}/{namespace}/{topic}/{subName} GET
        v3/transactions/transactionInPendingAckStats/{rest} GET
        v3/transactions/transactionCoordinator/replicas POST
        v3/transactions/abortTransaction/{most}/{least} POST
        """,
        "This Broker is not configured with transactionCoordinatorEnabled=true.",
        503,
        Level.AUTHENTICATED,
    ),
    Constant(
        "v2/namespaces/{tenant}/{namespace}/resourcegroup GET",
        needs=PolicyName.RESOURCEGROUP,
        elsewhere=(404, NO_NAMESPACE),
    ),
    Constant(
        "v2/clusters/{cluster}/peers GET",
        needs=ClusterOperation.GET_PEER_CLUSTER,
        elsewhere=(404, "Cluster does not exist"),
    ),
    Constant(
        "v2/clusters/{cluster}/failureDomains GET", {}, needs=ClusterOperation.GET_FAILURE_DOMAIN
    ),
    Constant(
        "v2/clusters/{cluster}/failureDomains/{name} GET",
        "Domain {name} for cluster {cluster} does not exist",
        404,
        ClusterOperation.GET_FAILURE_DOMAIN,
        (412, _NO_CLUSTER),
    ),
    Constant(
        "v2/clusters/{cluster}/namespaceIsolationPolicies GET",
        _NO_ISOLATION,
        404,
        ClusterPolicyOperation.READ,
        (404, _NO_CLUSTER),
    ),
    Constant(
        """
        v2/clusters/{cluster}/namespaceIsolationPolicies/{name} GET
        v2/clusters/{cluster}/namespaceIsolationPolicies/brokers/{broker} GET
        """,
        _NO_ISOLATION,
        404,
        ClusterPolicyOperation.READ,
        (412, _NO_CLUSTER),
    ),
    Constant(
        "v2/clusters/{cluster}/migrate GET",
        "Cluster does not exist",
        404,
        ClusterPolicyOperation.READ,
    ),
    Constant("v2/resource-quotas GET", _QUOTA),
    Constant("v2/resourcegroups GET", []),
    Constant("v2/resourcegroups/{name} GET", "ResourceGroup does not exist", 404),
    Constant("v2/bookies/racks-info GET", {}),
    Constant(
        "v2/bookies/racks-info/{name} GET",
        "Bookie rack placement configuration not found: {name}",
        404,
    ),
    Constant(
        "v2/broker-stats/broker-resource-availability/{tenant}/{namespace} GET",
        "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerWrapper does not support "
        "this operation",
        409,
    ),
)
_PACKAGE_KINDS = ("function", "sink", "source")
_PACKAGES = """
    v3/packages/{type}/{tenant}/{namespace} GET
    v3/packages/{type}/{tenant}/{namespace}/{name} GET
    v3/packages/{type}/{tenant}/{namespace}/{name}/{version} GET,POST,DELETE
    v3/packages/{type}/{tenant}/{namespace}/{name}/{version}/metadata GET,PUT
    """


def _requests(paths: str) -> Iterator[str]:
    """Yield requests like ``GET /admin/path`` from a text of paths followed by their methods."""
    words = paths.split()
    for path, methods in zip(words[::2], words[1::2], strict=True):
        for method in methods.split(","):
            yield f"{method} /admin/{path}"


class ConstantAdmin(Resource):
    """Handlers of admin requests about features of Pulsar that are disabled or empty here."""

    def endpoints(self) -> Iterator[Endpoint]:
        """Yield the endpoints declared here, then those with constant responses."""
        for request in _requests(_PACKAGES):
            yield endpoint(request, Level.AUTHENTICATED, handler=self.package)
        yield from super().endpoints()
        for one in CONSTANTS:
            handler = given(self._answer, one)
            for request in _requests(one.paths):
                yield endpoint(request, one.needs, Takes.NOTHING, handler=handler)

    async def _answer(self, constant: Constant, request: web.Request) -> object:
        """Return the constant response of a Pulsar feature that is disabled or unused here."""
        if constant.elsewhere and not await self._is_here(request):
            raise _refusal(request, *constant.elsewhere)
        if constant.status != HTTPStatus.OK:
            raise _refusal(request, constant.status, str(constant.answer))
        return constant.answer

    async def _is_here(self, request: web.Request) -> bool:
        if "cluster" in request.match_info:
            return segment(request, "cluster") == self._context.config.cluster_name
        return await self._context.store.policies(namespace_name(request)) is not None

    async def package(self, request: web.Request) -> None:
        """Refuse a request about packages: package management is disabled."""
        kind = segment(request, "type")
        if kind not in _PACKAGE_KINDS:
            raise RestError(412, f"Invalid package domain: '{kind[:100]}'")
        raise RestError(503, "Package Management Service is not enabled in the broker.")

    @endpoint("GET resource-quotas/{tenant}/{namespace}/{bundle}", Level.SUPERUSER)
    async def quota(self, request: web.Request) -> object:
        """Return the resource quota of a bundle, the same for all bundles."""
        policies = await self._context.store.policies(namespace_name(request))
        # A missing namespace has a single bundle (recorded).
        asked_bundle(request, 1 if policies is None else policies.bundles)
        return _QUOTA

    @endpoint("GET broker-stats/topics", Level.SUPERUSER)
    async def statistics(self, _: web.Request) -> object:
        """Return empty statistics while no topic is loaded; otherwise refuse."""
        if len(self._context.messaging.loaded_topics):
            raise RestError(501, "statistics of all topics: not built here, ask for each topic's")
        return {}


def _refusal(request: web.Request, status: int, sentence: str) -> RestError:
    named = {name: segment(request, name)[:100] for name in request.match_info if name != "rest"}
    return RestError(status, sentence.format_map(named))


_PATHS = "not_implemented.txt"
_OF_SUPERUSERS = ("migration", "split")
"""Last parts of the listed paths for superusers only, excluding a tenant's admins."""


class NotImplementedAdmin(Resource):
    """Handlers that refuse admin requests not implemented by this broker.

    As upstream, a missing namespace is answered 404 first.
    """

    def endpoints(self) -> Iterator[Endpoint]:
        """Yield the endpoints declared here, then those of all unimplemented paths."""
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
        """Refuse a request about a feature of namespaces that is not implemented."""
        if "namespace" in request.match_info:
            policies = await self._context.policies(namespace_name(request))
            if "bundle" in request.match_info:
                asked_bundle(request, policies.bundles)
        raise _not_implemented(f"{request.path.split('/', 6)[-1]} of namespaces")

    async def of_root(self, request: web.Request) -> None:
        """Refuse a request about a feature of Pulsar that is not implemented."""
        raise _not_implemented(request.path.split("/")[3])

    @endpoint("PUT clusters/{cluster}", ClusterOperation.CREATE_CLUSTER, built=False)
    @endpoint("POST clusters/{cluster}", ClusterOperation.UPDATE_CLUSTER, built=False)
    @endpoint("DELETE clusters/{cluster}", ClusterOperation.DELETE_CLUSTER, built=False)
    async def of_clusters(self, _: web.Request) -> None:
        """Refuse to create, change or delete clusters."""
        raise _not_implemented("more than the one cluster")

    @endpoint("POST brokers/shutdown", BrokerOperation.SHUTDOWN, built=False)
    async def of_brokers(self, request: web.Request) -> None:
        """Refuse to shut the broker down by REST."""
        raise _not_implemented(request.path.rpartition("/")[2])


def _not_implemented(what: str) -> RestError:
    return RestError(501, f"{what[:100]}: not built here")


def _listed_paths() -> Iterator[tuple[str, list[str]]]:
    """Yield the paths below ``/admin/v2`` that are not implemented, with their methods."""
    text = resources.files(__package__).joinpath(_PATHS).read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            path, methods = line.split()
            yield path, methods.split(",")
