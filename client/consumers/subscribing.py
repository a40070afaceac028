"""Commands to subscribe a consumer to a topic, and to close it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.exceptions import InvalidConfiguration
from client.messages.enums import ConsumerType, InitialPosition, KeySharedMode

if TYPE_CHECKING:
    from client.consumers.options import ConsumerOptions
    from client.messages.message_id import MessageId

_TYPES = {
    ConsumerType.Exclusive: pb.CommandSubscribe.Exclusive,
    ConsumerType.Shared: pb.CommandSubscribe.Shared,
    ConsumerType.Failover: pb.CommandSubscribe.Failover,
    ConsumerType.KeyShared: pb.CommandSubscribe.Key_Shared,
}
NOBODY_ASKED = 2**64 - 1
"""A request id without a waiter."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A consumer's subscription.

    Attributes:
        name: Name of the subscription.
        consumer_name: Name of the consumer.
        durable: False for a reader's subscription, deleted with the reader.
    """

    name: str
    consumer_name: str
    durable: bool = True

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not name:
            raise InvalidConfiguration(
                f"subscription_name is a str and not empty, not {name!r:.50}"
            )


def subscribe_command(  # noqa: PLR0913 - the fields of SUBSCRIBE
    request_id: int,
    consumer_id: int,
    topic: str,
    subscription: Subscription,
    options: ConsumerOptions,
    epoch: int | None,
    start: MessageId | None,
) -> pb.BaseCommand:
    """Return SUBSCRIBE.

    Args:
        request_id: The request's id.
        consumer_id: The consumer's number.
        topic: Full name.
        subscription: The subscription.
        options: Consumer options.
        epoch: Number of full redeliveries requested; None for Shared types.
        start: Start position of a non-durable subscription.
    """
    earliest = options.initial_position is InitialPosition.Earliest
    subscribe = pb.CommandSubscribe(
        topic=topic,
        subscription=subscription.name,
        subType=_TYPES[options.consumer_type],
        consumer_id=consumer_id,
        request_id=request_id,
        consumer_name=subscription.consumer_name,
        priority_level=options.priority_level,
        durable=subscription.durable,
        read_compacted=options.is_read_compacted,
        initialPosition=(pb.CommandSubscribe.Earliest if earliest else pb.CommandSubscribe.Latest),
        replicate_subscription_state=options.replicate_subscription_state_enabled,
        force_topic_creation=options.force_topic_creation,
    )
    if epoch is not None:
        subscribe.consumer_epoch = epoch
    if start is not None:
        subscribe.start_message_id.CopyFrom(start.to_proto())
    for key, value in (options.properties or {}).items():
        subscribe.metadata.add(key=key, value=value)
    for key, value in options.subscription_properties.items():
        subscribe.subscription_properties.add(key=key, value=value)
    info = options.schema.schema_info() if options.schema is not None else None
    if info is not None:
        subscribe.schema.CopyFrom(info)
    if options.consumer_type is ConsumerType.KeyShared:
        _describe_keys(subscribe.keySharedMeta, options)
    return pb.BaseCommand(type=pb.BaseCommand.SUBSCRIBE, subscribe=subscribe)


def _describe_keys(meta: pb.KeySharedMeta, options: ConsumerOptions) -> None:
    policy = options.key_shared_policy
    sticky = policy is not None and policy.key_shared_mode is KeySharedMode.Sticky
    meta.keySharedMode = pb.STICKY if sticky else pb.AUTO_SPLIT
    if policy is not None:
        meta.allowOutOfOrderDelivery = policy.allow_out_of_order_delivery
        for start, end in policy.sticky_ranges:
            meta.hashRanges.add(start=start, end=end)


def close_command(consumer_id: int, request_id: int = NOBODY_ASKED) -> pb.BaseCommand:
    """Return CLOSE_CONSUMER."""
    close = pb.CommandCloseConsumer(consumer_id=consumer_id, request_id=request_id)
    return pb.BaseCommand(type=pb.BaseCommand.CLOSE_CONSUMER, close_consumer=close)
