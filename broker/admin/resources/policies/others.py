"""Admin requests about special policies, which are not in ``broker.policies.table``.

These are clusters, properties of namespaces, dispatch rates of single subscriptions, and shadow
topics.

Source: upstream NamespacesBase, PersistentTopicsBase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.admin.bodies import json_body
from broker.admin.openapi import schemas
from broker.admin.paths import endpoint
from broker.admin.requests import flag, plain, segment
from broker.admin.resources.policies.subjects import PolicyResource
from broker.authorization.operations import Level, PolicyName
from broker.policies.table import SUBSCRIPTION_RATE
from broker.policies.values import schema_of, strings, texts_by_name
from proto.names import InvalidNameError, TopicName
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

_CLUSTERS, _PROPERTIES, _RATES = "replication_clusters", "properties", "dispatch_rates"


class OtherPolicyAdmin(PolicyResource):
    """Handlers of admin requests about policies that are not in ``broker.policies.table``."""

    # -- clusters: only the broker's ----------------------------------------------------------

    @endpoint("GET namespaces/{namespace}/replication", PolicyName.REPLICATION)
    async def get_clusters(self, request: web.Request) -> object:
        """Return the replication clusters of a namespace."""
        namespace = await self._namespace(request)
        return self._kept(namespace).get(_CLUSTERS) or [self._cluster]

    @property
    def _cluster(self) -> str:
        return self._context.config.cluster_name

    @endpoint(
        "POST namespaces/{namespace}/replication",
        PolicyName.REPLICATION,
        body=schemas.TEXTS,
        done=(200,),
        refused=(403,),
    )
    async def set_clusters(self, request: web.Request) -> None:
        """Accept the broker's own cluster as a replication cluster, and refuse other clusters."""
        clusters = await _clusters(request)
        await self._namespace(request)
        self._check_own(clusters)

    def _check_own(self, clusters: Sequence[str]) -> None:
        other = next((one for one in clusters if one != self._cluster), None)
        if other is not None:
            raise RestError(403, f"Invalid cluster id: {other[:100]}")

    @endpoint("GET namespaces/{namespace}/allowedClusters", PolicyName.ALLOW_CLUSTERS)
    async def get_allowed_clusters(self, request: web.Request) -> object:
        """Return the allowed clusters that were set at a namespace's creation."""
        return self._kept(await self._namespace(request)).get("allowed_clusters") or []

    @endpoint("GET {topic}/replication?applied&isGlobal", PolicyName.REPLICATION)
    async def get_topic_clusters(self, request: web.Request) -> object:
        """Return a topic's replication clusters; with ``applied``, the effective clusters."""
        topic, globally = await self._topic(request), flag(request, "isGlobal")
        clusters = self._kept(topic, globally=globally).get(_CLUSTERS)
        return [self._cluster] if clusters is None and flag(request, "applied") else clusters

    @endpoint("POST {topic}/replication?isGlobal", PolicyName.REPLICATION, body=schemas.TEXTS)
    async def set_topic_clusters(self, request: web.Request) -> None:
        """Accept the broker's own cluster for replication of a topic, and refuse other clusters."""
        clusters = await _clusters(request)
        topic = await self._topic(request)
        if flag(request, "isGlobal"):  # A namespace has a single cluster here.
            raise RestError(
                412,
                "Please do not use the global topic level policy when namespace-level replication "
                "is not enabled, because the global level policy relies on namespace-level "
                "replication",
            )
        if self._cluster not in clusters:
            raise RestError(
                412,
                "Can not remove local cluster from the local topic-level replication clusters "
                "policy",
            )
        self._check_own(clusters)
        await self._keep(topic, _CLUSTERS, list(clusters))

    @endpoint("DELETE {topic}/replication?isGlobal", PolicyName.REPLICATION)
    async def remove_topic_clusters(self, request: web.Request) -> None:
        """Remove a topic's replication clusters, so that its namespace's apply again."""
        topic, globally = await self._topic(request), flag(request, "isGlobal")
        await self._keep(topic, _CLUSTERS, None, globally=globally)

    # -- properties of namespaces -------------------------------------------------------------

    @endpoint("GET namespaces/{namespace}/properties", Level.TENANT_ADMIN)
    async def get_properties(self, request: web.Request) -> object:
        """Return the properties of a namespace."""
        return self._kept(await self._namespace(request)).get(_PROPERTIES) or {}

    @endpoint("PUT namespaces/{namespace}/properties", Level.TENANT_ADMIN, body=schemas.PROPERTIES)
    async def add_properties(self, request: web.Request) -> None:
        """Add or replace properties of a namespace."""
        body = await json_body(request)
        if self._context.rules.fails_as_upstream and isinstance(body, dict):
            # Unlike for topics, upstream accepts a null, without effect.
            body = {key: value for key, value in body.items() if value is not None}
        await self._add(request, texts_by_name(body))

    @endpoint("PUT namespaces/{namespace}/property/{key}/{value}", Level.TENANT_ADMIN)
    async def add_property(self, request: web.Request) -> None:
        """Add or replace a property of a namespace."""
        await self._add(request, {segment(request, "key"): segment(request, "value")})

    async def _add(self, request: web.Request, properties: dict[str, str]) -> None:
        namespace = await self._namespace(request)
        await self._change(
            namespace,
            _PROPERTIES,
            lambda document: {**(document.get(_PROPERTIES) or {}), **properties} or None,
        )

    @endpoint("DELETE namespaces/{namespace}/properties", Level.TENANT_ADMIN)
    async def remove_properties(self, request: web.Request) -> None:
        """Remove all properties of a namespace."""
        await self._keep(await self._namespace(request), _PROPERTIES, None)

    @endpoint("GET namespaces/{namespace}/property/{key}", Level.TENANT_ADMIN)
    async def get_property(self, request: web.Request) -> object:
        """Return the value of a namespace's property as plain text."""
        kept = self._kept(await self._namespace(request)).get(_PROPERTIES) or {}
        return plain(kept.get(segment(request, "key")))

    @endpoint("DELETE namespaces/{namespace}/property/{key}", Level.TENANT_ADMIN, done=(200,))
    async def remove_property(self, request: web.Request) -> object:
        """Remove a property of a namespace, and return its value."""
        namespace = await self._namespace(request)
        name = segment(request, "key")

        def left(document: Mapping[str, Any]) -> object:
            properties = document.get(_PROPERTIES) or {}
            return {key: value for key, value in properties.items() if key != name} or None

        before = await self._change(namespace, _PROPERTIES, left)
        return plain((before.get(_PROPERTIES) or {}).get(name))

    # -- dispatch of a subscription -----------------------------------------------------------

    @endpoint("GET {topic}/{subName}/dispatchRate?applied&isGlobal", PolicyName.RATE)
    async def get_rate(self, request: web.Request) -> object:
        """Return a subscription's dispatch rate; with ``applied``, the effective rate."""
        topic = await self._topic(request)
        kept = self._kept(topic, globally=flag(request, "isGlobal"))
        rate = (kept.get(_RATES) or {}).get(segment(request, "subName"))
        if rate is None and flag(request, "applied"):
            rate = SUBSCRIPTION_RATE.shown(self._context.message_policies.of(topic))
        return rate

    @endpoint(
        "POST {topic}/{subName}/dispatchRate?isGlobal",
        PolicyName.RATE,
        body=schema_of(SUBSCRIPTION_RATE.read),
    )
    async def set_rate(self, request: web.Request) -> None:
        """Set the dispatch rate of a subscription."""
        body = await json_body(request)
        rate = SUBSCRIPTION_RATE.read(body)
        topic = await self._topic(request)
        if body is not None:
            await self._keep_rate(request, topic, rate)

    @endpoint("DELETE {topic}/{subName}/dispatchRate?isGlobal", PolicyName.RATE)
    async def remove_rate(self, request: web.Request) -> None:
        """Remove the dispatch rate of a subscription."""
        await self._keep_rate(request, await self._topic(request), None)

    async def _keep_rate(self, request: web.Request, topic: TopicName, rate: object) -> None:
        name = segment(request, "subName")

        def with_rate(document: Mapping[str, Any]) -> object:
            rates = {**(document.get(_RATES) or {}), name: rate}
            return {one: value for one, value in rates.items() if value is not None} or None

        await self._change(topic, _RATES, with_rate, globally=flag(request, "isGlobal"))

    # -- shadow topics: no topic is copied to another -----------------------------------------

    @endpoint("GET {topic}/shadowTopics", PolicyName.SHADOW_TOPIC)
    async def get_shadows(self, request: web.Request) -> None:
        """Return an empty response: topics have no shadow topics."""
        await self._topic(request)

    @endpoint(
        "PUT {topic}/shadowTopics", PolicyName.SHADOW_TOPIC, body=schemas.TEXTS, refused=(403,)
    )
    async def set_shadows(self, request: web.Request) -> None:
        """Refuse to set shadow topics; errors about invalid topics have upstream's texts."""
        names = strings(await json_body(request), "the body")
        topic = await self._topic(request)
        if not names:
            text = "Cannot specify empty shadow topics, please use remove command instead."
            raise RestError(412, text)
        for name in names:
            await self._check_exists(name)
        raise RestError(
            412, f"Messages are not copied to shadow topics here: set none for {topic}."
        )

    async def _check_exists(self, name: str) -> None:
        try:
            shadow = TopicName.parse(name)
        except InvalidNameError:
            raise RestError(403, f"Invalid shadow topic name: {name[:100]}") from None
        snapshot = await self._context.store.snapshot(shadow.namespace)
        known = snapshot is not None and (
            snapshot.contains(shadow) or str(shadow) in snapshot.partitioned
        )
        if not known:
            raise RestError(412, f"Shadow topic [{name[:100]}] not exists.")

    @endpoint("DELETE {topic}/shadowTopics", PolicyName.SHADOW_TOPIC)
    async def remove_shadows(self, request: web.Request) -> None:
        """Accept the removal of shadow topics, which has no effect: there are none."""
        await self._topic(request)

    # -- removals -----------------------------------------------------------------------------

    @endpoint("DELETE {topic}/policies", PolicyName.MAX_PRODUCERS)
    async def remove_all(self, request: web.Request) -> None:
        """Remove all policies of a topic."""
        await self._context.message_policies.forget(await self._topic(request))


async def _clusters(request: web.Request) -> Sequence[str]:
    clusters = strings(await json_body(request), "the body")
    if not clusters:
        raise RestError(412, "ClusterIds should not be null or empty")
    return clusters
