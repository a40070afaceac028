"""Attaches a client's consumer to a subscription, which is created if need be."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.messages.position import from_wire
from broker.subscriptions.consumer import ConsumerOptions
from broker.subscriptions.subscription import SubType
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.messages.position import Position
    from broker.subscriptions.consumer import ClientConnection, Consumer
    from broker.subscriptions.context import SubscribedTopic
    from broker.subscriptions.subscription import Subscription
    from broker.subscriptions.subscriptions import Subscriptions

logger = logging.getLogger(__name__)

_COMPACTED_TYPES = frozenset((pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover))


def check_subscribe(asked: pb.CommandSubscribe) -> None:
    """Refuse what no topic takes.

    Raises:
        RequestError: The subscription has no name, or reads a compacted view that its type cannot.
    """
    if not asked.subscription:
        raise RequestError(pb.ProducerBusy, "Empty subscription name")
    if asked.read_compacted and asked.subType not in _COMPACTED_TYPES:
        text = "readCompacted only allowed on failover or exclusive subscriptions"
        raise RequestError(pb.NotAllowedError, text)


def options_of(asked: pb.CommandSubscribe) -> ConsumerOptions:
    """Return the values that a client subscribes with."""
    return ConsumerOptions(
        consumer_id=asked.consumer_id,
        name=asked.consumer_name,
        type=asked.subType,
        priority_level=asked.priority_level,
        epoch=asked.consumer_epoch if asked.HasField("consumer_epoch") else -1,
        key_shared=asked.keySharedMeta if asked.HasField("keySharedMeta") else None,
        read_compacted=asked.read_compacted,
        durable=asked.durable,
        metadata={one.key: one.value for one in asked.metadata},
    )


async def open_subscription(
    topic: SubscribedTopic, subscriptions: Subscriptions, asked: pb.CommandSubscribe
) -> Subscription:
    """Return the subscription that a client names, created and stored if need be.

    Raises:
        RequestError: It may not be created, or not by this topic's policies.
    """
    type_name = SubType.Name(asked.subType)
    if type_name not in topic.policies.subscription_types:
        text = f"Topic[{{{topic.name}}}] doesn't support {type_name} sub type!"
        raise RequestError(pb.NotAllowedError, text)
    most = topic.policies.max_consumers
    if 0 < most <= subscriptions.consumer_count:
        raise RequestError(pb.ConsumerBusy, "Topic reached max consumers limit")
    found = subscriptions.get(asked.subscription)
    if found is not None:
        _check_durability(found, durable=asked.durable)
        return found
    if asked.durable and not topic.policies.auto_subscription_creation:
        raise RequestError(pb.SubscriptionNotFound, "Subscription does not exist")
    created = subscriptions.create(
        asked.subscription,
        earliest=asked.initialPosition == pb.CommandSubscribe.Earliest,
        start=_start(topic, asked),
        durable=asked.durable,
        properties={one.key: one.value for one in asked.subscription_properties},
    )
    if asked.durable:
        await topic.ledger.flushed()
    return subscriptions.get(asked.subscription) or created


def _check_durability(found: Subscription, *, durable: bool) -> None:
    if found.durable is not durable:
        kind = "Durable" if found.durable else "NonDurable"
        text = f"{kind} subscription with the same name already exists."
        raise RequestError(pb.NotAllowedError, text)


def _start(topic: SubscribedTopic, asked: pb.CommandSubscribe) -> Position | None:
    """Return the entry that a new subscription begins with, if it says so otherwise."""
    if asked.start_message_rollback_duration_sec > 0:
        back_ms = asked.start_message_rollback_duration_sec * 1000
        return topic.ledger.published_at(topic.clock.wall_ms() - back_ms)
    if not asked.durable and asked.HasField("start_message_id"):
        start = asked.start_message_id
        return from_wire(start.ledgerId, start.entryId)
    return None


async def displace_dead(subscription: Subscription, cnx: ClientConnection) -> None:
    """Ask the connection of an Exclusive consumer whether it lives, and end it if it does not."""
    exclusive = pb.CommandSubscribe.Exclusive
    for consumer in list(subscription.consumers):
        if subscription.type == exclusive and consumer.cnx is not cnx:
            await consumer.cnx.answers_ping()


def attach(subscription: Subscription, cnx: ClientConnection, options: ConsumerOptions) -> Consumer:
    """Connect a consumer, and answer its client."""
    consumer = subscription.add_consumer(cnx, options)
    cnx.consumers[options.consumer_id] = consumer
    return consumer
