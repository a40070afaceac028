"""Lookup and loading of the topics and the subscription that an admin request names."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import proto.PulsarApi_pb2 as pb
from broker.admin.owners import check_owner, check_owner_of_all
from broker.admin.paths import Resource
from broker.admin.requests import FailsUpstreamError, segment, topic_name
from broker.messages.errors import MessageStoreError
from broker.messages.position import EARLIEST, Position
from broker.messages.topic import PersistentTopic, Topic
from broker.topics.rules import no_namespace, not_found, partition_name
from proto.names import TopicName
from server.connection.request_errors import RequestError
from server.cross_site import check_change
from server.http import RestError
from server.tasks.cooperative import Steps, in_turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from aiohttp import web

    from broker.admin.context import AdminContext
    from broker.messages.loading.loaded_topics import LoadedTopics
    from broker.messages.subscriptions.subscription import Subscription
    from broker.stores.store import NamespaceSnapshot

T = TypeVar("T", bound=Topic)

_STATUS = {
    pb.TopicNotFound: 404,
    pb.SubscriptionNotFound: 404,
    pb.NotAllowedError: 409,
    pb.ServiceNotReady: 503,
}


class TopicResource(Resource):
    """The base class of handlers of admin requests about topics."""

    def __init__(self, context: AdminContext) -> None:
        super().__init__(context)
        self._topics = MessageTopics(context)
        self._steps = Steps()


class MessageTopics:
    """Finds and loads the topics that admin requests name."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    @property
    def loaded(self) -> LoadedTopics:
        """The topics that this broker has loaded."""
        return self._context.messaging.loaded_topics

    async def partitions(self, topic: TopicName) -> int | None:
        """Return the number of a topic's partitions, or None if it has no partitions.

        Raises:
            RefusedError: The topic or its namespace does not exist.
        """
        snapshot = await self._snapshot(topic)
        count = snapshot.partitioned.get(str(topic))
        if count is None and not snapshot.contains(topic):
            raise not_found(topic)
        return count

    async def partitions_if_any(self, topic: TopicName) -> int | None:
        """Return the number of a topic's partitions; None if it has none, or does not exist.

        Raises:
            RefusedError: The namespace does not exist.
        """
        return (await self._snapshot(topic)).partitioned.get(str(topic))

    async def _snapshot(self, topic: TopicName) -> NamespaceSnapshot:
        snapshot = await self._context.store.snapshot(topic.namespace)
        if snapshot is None:
            raise no_namespace()
        return snapshot

    def is_stored(self, topic: TopicName) -> bool:
        """Return True if messages or subscriptions of a topic were ever stored here."""
        return self._context.messaging.store.holds(str(topic))

    async def load(self, topic: TopicName, *, create: bool = False) -> Topic:
        """Return a topic, loading it if necessary.

        Raises:
            RestError: The topic is missing, not served here, or its messages are unreadable.
            ServedElsewhereError: Another broker serves the topic.
        """
        await check_owner(self._context, topic)
        try:
            return await self.loaded.get(topic, create=create)
        except RequestError as error:
            text = f"Topic {topic} not found"
            missing = error.server_error == pb.TopicNotFound
            status = _STATUS.get(error.server_error, 500)
            raise RestError(status, text if missing else error.message) from None

    async def one(self, request: web.Request, refusal: str = "") -> Topic:
        """Return the topic or partition in the request's path, loading it if necessary.

        Args:
            request: A request with a topic in the path.
            refusal: The error text for a partitioned topic; empty: the topic is not found.

        Raises:
            RestError: 405, the topic is partitioned.
            RefusedError: The topic does not exist.
        """
        topic = topic_name(request)
        if await self.partitions(topic) is not None:
            if refusal:
                raise RestError(405, refusal)
            raise not_found(topic)
        return await self.load(topic)

    async def stored(self, request: web.Request, refusal: str = "") -> PersistentTopic:
        """Return the persistent topic or partition in the request's path; see ``one``."""
        return persistent(await self.one(request, refusal))

    async def names(self, request: web.Request) -> list[TopicName]:
        """Return the topic in the path or, if it is partitioned, its existing partitions.

        Raises:
            RefusedError: The topic does not exist.
        """
        topic = topic_name(request)
        count = await self.partitions(topic)
        if count is None:
            return [topic]
        snapshot = await self._context.snapshot(topic.namespace)
        found = []
        async for index in in_turns(range(count)):
            name = partition_name(topic, index)
            if snapshot.holds(name.encode()):
                found.append(TopicName.parse(name))
        return found

    async def all(self, request: web.Request) -> list[Topic]:
        """Load the topic in the path or, if it is partitioned, its existing partitions."""
        names = await self.names(request)
        await check_owner_of_all(self._context, names)
        return [await self.load(name) async for name in in_turns(names)]

    async def all_stored(self, request: web.Request) -> list[PersistentTopic]:
        """Load the persistent topic in the path or, if partitioned, its existing partitions."""
        return [persistent(topic) for topic in await self.all(request)]

    async def use_partitions(self, request: web.Request, topic: TopicName, count: int) -> None:
        """Create a non-persistent topic's missing partitions, in profile pulsar only.

        A real broker creates such partitions when they are used (recorded).

        Raises:
            RestError: The request to create comes from another site's page.
        """
        if topic.persistent or not self._context.rules.creates_used_partitions:
            return
        snapshot = await self._context.snapshot(topic.namespace)
        async for index in in_turns(range(count)):
            name = partition_name(topic, index)
            if not snapshot.holds(name.encode()):
                check_change(request)
                await self.load(TopicName.parse(name), create=True)

    async def subscribed(
        self, request: web.Request, topics: Sequence[Topic]
    ) -> AsyncIterator[PersistentTopic]:
        """Yield those persistent topics that have the subscription in the path.

        The topics are yielded over several event-loop turns.

        Raises:
            RestError: 404, a topic lacks the subscription. In profile pulsar the error is raised
                after the last topic.
        """
        name, asked = subscription_name(request), topic_name(request)
        if not self._context.rules.acts_before_it_refuses:
            await check_subscribed(topics, name, asked)
        async for topic in self.each(stored_of(topics)):
            if topic.subscriptions.get(name) is not None:
                yield topic
        await check_subscribed(topics, name, asked)

    async def each(self, topics: Iterable[T]) -> AsyncIterator[T]:
        """Yield the given topics one by one, over several event-loop turns.

        Topics that were unloaded meanwhile are loaded again.

        Raises:
            RestError, ServedElsewhereError: See ``load``.
        """
        async for topic in in_turns(topics):
            # A topic loaded again by name has the same type.
            yield cast("T", await self.load(topic.name)) if topic.closing else topic

    async def flushed(self, *topics: Topic) -> None:
        """Wait until changes of the given topics are as durable as the message store makes them.

        Raises:
            RestError, ServedElsewhereError: See ``load``.
            MessageStoreError: The store failed.
        """
        async for topic in in_turns(stored_of(topics)):
            try:
                await topic.ledger.flushed()
            except MessageStoreError:
                # Unloaded meanwhile, which keeps the changes; a failed store fails again.
                await persistent(await self.load(topic.name)).ledger.flushed()


def check_persistent(request: web.Request, what: str) -> None:
    """Refuse a request about a non-persistent topic, even a missing one.

    Args:
        request: A request with a topic in the path.
        what: The requested operation.

    Raises:
        RestError: 405, the topic is non-persistent.
    """
    if not topic_name(request).persistent:
        raise RestError(405, f"{what} on a non-persistent topic is not allowed")


def persistent(topic: Topic) -> PersistentTopic:
    """Return the given topic if it is persistent; otherwise refuse the request.

    Raises:
        FailsUpstreamError: The topic is non-persistent.
    """
    if not isinstance(topic, PersistentTopic):
        raise FailsUpstreamError(405, f"{topic.name} stores no messages: it is non-persistent")
    return topic


def last_id(topic: PersistentTopic) -> Position:
    """Return the position of a topic's last message; (-1, -1) if it is no longer stored.

    If the topic is terminated, return the end of its last ledger in this case.
    """
    ledger = topic.ledger
    last = ledger.last_confirmed
    if last.entry_id < 0 or ledger.holds(last):
        return last
    return Position(ledger.ledgers[-1].ledger_id, -1) if topic.terminated else EARLIEST


def subscription_name(request: web.Request) -> str:
    """Return the name of the subscription in the request's path."""
    return segment(request, "subName")


def no_subscription(name: str, topic: object) -> RestError:
    """Return the error, status 404, for a subscription that a topic lacks."""
    return RestError(404, f"Subscription {name} not found for topic {topic}")


async def check_subscribed(
    topics: Iterable[Topic], name: str, asked: TopicName | None = None
) -> None:
    """Refuse a request if any of the topics, persistent or not, lacks the subscription.

    Args:
        topics: A topic, or the partitions of a topic.
        name: The subscription.
        asked: The topic named in the error text; None: the topic that lacks the subscription.

    Raises:
        RestError: 404, a topic lacks the subscription.
    """
    async for topic in in_turns(topics):
        if topic.subscriptions.get(name) is None:
            raise no_subscription(name, asked or topic.name)


def stored_of(topics: Iterable[Topic]) -> list[PersistentTopic]:
    """Return the persistent topics among the given topics."""
    return [topic for topic in topics if isinstance(topic, PersistentTopic)]


def subscription_of(topic: PersistentTopic, name: str) -> Subscription:
    """Return a persistent topic's subscription, given the subscription's name.

    Raises:
        RestError: 404, the subscription does not exist.
    """
    found = topic.subscriptions.get(name)
    if found is None:
        raise no_subscription(name, topic.name)
    return found


def created(
    topic: PersistentTopic,
    name: str,
    *,
    start: Position = EARLIEST,
    properties: Mapping[str, str] | None = None,
) -> Subscription:
    """Create a subscription of a topic, beginning at the entry ``start``, and return it.

    Raises:
        RestError: The topic has too many subscriptions (409), or the name is reserved (412).
    """
    try:
        return topic.subscriptions.create(name, start=start, properties=properties)
    except RequestError as error:
        full = error.server_error == pb.NotAllowedError
        raise RestError(409 if full else 412, error.message) from None
