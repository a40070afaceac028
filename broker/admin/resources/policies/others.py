"""Special policies: clusters, properties of namespaces, dispatch of a subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from broker.admin.bodies import json_body, strings
from broker.admin.openapi import schemas
from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import done, flag, segment
from broker.admin.resources.policies.endpoints import shown
from broker.admin.resources.policies.rate_rows import rate_body, read_rate
from broker.admin.resources.policies.row import Empty
from broker.admin.resources.policies.subjects import (
    NAMESPACE_PATH,
    TOPIC_PATH,
    existing_namespace,
    topic_with_policies,
)
from broker.admin.resources.policies.values import schema_of, texts_by_name
from broker.authorization.operations import Level, PolicyName
from server.http import JSON_TYPE, RestError, json_response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.admin.context import AdminContext
    from proto.names import NamespaceName, TopicName

_CLUSTERS, _PROPERTIES, _RATES = "replication_clusters", "properties", "dispatch_rates"


class OtherPolicyAdmin:
    """Requests about the special policies."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    def _set(self, of: NamespaceName | TopicName) -> Mapping[str, Any]:
        return self._context.message_policies.document(of)

    # -- clusters: only the broker's ----------------------------------------------------------

    @Endpoint(
        "GET", f"{NAMESPACE_PATH}/replication", PolicyName.REPLICATION, Takes.APPLICATION_JSON
    )
    async def get_clusters(self, request: web.Request) -> web.Response:
        """Return the clusters of a namespace."""
        namespace = await existing_namespace(self._context, request)
        return json_response(self._set(namespace).get(_CLUSTERS) or [self._cluster])

    @property
    def _cluster(self) -> str:
        return self._context.config.cluster_name

    @Endpoint(
        "POST",
        f"{NAMESPACE_PATH}/replication",
        PolicyName.REPLICATION,
        Takes.APPLICATION_JSON,
        body=schemas.TEXTS,
        refused=(403,),
    )
    async def set_clusters(self, request: web.Request) -> web.Response:
        """Accept the broker's own cluster, and refuse foreign clusters."""
        clusters = await _clusters(request)
        await existing_namespace(self._context, request)
        other = next((one for one in clusters if one != self._cluster), None)
        if other is not None:
            raise RestError(403, f"Invalid cluster id: {other[:100]}")
        return done(200)

    @Endpoint(
        "GET",
        f"{NAMESPACE_PATH}/allowedClusters",
        PolicyName.ALLOW_CLUSTERS,
        Takes.APPLICATION_JSON,
    )
    async def get_allowed_clusters(self, request: web.Request) -> web.Response:
        """Return the allowed clusters given at a namespace's creation."""
        namespace = await existing_namespace(self._context, request)
        return json_response(self._set(namespace).get("allowed_clusters") or [])

    @Endpoint("GET", f"{TOPIC_PATH}/replication", PolicyName.REPLICATION, query=("applied",))
    async def get_topic_clusters(self, request: web.Request) -> web.Response:
        """Return the clusters of a topic, or the effective clusters."""
        topic = await topic_with_policies(self._context, request)
        clusters = self._set(topic).get(_CLUSTERS)
        if clusters is None and flag(request, "applied"):
            clusters = [self._cluster]
        return shown(clusters, Empty.NO_BODY)

    @Endpoint(
        "POST", f"{TOPIC_PATH}/replication", PolicyName.REPLICATION, Takes.JSON, body=schemas.TEXTS
    )
    async def set_topic_clusters(self, request: web.Request) -> web.Response:
        """Accept the broker's own cluster for a topic, and refuse foreign clusters."""
        clusters = await _clusters(request)
        topic = await topic_with_policies(self._context, request)
        if self._cluster not in clusters:
            raise RestError(
                412,
                "Can not remove local cluster from the local topic-level replication clusters "
                "policy",
            )
        other = next((one for one in clusters if one != self._cluster), None)
        if other is not None:
            raise RestError(403, f"Invalid cluster id: {other[:100]}")
        await self._context.message_policies.set(topic, _CLUSTERS, list(clusters))
        return done()

    @Endpoint("DELETE", f"{TOPIC_PATH}/replication", PolicyName.REPLICATION)
    async def remove_topic_clusters(self, request: web.Request) -> web.Response:
        """Restore the namespace's clusters for a topic."""
        topic = await topic_with_policies(self._context, request)
        await self._context.message_policies.set(topic, _CLUSTERS, None)
        return done()

    # -- properties of namespaces -------------------------------------------------------------

    @Endpoint("GET", f"{NAMESPACE_PATH}/properties", Level.TENANT_ADMIN, Takes.APPLICATION_JSON)
    async def get_properties(self, request: web.Request) -> web.Response:
        """Return the properties of a namespace."""
        namespace = await existing_namespace(self._context, request)
        return json_response(self._set(namespace).get(_PROPERTIES) or {})

    @Endpoint(
        "PUT",
        f"{NAMESPACE_PATH}/properties",
        Level.TENANT_ADMIN,
        Takes.APPLICATION_JSON,
        body=schemas.PROPERTIES,
    )
    async def add_properties(self, request: web.Request) -> web.Response:
        """Add or replace properties of a namespace."""
        body = await json_body(request)
        if self._context.rules.fails_as_upstream and isinstance(body, dict):
            # Unlike for topics, upstream accepts a null, without effect.
            body = {key: value for key, value in body.items() if value is not None}
        return await self._add(request, texts_by_name(body))

    @Endpoint(
        "PUT",
        f"{NAMESPACE_PATH}/property/{{key}}/{{value}}",
        Level.TENANT_ADMIN,
        Takes.APPLICATION_JSON,
    )
    async def add_property(self, request: web.Request) -> web.Response:
        """Add a property."""
        return await self._add(request, {segment(request, "key"): segment(request, "value")})

    async def _add(self, request: web.Request, properties: dict[str, str]) -> web.Response:
        namespace = await existing_namespace(self._context, request)
        kept = self._set(namespace).get(_PROPERTIES) or {}
        together = {**kept, **properties}
        await self._context.message_policies.set(namespace, _PROPERTIES, together or None)
        return done()

    @Endpoint("DELETE", f"{NAMESPACE_PATH}/properties", Level.TENANT_ADMIN, Takes.APPLICATION_JSON)
    async def remove_properties(self, request: web.Request) -> web.Response:
        """Remove all properties of a namespace."""
        namespace = await existing_namespace(self._context, request)
        await self._context.message_policies.set(namespace, _PROPERTIES, None)
        return done()

    @Endpoint(
        "GET", f"{NAMESPACE_PATH}/property/{{key}}", Level.TENANT_ADMIN, Takes.APPLICATION_JSON
    )
    async def get_property(self, request: web.Request) -> web.Response:
        """Return the value of a property as plain text."""
        namespace = await existing_namespace(self._context, request)
        return _plain((self._set(namespace).get(_PROPERTIES) or {}).get(segment(request, "key")))

    @Endpoint(
        "DELETE",
        f"{NAMESPACE_PATH}/property/{{key}}",
        Level.TENANT_ADMIN,
        Takes.APPLICATION_JSON,
        done=(200,),
    )
    async def remove_property(self, request: web.Request) -> web.Response:
        """Remove a property, and return its value."""
        namespace = await existing_namespace(self._context, request)
        left = dict(self._set(namespace).get(_PROPERTIES) or {})
        value = left.pop(segment(request, "key"), None)
        await self._context.message_policies.set(namespace, _PROPERTIES, left or None)
        return _plain(value)

    # -- dispatch of a subscription -----------------------------------------------------------

    @Endpoint("GET", f"{TOPIC_PATH}/{{subName}}/dispatchRate", PolicyName.RATE, query=("applied",))
    async def get_rate(self, request: web.Request) -> web.Response:
        """Return the dispatch rate of a subscription, or the effective rate."""
        topic, name = await topic_with_policies(self._context, request), _subscription(request)
        rate = (self._set(topic).get(_RATES) or {}).get(name)
        if rate is None and flag(request, "applied"):
            in_force = self._context.message_policies.of(topic)
            rate = rate_body(in_force.subscription_dispatch_rate)
        return shown(rate, Empty.NO_BODY)

    @Endpoint(
        "POST",
        f"{TOPIC_PATH}/{{subName}}/dispatchRate",
        PolicyName.RATE,
        Takes.JSON,
        body=schema_of(read_rate),
    )
    async def set_rate(self, request: web.Request) -> web.Response:
        """Set the dispatch rate of a subscription."""
        body = await json_body(request)
        rate = read_rate(body)
        topic = await topic_with_policies(self._context, request)
        if body is not None:
            await self._keep_rate(topic, _subscription(request), rate)
        return done()

    @Endpoint("DELETE", f"{TOPIC_PATH}/{{subName}}/dispatchRate", PolicyName.RATE)
    async def remove_rate(self, request: web.Request) -> web.Response:
        """Remove the dispatch rate of a subscription."""
        topic = await topic_with_policies(self._context, request)
        await self._keep_rate(topic, _subscription(request), None)
        return done()

    async def _keep_rate(self, topic: TopicName, name: str, rate: object) -> None:
        rates = {**(self._set(topic).get(_RATES) or {}), name: rate}
        kept = {one: value for one, value in rates.items() if value is not None}
        await self._context.message_policies.set(topic, _RATES, kept or None)

    # -- removals -----------------------------------------------------------------------------

    @Endpoint("DELETE", f"{TOPIC_PATH}/policies", PolicyName.MAX_PRODUCERS)
    async def remove_all(self, request: web.Request) -> web.Response:
        """Remove all policies of a topic."""
        topic = await topic_with_policies(self._context, request)
        await self._context.message_policies.forget(topic)
        return done()


def _subscription(request: web.Request) -> str:
    return segment(request, "subName")


async def _clusters(request: web.Request) -> Sequence[str]:
    clusters = strings(await json_body(request), "the body")
    if not clusters:
        raise RestError(412, "ClusterIds should not be null or empty")
    return clusters


def _plain(value: str | None) -> web.Response:
    return (
        done(200)
        if value is None
        else web.Response(body=value.encode(), headers={"Content-Type": JSON_TYPE})
    )
