"""Attaches consumers to subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.messages.subscriptions.consumer import ConsumerOptions
from broker.messages.subscriptions.subscriptions import INTERNAL, reserved_name
from proto.names import is_blank
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.messages.subscriptions.consumer import ClientConnection, Consumer
    from broker.messages.subscriptions.subscription import Subscription

_OF_REPLICATION = "pulsar.repl"
_ONE_ACTIVE = frozenset((pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover))


def check_subscribe(asked: pb.CommandSubscribe) -> None:
    """Refuse a SUBSCRIBE invalid for every topic.

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
    """Return the options of a client's SUBSCRIBE."""
    return ConsumerOptions(
        consumer_id=asked.consumer_id,
        name=asked.consumer_name,
        type=asked.subType,
        priority_level=asked.priority_level,
        epoch=_epoch(asked),
        key_shared=asked.keySharedMeta if asked.HasField("keySharedMeta") else None,
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


async def displace_dead(subscription: Subscription, asked: pb.CommandSubscribe) -> None:
    """Ping the consumers in a newcomer's way, and end dead connections.

    In the way are an Exclusive consumer, or Key_Shared consumers with hashes requested by the
    newcomer. The ping is sent even on the newcomer's connection, but not if the types differ (all
    recorded).
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


def attach(subscription: Subscription, cnx: ClientConnection, options: ConsumerOptions) -> Consumer:
    """Connect a consumer, and register it with the connection."""
    consumer = subscription.add_consumer(cnx, options)
    cnx.consumers[options.consumer_id] = consumer
    return consumer
