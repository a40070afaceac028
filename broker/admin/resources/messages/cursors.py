"""Admin requests that move a subscription's cursor: skip, expire, reset.

Source: upstream PersistentTopicsBase.internalSkipMessages, internalExpireMessages...,
internalResetCursor...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.openapi import schemas
from broker.admin.paths import endpoint
from broker.admin.requests import topic_name
from broker.admin.resources.messages.message_ids import given_target, path_number
from broker.admin.resources.messages.subjects import (
    TopicResource,
    check_subscribed,
    stored_of,
    subscription_name,
    subscription_of,
)
from broker.authorization.operations import TopicOperation
from broker.messages.position import Position
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from broker.admin.context import AdminRules
    from broker.admin.resources.messages.message_ids import ResetTarget
    from broker.messages.stores.managed_ledger import ManagedLedger
    from broker.messages.subscriptions.subscription import Subscription
    from broker.messages.topic import PersistentTopic

_CONSUMERS_CHECK = 1_000
"""If a subscription has consumers and a backlog below this number of entries, messages are expired
only if the first one is old enough."""
_NO_BACKLOG = (
    "subscription almost catch  up. If it's performed on a partitioned topic operation might "
    "succeeded on other partitions, please check stats of individual partition"
)
_NO_POSITION = "invalid message position provided"
_OTHER_PARTITION = (
    "Invalid parameter for expire message by position, partition index of passed in message "
    "position doesn't match partition index for the topic"
)


class CursorAdmin(TopicResource):
    """Handlers of admin requests that move a subscription's cursor."""

    @endpoint("POST {topic}/subscription/{subName}/skip/{numMessages}", TopicOperation.SKIP)
    async def skip(self, request: web.Request) -> None:
        """Skip a number of a subscription's entries, from the first unacknowledged entry on."""
        count = path_number(request, "numMessages")
        refusal = "Skip messages on a partitioned topic is not allowed"
        topic = await self._topics.stored(request, refusal)
        subscription_of(topic, subscription_name(request)).skip(count)
        await self._topics.flushed(topic)

    @endpoint("POST {topic}/subscription/{subName}/skip_all", TopicOperation.SKIP)
    async def skip_all(self, request: web.Request) -> None:
        """Skip all stored messages of a subscription, in all partitions."""
        topics, name = await self._topics.all_stored(request), subscription_name(request)
        async for topic in self._topics.subscribed(request, topics):
            subscription_of(topic, name).skip_through(topic.ledger.last_confirmed)
        await self._topics.flushed(*topics)

    # -- expiry -------------------------------------------------------------------------------

    @endpoint(
        "POST {topic}/subscription/{subName}/expireMessages/{expireTimeInSeconds}",
        TopicOperation.EXPIRE_MESSAGES,
    )
    async def expire_older(self, request: web.Request) -> None:
        """Expire a subscription's messages older than a number of seconds, in all partitions."""
        seconds = path_number(request, "expireTimeInSeconds")
        topics, name = await self._all_that_expire(request, "messages"), subscription_name(request)
        there = self._topics.subscribed(request, topics)
        found = (subscription_of(topic, name) async for topic in there)
        await self._expire(topics, found, seconds)

    @endpoint(
        "POST {topic}/all_subscription/expireMessages/{expireTimeInSeconds}",
        TopicOperation.EXPIRE_MESSAGES,
    )
    async def expire_all(self, request: web.Request) -> None:
        """Expire all subscriptions' messages older than a number of seconds, in all partitions."""
        seconds = path_number(request, "expireTimeInSeconds")
        topics = await self._all_that_expire(request, "messages for all subscriptions")
        each = self._topics.each(topics)
        found = (one async for topic in each for one in tuple(topic.subscriptions))
        await self._expire(topics, (one async for one in found if not one.internal), seconds)

    async def _expire(
        self,
        topics: list[PersistentTopic],
        subscriptions: AsyncIterator[Subscription],
        seconds: int,
    ) -> None:
        """Expire messages older than a number of seconds in each of the topics' subscriptions.

        Raises:
            RestError: 409, the backlog of at least one subscription is empty.
        """
        refused = [one async for one in subscriptions if not await _expires(one, seconds)]
        await self._topics.flushed(*topics)
        if refused:
            raise RestError(409, _not_issued("timestamp", refused[0], _NO_BACKLOG))

    async def _all_that_expire(self, request: web.Request, what: str) -> list[PersistentTopic]:
        """Return the topic in the path, or its partitions; refuse a non-persistent topic.

        Raises:
            RestError: 405, the topic is non-persistent.
        """
        topics = await self._topics.all(request)
        if not topic_name(request).persistent:
            raise RestError(405, f"Expire {what} on a non-persistent topic is not allowed")
        return stored_of(topics)

    @endpoint(
        "POST {topic}/subscription/{subName}/expireMessages",
        TopicOperation.EXPIRE_MESSAGES,
        body=schemas.MESSAGE_ID,
    )
    async def expire_to_id(self, request: web.Request) -> None:
        """Expire a subscription's messages up to a message id."""
        target = await given_target(request)
        if target.partition != topic_name(request).partition_index:
            raise RestError(412, _OTHER_PARTITION)
        refusal = "Expire message at position is not supported for partitioned-topic"
        topic = await self._topics.stored(request, refusal)
        subscription = subscription_of(topic, subscription_name(request))
        last = _last_expired(topic.ledger, target, self._context.rules)
        if last > topic.ledger.last_confirmed:
            raise RestError(409, _not_issued("position", subscription, _NO_POSITION))
        subscription.expire_through(topic.ledger.preceding(topic.ledger.following(last)))
        await self._topics.flushed(topic)

    # -- reset --------------------------------------------------------------------------------

    @endpoint(
        "POST {topic}/subscription/{subName}/resetcursor/{timestamp}", TopicOperation.RESET_CURSOR
    )
    async def reset_to_time(self, request: web.Request) -> None:
        """Reset a subscription, in all partitions, to the first message published since a time.

        A no-op in topics that store nothing, if the subscription exists (recorded).
        """
        time_ms = path_number(request, "timestamp")
        topics, name = await self._topics.all(request), subscription_name(request)
        await check_subscribed(topics, name)
        stored = stored_of(topics)
        async for topic in self._topics.each(stored):
            first = await topic.ledger.published_at(time_ms)
            subscription_of(topic, name).seek(first)
        await self._topics.flushed(*stored)

    @endpoint(
        "POST {topic}/subscription/{subName}/resetcursor",
        TopicOperation.RESET_CURSOR,
        body=schemas.MESSAGE_ID,
    )
    async def reset_to_id(self, request: web.Request) -> None:
        """Reset a subscription's cursor to an entry, or to the entry after it."""
        target = await given_target(request)
        refusal = "Reset-cursor at position is not allowed for partitioned-topic"
        topic = await self._topics.stored(request, refusal)
        ledger, position = topic.ledger, target.position
        subscription = subscription_of(topic, subscription_name(request))
        subscription.seek(ledger.following(position) if target.passes(ledger) else position)
        await self._topics.flushed(topic)


def _last_expired(ledger: ManagedLedger, target: ResetTarget, rules: AdminRules) -> Position:
    """Return the position through which messages expire; the entry need not exist."""
    position = target.position
    if target.excluded and not rules.misreads_excluded:
        return ledger.preceding(position)
    if target.passes(ledger):
        return Position(position.ledger_id, max(position.entry_id, -1) + 1)
    return position


async def _expires(subscription: Subscription, seconds: int) -> bool:
    """Expire messages older than a number of seconds; return False if the backlog is empty."""
    than_ms = subscription.topic.clock.wall_ms() - seconds * 1_000
    backlog = subscription.cursor.backlog
    waits = subscription.consumers and backlog < _CONSUMERS_CHECK
    if not backlog or (waits and not _first_is_older(subscription, than_ms)):
        return False
    await subscription.expire_older(than_ms)
    return True


def _not_issued(by: str, subscription: Subscription, reason: str) -> str:
    return (
        f"Expire message by {by} not issued on topic {subscription.topic.name} for subscription "
        f"{subscription.name} due to ongoing message expiration not finished or {reason}."
    )


def _first_is_older(subscription: Subscription, than_ms: int) -> bool:
    first = subscription.topic.ledger.digest(subscription.cursor.first_left)
    return first is not None and first.publish_time < than_ms
