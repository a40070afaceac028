"""Subscriptions by REST: creation, listing, deletion, and properties.

Source: upstream PersistentTopicsBase.internalCreateSubscription and its neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.bodies import BadBodyError, string_map, string_map_of
from broker.admin.openapi import schemas
from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import done, flag, topic_name
from broker.admin.resources.messages.message_ids import ResetTarget, reset_target
from broker.admin.resources.messages.subjects import (
    SUBSCRIPTION_PATH,
    MessageTopics,
    check_subscribed,
    created,
    no_subscription,
    persistent,
    stored_of,
    subscription_name,
    subscription_of,
    subscriptions_of,
)
from broker.authorization.operations import TopicOperation
from broker.errors import Refusal, RefusedError
from broker.messages.position import LATEST
from server.http import RestError, json_response
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from aiohttp import web

    from broker.admin.context import AdminContext
    from broker.messages.topic import PersistentTopic, Topic


class SubscriptionAdmin:
    """Requests about subscriptions as such."""

    def __init__(self, context: AdminContext) -> None:
        self._topics = MessageTopics(context)
        self._rules = context.rules

    @Endpoint(
        "PUT",
        SUBSCRIPTION_PATH,
        TopicOperation.SUBSCRIBE,
        Takes.JSON,
        body=schemas.START,
        body_required=False,
    )
    async def create(self, request: web.Request) -> web.Response:
        """Create a subscription at the end or at the body's position; create a missing topic."""
        target = await reset_target(request) or ResetTarget(LATEST)
        if not topic_name(request).persistent:
            raise RestError(
                400, "Create subscription on non-persistent topic can only be done through client"
            )
        topics = [persistent(topic) for topic in await self._asked(request)]
        name = subscription_name(request)
        missing = [one async for one in in_turns(topics) if not subscriptions_of(one).get(name)]
        if not missing:
            raise RestError(409, "Subscription already exists for topic")
        async for topic in self._topics.each(missing):
            if not subscriptions_of(topic).get(name):  # A consumer may have been faster.
                _create(topic, name, target)
                await self._topics.flushed(topic)
        return done()

    async def _asked(self, request: web.Request) -> list[Topic]:
        try:
            return await self._topics.all(request)
        except RefusedError as error:
            topic = topic_name(request)
            if error.refusal is not Refusal.NOT_FOUND or not error.reason.startswith("Topic"):
                raise
            return [await self._topics.load(topic, create=True)]

    @Endpoint("DELETE", SUBSCRIPTION_PATH, TopicOperation.UNSUBSCRIBE, query=("force",))
    async def delete(self, request: web.Request) -> web.Response:
        """Delete a subscription; with force also if consumers use the subscription.

        Subscriptions of non-persistent topics are always deleted (recorded).
        """
        topics, name = await self._topics.all(request), subscription_name(request)
        there = (topic.subscriptions.get(name) for topic in topics)
        found = [one async for one in in_turns(there) if one is not None]
        if not found:
            if len(topics) == 1:
                raise no_subscription(name, topics[0].name)
            raise RestError(404, "Subscription not found")
        force = flag(request, "force") or not topic_name(request).persistent
        if not force and any(subscription.consumers for subscription in found):
            raise RestError(412, "Subscription has active connected consumers")
        async for topic in self._topics.each(topics):
            subscription = topic.subscriptions.get(name)
            if subscription is not None:
                subscription.delete()
        if self._rules.acts_before_it_refuses and len(found) < len(topics):
            raise RestError(404, "Subscription not found")
        return done()

    @Endpoint("GET", f"{SUBSCRIPTION_PATH}/properties", TopicOperation.CONSUME)
    async def get_properties(self, request: web.Request) -> web.Response:
        """Return the properties of a subscription, merged over all partitions.

        Subscriptions of non-persistent topics have no properties (recorded).
        """
        name, topic = subscription_name(request), topic_name(request)
        found: dict[str, str] = {}
        topics = await self._topics.all(request)
        await check_subscribed(topics, name, topic)
        async for one in in_turns(stored_of(topics)):
            found |= subscription_of(one, name).cursor.properties
        return json_response(found)

    @Endpoint(
        "PUT",
        f"{SUBSCRIPTION_PATH}/properties",
        TopicOperation.SUBSCRIBE,
        Takes.JSON,
        body=schemas.PROPERTIES,
    )
    async def set_properties(self, request: web.Request) -> web.Response:
        """Replace the properties of a subscription; a no-op for non-persistent topics."""
        properties = await string_map(request)
        topics, name = await self._topics.all(request), subscription_name(request)
        async for topic in self._topics.subscribed(request, topics):
            subscription = subscription_of(topic, name)
            subscription.cursor.properties = dict(properties)
            subscription.cursor.changed = True
            subscription.cursor.save()
        return done()

    @Endpoint(
        "GET",
        f"{SUBSCRIPTION_PATH}/replicatedSubscriptionStatus",
        TopicOperation.GET_REPLICATED_SUBSCRIPTION_STATUS,
    )
    async def get_replicated(self, request: web.Request) -> web.Response:
        """Return false for each topic: no subscription is replicated."""
        _check_stored(request, "get")
        topics, name = await self._topics.all_stored(request), subscription_name(request)
        await check_subscribed(topics, name)
        names = [str(topic.name) async for topic in in_turns(topics)]
        return json_response(dict.fromkeys(names, False))

    @Endpoint(
        "POST",
        f"{SUBSCRIPTION_PATH}/replicatedSubscriptionStatus",
        TopicOperation.SET_REPLICATED_SUBSCRIPTION_STATUS,
        Takes.JSON,
        body={"type": "boolean"},
    )
    async def set_replicated(self, request: web.Request) -> web.Response:
        """Refuse to replicate a subscription: the broker has a single cluster."""
        wanted = (await request.read()).strip()  # Bytes: maybe no text, or in a slow charset.
        _check_stored(request, "enable/disable")
        topics, name = await self._topics.all_stored(request), subscription_name(request)
        await check_subscribed(topics, name)
        if wanted == b"true":
            raise RestError(412, "nothing is replicated here: there is one cluster")
        return done()


def _check_stored(request: web.Request, what: str) -> None:
    """Refuse a request about a non-persistent topic, existing or not.

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
