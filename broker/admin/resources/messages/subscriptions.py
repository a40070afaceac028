"""Admin requests that create, list, change and delete subscriptions.

Source: upstream PersistentTopicsBase.internalCreateSubscription and its neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.bodies import string_map
from broker.admin.openapi import schemas
from broker.admin.paths import endpoint
from broker.admin.requests import flag, topic_name
from broker.admin.resources.messages.message_ids import ResetTarget, reset_target
from broker.admin.resources.messages.subjects import (
    TopicResource,
    check_subscribed,
    created,
    no_subscription,
    persistent,
    stored_of,
    subscription_name,
    subscription_of,
)
from broker.authorization.operations import TopicOperation
from broker.errors import Refusal, RefusedError
from broker.messages.position import LATEST
from broker.policies.values import BadBodyError, string_map_of
from server.http import RestError
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from aiohttp import web

    from broker.messages.topic import PersistentTopic, Topic


class SubscriptionAdmin(TopicResource):
    """Handlers of admin requests that create, list, change and delete subscriptions."""

    @endpoint(
        "PUT {topic}/subscription/{subName}",
        TopicOperation.SUBSCRIBE,
        body=schemas.START,
        body_required=False,
    )
    async def create(self, request: web.Request) -> None:
        """Create a subscription at the topic's end or at a message id; create a missing topic."""
        target = await reset_target(request) or ResetTarget(LATEST)
        if self._context.rules.misreads_excluded:
            target = target._replace(excluded=False)
        if not topic_name(request).persistent:
            raise RestError(
                400, "Create subscription on non-persistent topic can only be done through client"
            )
        topics = [persistent(topic) for topic in await self._asked(request)]
        name = subscription_name(request)
        missing = [one async for one in in_turns(topics) if not one.subscriptions.get(name)]
        if not missing:
            raise RestError(409, "Subscription already exists for topic")
        async for topic in self._topics.each(missing):
            if not topic.subscriptions.get(name):  # A consumer may have been faster.
                _create(topic, name, target)
                await self._topics.flushed(topic)

    async def _asked(self, request: web.Request) -> list[Topic]:
        try:
            return await self._topics.all(request)
        except RefusedError as error:
            topic = topic_name(request)
            if error.refusal is not Refusal.NOT_FOUND or not error.reason.startswith("Topic"):
                raise
        try:
            partitioned = await self._context.topics.partitions(topic, create=True)
        except RefusedError as error:
            if error.refusal is not Refusal.NOT_FOUND:
                raise
            raise RestError(412, "Topic does not exist and cannot be auto-created") from None
        if partitioned:
            return await self._topics.all(request)
        return [await self._topics.load(topic, create=True)]

    @endpoint("DELETE {topic}/subscription/{subName}?force", TopicOperation.UNSUBSCRIBE)
    async def delete(self, request: web.Request) -> None:
        """Delete a subscription; with ``force``, even while consumers use it.

        Subscriptions of non-persistent topics are always deleted (recorded).
        """
        topics, name = await self._topics.all(request), subscription_name(request)
        there = (topic.subscriptions.get(name) for topic in topics)
        found = [one async for one in in_turns(there) if one is not None]
        if not found:
            if [topic.name for topic in topics] == [topic_name(request)]:
                raise no_subscription(name, topics[0].name)
            raise RestError(404, "Subscription not found")
        force = flag(request, "force") or not topic_name(request).persistent
        if not force and any(subscription.consumers for subscription in found):
            raise RestError(412, "Subscription has active connected consumers")
        async for topic in self._topics.each(topics):
            subscription = topic.subscriptions.get(name)
            if subscription is not None:
                subscription.delete()
        await self._topics.flushed(*topics)
        if self._context.rules.acts_before_it_refuses and len(found) < len(topics):
            raise RestError(404, "Subscription not found")

    @endpoint("GET {topic}/subscription/{subName}/properties", TopicOperation.CONSUME)
    async def get_properties(self, request: web.Request) -> object:
        """Return the properties of a subscription, merged over all partitions.

        Subscriptions of non-persistent topics have no properties (recorded).
        """
        name, topic = subscription_name(request), topic_name(request)
        found: dict[str, str] = {}
        topics = await self._topics.all(request)
        await check_subscribed(topics, name, topic)
        async for one in in_turns(stored_of(topics)):
            found |= subscription_of(one, name).cursor.properties
        return found

    @endpoint(
        "PUT {topic}/subscription/{subName}/properties",
        TopicOperation.SUBSCRIBE,
        body=schemas.PROPERTIES,
    )
    async def set_properties(self, request: web.Request) -> None:
        """Replace the properties of a subscription; a no-op for non-persistent topics."""
        properties = await string_map(request)
        topics, name = await self._topics.all(request), subscription_name(request)
        async for topic in self._topics.subscribed(request, topics):
            subscription = subscription_of(topic, name)
            subscription.cursor.properties = dict(properties)
            subscription.cursor.changed = True
            subscription.cursor.save()
        await self._topics.flushed(*topics)

    @endpoint(
        "GET {topic}/subscription/{subName}/replicatedSubscriptionStatus",
        TopicOperation.GET_REPLICATED_SUBSCRIPTION_STATUS,
    )
    async def get_replicated(self, request: web.Request) -> object:
        """Report for a topic, or each partition, that its subscription is not replicated."""
        _check_stored(request, "get")
        topics, name = await self._topics.all_stored(request), subscription_name(request)
        await check_subscribed(topics, name)
        names = [str(topic.name) async for topic in in_turns(topics)]
        return dict.fromkeys(names, False)

    @endpoint(
        "POST {topic}/subscription/{subName}/replicatedSubscriptionStatus",
        TopicOperation.SET_REPLICATED_SUBSCRIPTION_STATUS,
        body={"type": "boolean"},
    )
    async def set_replicated(self, request: web.Request) -> None:
        """Refuse to replicate a subscription: the broker has a single cluster."""
        wanted = (await request.read()).strip()  # Bytes: maybe no text, or in a slow charset.
        _check_stored(request, "enable/disable")
        topics, name = await self._topics.all_stored(request), subscription_name(request)
        await check_subscribed(topics, name)
        if wanted == b"true":
            raise RestError(412, "nothing is replicated here: there is one cluster")


def _check_stored(request: web.Request, what: str) -> None:
    """Refuse a request about a non-persistent topic, even a missing one.

    Raises:
        RestError: 405, the topic is non-persistent.
    """
    if not topic_name(request).persistent:
        raise RestError(405, f"Cannot {what} replicated subscriptions on non-persistent topics")


def _create(topic: PersistentTopic, name: str, target: ResetTarget) -> None:
    start = target.position
    if target.excluded:
        start = topic.ledger.following(start)
    properties = target.properties or {}
    if not isinstance(properties, dict):
        raise BadBodyError("properties should be an object of strings")
    created(topic, name, start=start, properties=string_map_of(properties, "properties"))
