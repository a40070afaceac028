"""The handler of SUBSCRIBE, which attaches a consumer to a subscription."""

from __future__ import annotations

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
    reserved_name,
)
from proto.commands import with_body
from proto.excerpts import excerpt
from proto.names import InvalidNameError, TopicName, is_blank, is_same_topic
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.cnx import ServerCnx
    from broker.messages.subscriptions.consumer import AnySubscription, Consumer
    from broker.messages.topic import Topic

_OF_REPLICATION = "pulsar.repl"
_ONE_ACTIVE = frozenset((pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover))
TRIES = 3
"""The number of attempts to attach a consumer: unloading or deletion may interfere."""
MOST_PENDING = 10_000
"""The largest number of SUBSCRIBE commands in flight on a connection."""


def subscribe(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a task that attaches a consumer to a subscription."""
    asked = with_body(command, "subscribe").subscribe
    cnx.sought.pop(asked.consumer_id, None)
    there = cnx.consumers.get(asked.consumer_id)
    if there is not None and cnx.parts.refuses_ids_in_use and not _is_of(there, asked):
        of = f"{there.subscription.name[:100]!r} on {excerpt(str(there.subscription.topic.name))}"
        text = f"consumer id {asked.consumer_id} is used for {of}: close that, or use another id"
        refuse(cnx, asked.request_id, RequestError(pb.NotAllowedError, text))
    elif there is not None:
        succeed(cnx, asked.request_id)  # A no-op (recorded, also for another topic).
    elif asked.consumer_id in cnx.subscribing:
        text = "Consumer is already present on the connection"
        refuse(cnx, asked.request_id, RequestError(pb.ServiceNotReady, text))
    elif len(cnx.subscribing) >= MOST_PENDING:
        text = "too many SUBSCRIBE commands of this connection are under way"
        refuse(cnx, asked.request_id, RequestError(pb.TooManyRequests, text))
    else:
        cnx.subscribing[asked.consumer_id] = True
        cnx.requests.tasks.start(asked.request_id, partial(_subscribe, cnx, asked))


def _is_of(there: Consumer, asked: pb.CommandSubscribe) -> bool:
    subscription = there.subscription
    same = is_same_topic(asked.topic, subscription.topic.name)
    return same and asked.subscription == subscription.name


async def _subscribe(cnx: ServerCnx, asked: pb.CommandSubscribe) -> None:
    try:
        check_subscribe(asked)
        await _allowed(cnx, asked)
    except ClosedWithOthersError:
        cnx.send(close_consumer_command(asked.consumer_id))
        succeed(cnx, asked.request_id)
    except RequestError as error:
        refuse(cnx, asked.request_id, error)
    except MessageStoreError as error:
        refuse(cnx, asked.request_id, not_stored(error))
    finally:
        cnx.subscribing.pop(asked.consumer_id)


async def _allowed(cnx: ServerCnx, asked: pb.CommandSubscribe) -> None:
    name, authorization = topic_named(asked.topic), cnx.parts.authorization
    if authorization is None:
        await _join(cnx, asked, name)
        return
    async with authorization.opening(cnx.session, name, Asked.SUBSCRIBE, asked.subscription):
        await _join(cnx, asked, name)


async def _join(cnx: ServerCnx, asked: pb.CommandSubscribe, name: TopicName) -> None:
    """Attach a consumer; retry if the topic or subscription was removed meanwhile.

    Consumers are attached over several event-loop turns: attaching a thousand Key_Shared consumers
    to one ring would block a single turn for long.
    """
    host = cnx.peer.rpartition(":")[0]
    for _ in range(TRIES):
        topic = await _topic(cnx, name, create=asked.force_topic_creation)
        await take_schema(cnx, topic, asked)
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
    # Checked when opened, too; others may have been attached since.
    check_room(topic, topic.subscriptions.consumer_count)
    cnx.consumers[asked.consumer_id] = subscription.add_consumer(cnx, options_of(asked))
    succeed(cnx, asked.request_id)
    return True


def topic_named(text: str) -> TopicName:
    """Parse the topic's name in a client's request.

    Raises:
        RequestError: The name is malformed.
    """
    try:
        return TopicName.parse(text)
    except InvalidNameError as error:
        raise RequestError(pb.InvalidTopicName, f"Invalid topic name: {error}") from None


async def _topic(cnx: ServerCnx, name: TopicName, *, create: bool) -> Topic:
    try:
        return await cnx.parts.loaded_topics.get(name, create=create)
    except RequestError as error:
        if error.server_error == pb.TopicNotFound:
            raise RequestError(pb.TopicNotFound, f"Topic {name} does not exist") from None
        raise


def check_subscribe(asked: pb.CommandSubscribe) -> None:
    """Refuse a SUBSCRIBE that is invalid for every topic.

    Raises:
        RequestError: The subscription's name is empty or reserved, or the type or topic does not
            support reading a compacted view.
    """
    name = asked.subscription
    if not _nothing_is_kept(asked):  # Any name, if non-persistent (recorded).
        if is_blank(name):
            raise RequestError(pb.ProducerBusy, "Empty subscription name")
        if name in INTERNAL or name.startswith(_OF_REPLICATION):
            raise reserved_name()
    if asked.read_compacted and _nothing_is_kept(asked):
        text = "readCompacted only valid on persistent topics"
        raise RequestError(pb.NotAllowedError, text)
    if asked.read_compacted and asked.subType not in _ONE_ACTIVE:
        text = "readCompacted only allowed on failover or exclusive subscriptions"
        raise RequestError(pb.NotAllowedError, text)


def options_of(asked: pb.CommandSubscribe) -> ConsumerOptions:
    """Return the consumer's options in a SUBSCRIBE."""
    return ConsumerOptions(
        consumer_id=asked.consumer_id,
        name=asked.consumer_name,
        type=asked.subType,
        priority_level=asked.priority_level,
        epoch=_epoch(asked),
        key_shared=asked.keySharedMeta if asked.HasField("keySharedMeta") else ANY_HASHES,
        read_compacted=asked.read_compacted,
        durable=asked.durable,
        metadata={one.key: one.value for one in asked.metadata},
        takes_any_schema=asked.HasField("schema") and asked.schema.type == pb.Schema.AutoConsume,
    )


def _epoch(asked: pb.CommandSubscribe) -> int:
    """Return the epoch of an Exclusive or Failover consumer; -1 for other types (recorded).

    -1 also on a non-persistent topic (recorded).
    """
    alone = asked.subType in _ONE_ACTIVE and asked.HasField("consumer_epoch")
    return asked.consumer_epoch if alone and not _nothing_is_kept(asked) else -1


def _nothing_is_kept(asked: pb.CommandSubscribe) -> bool:
    return asked.topic.startswith("non-persistent://")


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
