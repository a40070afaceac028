"""Calls of Pulsar's admin with a constant answer: disabled parts, and empty collections.

Source: recorded from a real broker without load, as its standalone starts it.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from broker.admin.context import NO_NAMESPACE
from broker.admin.paths import Endpoint
from broker.admin.requests import done, namespace_name, segment
from broker.authorization.operations import (
    ClusterOperation,
    ClusterPolicyOperation,
    Level,
    PolicyName,
)
from broker.bundles import bundle_named
from server.http import RestError, json_response

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiohttp import web

    from broker.admin.context import AdminContext
    from broker.authorization.operations import Needs


class Constant(NamedTuple):
    """A path with a constant answer.

    Attributes:
        path: Below ``/admin``.
        answer: The body; None: empty. For an error, a sentence with variables in braces.
        status: The status.
        methods: The methods with this answer.
        needs: The required permission.
        elsewhere: Status and sentence for a missing namespace, or a foreign cluster; None: the same
            answer.
    """

    path: str
    answer: object = None
    status: int = 200
    methods: Sequence[str] = ("GET",)
    needs: Needs = Level.SUPERUSER
    elsewhere: tuple[int, str] | None = None


_NO_WORKER = (
    "Pulsar Function Worker is not enabled, probably functionsWorkerEnabled is set to false"
)
_OF_NAMESPACE = "v2/namespaces/{tenant}/{namespace}"
_OF_CLUSTER = "v2/clusters/{cluster}"
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
"""Upstream's default, without any effect."""


def _off(status: int, sentence: str, paths: str) -> list[Constant]:
    """Return the calls of a disabled part, answered to every authenticated client."""
    return [
        Constant(path, sentence, status, methods.split(","), Level.AUTHENTICATED)
        for path, methods in (line.split() for line in paths.strip().splitlines())
    ]


CONSTANTS = (
    *(
        one
        for root in ("v3/functions", "v3/sinks", "v3/sources", "v2/functions")
        for one in _off(
            409,
            _NO_WORKER,
            f"""
            {root}/{{tenant}}/{{namespace}} GET
            {root}/{{tenant}}/{{namespace}}/{{name}} GET,POST,PUT,DELETE
            {root}/{{tenant}}/{{namespace}}/{{name}}/{{rest}} GET,POST,PUT,DELETE
            """,
        )
    ),
    *_off(
        409,
        _NO_WORKER,
        """
        v3/functions/connectors GET
        v2/functions/connectors GET
        v3/sinks/builtinsinks GET
        v3/sources/builtinsources GET
        v2/worker/{rest} GET,POST,PUT,DELETE
        v2/worker-stats/{rest} GET
        """,
    ),
    *_off(
        503,
        "This Broker is not configured with transactionCoordinatorEnabled=true.",
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
    ),
    Constant(
        f"{_OF_NAMESPACE}/resourcegroup",
        needs=PolicyName.RESOURCEGROUP,
        elsewhere=(404, NO_NAMESPACE),
    ),
    Constant(
        f"{_OF_CLUSTER}/peers",
        needs=ClusterOperation.GET_PEER_CLUSTER,
        elsewhere=(404, "Cluster does not exist"),
    ),
    Constant(f"{_OF_CLUSTER}/failureDomains", {}, needs=ClusterOperation.GET_FAILURE_DOMAIN),
    Constant(
        f"{_OF_CLUSTER}/failureDomains/{{name}}",
        "Domain {name} for cluster {cluster} does not exist",
        404,
        needs=ClusterOperation.GET_FAILURE_DOMAIN,
        elsewhere=(412, _NO_CLUSTER),
    ),
    *(
        Constant(
            f"{_OF_CLUSTER}/{path}",
            sentence,
            404,
            needs=ClusterPolicyOperation.READ,
            elsewhere=(status, _NO_CLUSTER if sentence == _NO_ISOLATION else sentence),
        )
        for path, sentence, status in (
            ("namespaceIsolationPolicies", _NO_ISOLATION, 404),
            ("namespaceIsolationPolicies/{name}", _NO_ISOLATION, 412),
            ("namespaceIsolationPolicies/brokers/{broker}", _NO_ISOLATION, 412),
            ("migrate", "Cluster does not exist", 404),
        )
    ),
    Constant("v2/resource-quotas", _QUOTA),
    Constant("v2/resourcegroups", []),
    Constant("v2/resourcegroups/{name}", "ResourceGroup does not exist", 404),
    Constant("v2/bookies/racks-info", {}),
    Constant(
        "v2/bookies/racks-info/{name}",
        "Bookie rack placement configuration not found: {name}",
        404,
    ),
    Constant(
        "v2/broker-stats/broker-resource-availability/{tenant}/{namespace}",
        "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerWrapper does not support "
        "this operation",
        409,
    ),
)
_PACKAGES = "/admin/v3/packages/{type}/{tenant}/{namespace}"
_VERSION = f"{_PACKAGES}/{{name}}/{{version}}"
_PACKAGE_KINDS = ("function", "sink", "source")


class ConstantAdmin:
    """Requests about parts of Pulsar that are disabled or empty here."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    def listed(self) -> Iterator[Endpoint]:
        """Yield the endpoints of the table."""
        for one in CONSTANTS:
            handler = _Answer(self._context, one).answer
            for method in one.methods:
                yield Endpoint(method, f"/admin/{one.path}", one.needs, handler=handler)

    @Endpoint("GET", _PACKAGES, Level.AUTHENTICATED)
    @Endpoint("GET", f"{_PACKAGES}/{{name}}", Level.AUTHENTICATED)
    @Endpoint("GET", _VERSION, Level.AUTHENTICATED)
    @Endpoint("POST", _VERSION, Level.AUTHENTICATED)
    @Endpoint("DELETE", _VERSION, Level.AUTHENTICATED)
    @Endpoint("GET", f"{_VERSION}/metadata", Level.AUTHENTICATED)
    @Endpoint("PUT", f"{_VERSION}/metadata", Level.AUTHENTICATED)
    async def package(self, request: web.Request) -> web.Response:
        """Refuse a call about packages: package management is disabled."""
        kind = segment(request, "type")
        if kind not in _PACKAGE_KINDS:
            raise RestError(412, f"Invalid package domain: '{kind[:100]}'")
        raise RestError(503, "Package Management Service is not enabled in the broker.")

    @Endpoint("GET", "/admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}", Level.SUPERUSER)
    async def quota(self, request: web.Request) -> web.Response:
        """Return the quota of a bundle, the same for all bundles."""
        namespace, text = namespace_name(request), segment(request, "bundle")
        policies = await self._context.store.policies(namespace)
        # A missing namespace has a single bundle (recorded).
        if bundle_named(text, 1 if policies is None else policies.bundles) is None:
            raise RestError(412, f"Invalid bundle range: {text[:100]}")
        return json_response(_QUOTA)

    @Endpoint("GET", "/admin/v2/broker-stats/topics", Level.SUPERUSER)
    async def statistics(self, _: web.Request) -> web.Response:
        """Return the statistics of all topics, empty without topics."""
        if len(self._context.messaging.loaded_topics):
            raise RestError(501, "statistics of all topics: not built here, ask for each topic's")
        return json_response({})


class _Answer:
    def __init__(self, context: AdminContext, constant: Constant) -> None:
        self._context = context
        self._constant = constant

    async def answer(self, request: web.Request) -> web.Response:
        """Return the constant answer."""
        constant = self._constant
        if constant.elsewhere and not await self._is_here(request):
            raise _refusal(request, *constant.elsewhere)
        if constant.status != HTTPStatus.OK:
            raise _refusal(request, constant.status, str(constant.answer))
        return done(200) if constant.answer is None else json_response(constant.answer)

    async def _is_here(self, request: web.Request) -> bool:
        if "cluster" in request.match_info:
            return segment(request, "cluster") == self._context.config.cluster_name
        return await self._context.store.policies(namespace_name(request)) is not None


def _refusal(request: web.Request, status: int, sentence: str) -> RestError:
    named = {name: segment(request, name)[:100] for name in request.match_info if name != "rest"}
    return RestError(status, sentence.format_map(named))
