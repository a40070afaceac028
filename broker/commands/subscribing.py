"""The handler of SUBSCRIBE, which attaches a consumer to a subscription."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.authorization.questions import Asked
from broker.commands.consuming import refuse, succeed
from broker.commands.schemas import take_schema
from broker.messages.errors import MessageStoreError, not_stored
from broker.messages.subscriptions.consumer import (
    ANY_HASHES,
    ConsumerOptions,
    close_consumer_command,
)
from broker.messages.subscriptions.subscriptions import (
    INTERNAL,
    ClosedWithOthersError,
    check_room,
    check_type_allowed,
    reserved_name,
)
from broker.topics.lookup import topic_named
from proto.commands import check_keys, with_body
from proto.excerpts import excerpt
from proto.names import is_blank
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.cnx import ServerCnx
    from broker.messages.subscriptions.consumer import AnySubscription, Consumer
    from broker.messages.subscriptions.context import TopicWithPolicies
    from broker.messages.topic import Topic
    from proto.names import TopicName

_OF_REPLICATION = "pulsar.repl"
_ONE_ACTIVE = frozenset((pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover))
TRIES = 3
"""The number of attempts to attach a consumer: unloading or deletion may interfere."""
MOST_PENDING = 10_000
"""The largest number of requests in flight on a connection that sends a SUBSCRIBE."""


def subscribe(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a task that attaches a consumer to a subscription, unless its id is in use.

    Raises:
        RemoteProtocolError: The metadata or the schema's properties repeat a key; the connection
            closes (recorded).
    """
    asked = with_body(command, "subscribe").subscribe
    try:
        name = topic_named(asked.topic)
        _check_tasks(cnx)
    except RequestError as error:
        refuse(cnx, asked.request_id, error)
        return
    check_keys(asked.metadata, asked.schema.properties)
    cnx.sought.pop(asked.consumer_id, None)
    there = cnx.consumers.get(asked.consumer_id)
    if there is not None or asked.consumer_id in cnx.subscribing:
        work = partial(_answer_again, cnx, asked, name, there)
    else:
        cnx.subscribing[asked.consumer_id] = True
        work = partial(_subscribe, cnx, asked, name)
    cnx.requests.tasks.start(asked.request_id, work)


def _check_tasks(cnx: ServerCnx) -> None:
    if len(cnx.requests.tasks) >= MOST_PENDING:
        text = "too many SUBSCRIBE commands of this connection are under way"
        raise RequestError(pb.TooManyRequests, text)


async def _answer_again(
    cnx: ServerCnx, asked: pb.CommandSubscribe, name: TopicName, there: Consumer | None
) -> None:
    """Answer a SUBSCRIBE whose consumer id is in use: a no-op if that consumer is open.

    A consumer of another topic counts, too (recorded); profile floodgate refuses its id.
    """
    try:
        async with _authorized(cnx, asked, name):
            check_metadata(asked, cnx.parts.config.max_consumer_metadata)
            _check_open(cnx, asked, name, there)
    except RequestError as error:
        refuse(cnx, asked.request_id, error)
    else:
        succeed(cnx, asked.request_id)


def _check_open(
    cnx: ServerCnx, asked: pb.CommandSubscribe, name: TopicName, there: Consumer | None
) -> None:
    there = there or cnx.consumers.get(asked.consumer_id)
    if there is None:
        if cnx.subscribing.get(asked.consumer_id):
            text = "Consumer is already present on the connection"
            raise RequestError(pb.ServiceNotReady, text)
        text = "Consumer that failed is already present on the connection"
        raise RequestError(pb.UnknownError, text)
    subscription = there.subscription
    is_same = (subscription.topic.name, subscription.name) == (name, asked.subscription)
    if cnx.parts.refuses_ids_in_use and not is_same:
        of = f"{subscription.name[:100]!r} on {excerpt(str(subscription.topic.name))}"
        text = f"consumer id {asked.consumer_id} is used for {of}: close that, or use another id"
        raise RequestError(pb.NotAllowedError, text)


async def _subscribe(cnx: ServerCnx, asked: pb.CommandSubscribe, name: TopicName) -> None:
    try:
        async with _authorized(cnx, asked, name):
            check_metadata(asked, cnx.parts.config.max_consumer_metadata)
            await _join(cnx, asked, name)
    except ClosedWithOthersError:
        cnx.send(close_consumer_command(asked.consumer_id))
        succeed(cnx, asked.request_id)
    except RequestError as error:
        _fail(cnx, asked, error)
    except MessageStoreError as error:
        _fail(cnx, asked, not_stored(error))
    finally:
        cnx.subscribing.pop(asked.consumer_id)


def _fail(cnx: ServerCnx, asked: pb.CommandSubscribe, error: RequestError) -> None:
    if cnx.subscribing[asked.consumer_id]:  # Otherwise the client has closed the consumer.
        refuse(cnx, asked.request_id, error)


def _authorized(
    cnx: ServerCnx, asked: pb.CommandSubscribe, name: TopicName
) -> AbstractAsyncContextManager[None]:
    """Return a context that checks whether the client may open the consumer."""
    authorization = cnx.parts.authorization
    if authorization is None:
        return nullcontext()
    return authorization.opening(cnx.session, name, Asked.SUBSCRIBE, asked.subscription)


async def _join(cnx: ServerCnx, asked: pb.CommandSubscribe, name: TopicName) -> None:
    """Attach a consumer; retry if the topic or subscription was removed meanwhile.

    Consumers are attached over several event-loop turns: attaching a thousand Key_Shared consumers
    to one ring would block a single turn for long.
    """
    host = cnx.peer.rpartition(":")[0]
    for _ in range(TRIES):
        topic = await _topic(cnx, name, create=asked.force_topic_creation)
        _check_room(topic)
        check_existence(topic, asked)
        await take_schema(cnx, topic, asked)
        check_subscribe(topic, asked)
        opened = await topic.subscriptions.open(asked, host)
        await displace_dead(opened, asked)
        if await cnx.parts.joins.do(partial(_attached, cnx, asked, topic, opened)):
            return
    raise RequestError(pb.ServiceNotReady, f"{name} is being unloaded or deleted: ask again")


def _attached(
    cnx: ServerCnx, asked: pb.CommandSubscribe, topic: Topic, subscription: AnySubscription
) -> bool:
    """Attach a consumer and answer the client; return False if the subscription was removed."""
    if not cnx.subscribing[asked.consumer_id]:
        return True  # The client has closed the consumer and expects no answer.
    if topic.closing or topic.subscriptions.get(asked.subscription) is not subscription:
        return False
    _check_room(topic)  # Again, as others may have been attached since.
    options = options_of(asked, persistent=topic.name.persistent)
    cnx.consumers[asked.consumer_id] = subscription.add_consumer(cnx, options)
    succeed(cnx, asked.request_id)
    return True


def _check_room(topic: Topic) -> None:
    if topic.policies.max_consumers > 0:  # Counting takes time.
        check_room(topic, topic.subscriptions.consumer_count)


async def _topic(cnx: ServerCnx, name: TopicName, *, create: bool) -> Topic:
    try:
        return await cnx.parts.loaded_topics.get(name, create=create)
    except RequestError as error:
        if error.server_error == pb.TopicNotFound:
            raise RequestError(pb.TopicNotFound, f"Topic {name} does not exist") from None
        raise


def check_metadata(asked: pb.CommandSubscribe, most: int) -> None:
    """Refuse a SUBSCRIBE with more metadata than maxConsumerMetadataSize.

    Raises:
        RequestError: The metadata is too large.
    """
    text = "".join(one.key + one.value for one in asked.metadata)
    if len(text.encode("utf-16-le")) // 2 > most:  # Java's characters.
        raise RequestError(pb.MetadataError, f"metadata has a max size of {most} bytes")


def check_existence(topic: Topic, asked: pb.CommandSubscribe) -> None:
    """Refuse a missing durable subscription if clients may not create subscriptions.

    Raises:
        RequestError: The subscription is missing.
    """
    is_made = topic.policies.auto_subscription_creation or asked.subscription in topic.subscriptions
    if asked.durable and topic.name.persistent and not is_made:
        raise RequestError(pb.SubscriptionNotFound, "Subscription does not exist")


def check_subscribe(topic: TopicWithPolicies, asked: pb.CommandSubscribe) -> None:
    """Refuse a SUBSCRIBE that a topic never allows, whatever its subscriptions are.

    Raises:
        RequestError: The type or topic does not support reading a compacted view, the topic's
            policies disallow the type, or the subscription's name is empty or reserved.
    """
    name, persistent = asked.subscription, topic.name.persistent
    of_replication = name.startswith(_OF_REPLICATION)
    if of_replication and not persistent:
        raise reserved_name()
    if asked.read_compacted:
        _check_compacted(asked, persistent=persistent)
    check_type_allowed(topic, asked)
    if persistent and is_blank(name):
        raise RequestError(pb.ProducerBusy, "Empty subscription name")
    if persistent and (of_replication or name in INTERNAL):
        raise reserved_name()


def _check_compacted(asked: pb.CommandSubscribe, *, persistent: bool) -> None:
    if not persistent:
        text = "readCompacted only valid on persistent topics"
        raise RequestError(pb.NotAllowedError, text)
    if asked.subType not in _ONE_ACTIVE:
        text = "readCompacted only allowed on failover or exclusive subscriptions"
        raise RequestError(pb.NotAllowedError, text)


def options_of(asked: pb.CommandSubscribe, *, persistent: bool = True) -> ConsumerOptions:
    """Return the consumer's options in a SUBSCRIBE for a persistent or a non-persistent topic."""
    return ConsumerOptions(
        consumer_id=asked.consumer_id,
        name=asked.consumer_name,
        type=asked.subType,
        priority_level=asked.priority_level,
        epoch=_epoch(asked) if persistent else -1,
        key_shared=asked.keySharedMeta if asked.HasField("keySharedMeta") else ANY_HASHES,
        read_compacted=asked.read_compacted,
        durable=asked.durable,
        metadata={one.key: one.value for one in asked.metadata},
        takes_any_schema=asked.HasField("schema") and asked.schema.type == pb.Schema.AutoConsume,
    )


def _epoch(asked: pb.CommandSubscribe) -> int:
    """Return the epoch of an Exclusive or Failover consumer; -1 for other types (recorded)."""
    alone = asked.subType in _ONE_ACTIVE and asked.HasField("consumer_epoch")
    return asked.consumer_epoch if alone else -1


async def displace_dead(subscription: AnySubscription, asked: pb.CommandSubscribe) -> None:
    """Ping the consumers that conflict with a new consumer, and close dead connections.

    A new consumer conflicts with an Exclusive consumer, or with Key_Shared consumers that own
    hashes which it requests. The ping is sent even if both consumers use one connection, but not if
    the subscription types differ (all recorded).
    """
    if subscription.type != asked.subType:
        return
    in_the_way: list[Consumer] = []
    if asked.subType == pb.CommandSubscribe.Exclusive:
        in_the_way = list(subscription.consumers)
    elif (found := subscription.conflicting(asked.keySharedMeta)) is not None:
        in_the_way = [found]
    for consumer in in_the_way:
        await consumer.cnx.answers_ping()
