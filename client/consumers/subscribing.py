"""A consumer's subscription, its position in the topic, and its subscribe and close commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.exceptions import InvalidConfiguration
from client.messages.enums import ConsumerType, InitialPosition, KeySharedMode
from client.messages.message_id import MessageId
from proto.commands import NO_REQUEST

if TYPE_CHECKING:
    from client.consumers.options import ConsumerOptions
    from client.messages.message import EntryHead
    from client.messages.message_id import Place

_NOWHERE = (-1, -1)


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a topic: a message id, and whether that message is included.

    Attributes:
        message_id: Id of the message.
        inclusive: Whether to start with the message, not after it.
    """

    message_id: MessageId
    inclusive: bool

    @property
    def in_topic(self) -> bool:
        """True if the position is a message; False if it is the start or end of the topic."""
        return self.message_id not in (MessageId.earliest, MessageId.latest)

    @property
    def sent(self) -> MessageId:
        """The message id to send to the broker.

        If a chunked message is included, this is the id of its first chunk.
        """
        if self.inclusive and self.message_id.first_chunk is not None:
            return self.message_id.first_chunk
        return self.message_id

    def skips_entry(self, head: EntryHead) -> bool:
        """Return True if all messages of an entry lie before this position."""
        if not self.in_topic:
            return False
        entry, start = (head.ledger_id, head.entry_id), self.sent
        if entry != start.entry:
            return False
        return self._skipped_indexes(head.batch_size) >= max(1, head.batch_size)

    def is_last_chunk(self, entry: Place) -> bool:
        """Return True if an entry is the last chunk of the start message, which is excluded."""
        start = self.message_id
        return not self.inclusive and start.first_chunk is not None and entry == start.entry

    def skipped_indexes(self, head: EntryHead) -> int:
        """Return the number of an entry's first messages that lie before this position."""
        if not self.in_topic or (head.ledger_id, head.entry_id) != self.sent.entry:
            return 0
        return self._skipped_indexes(head.batch_size)

    def _skipped_indexes(self, batch_size: int) -> int:
        index = self.message_id.batch_index()
        if index < 0 or not batch_size:
            return 0 if self.inclusive else max(1, batch_size)
        return index if self.inclusive else index + 1


@dataclass(slots=True)
class Progress:
    """The position that a consumer has reached since its start or last seek.

    Attributes:
        start: Start position; None to start at the subscription's own position.
        sought_time: Start time in ms since 1970, or None.
        oldest: First entry that has arrived since the start.
        newest: Newest entry that has arrived on the current connection.
        passed: Newest entry without a message to deliver, because it is broken, acknowledged
            before, or compacted away.
        last: The last message that the application received, as the head of its entry and its batch
            index.
    """

    start: Position | None = None
    sought_time: int | None = None
    oldest: Place | None = None
    newest: Place = _NOWHERE
    passed: Place = _NOWHERE
    last: tuple[EntryHead, int] | None = None

    @property
    def taken_id(self) -> MessageId:
        """The id of the last message the application received; at first ``MessageId.earliest``."""
        if self.last is None:
            return MessageId.earliest
        head, index = self.last
        return head.message_id(index)

    def resume(self) -> MessageId:
        """Set the start to follow the last message that the application received.

        Return the start message id to send to the broker. If the application has received no
        message, start at the first entry that arrived, because the topic's end has moved since.
        """
        if self.last is not None:
            self.start = Position(self.taken_id, inclusive=False)
        elif self.oldest is not None and self.start is not None and not self.start.in_topic:
            self.start = Position(MessageId(-1, *self.oldest), inclusive=True)
            self.sought_time = None
        return self.start.sent if self.start is not None else MessageId.latest

    @property
    def unsaid_time(self) -> int | None:
        """The start time in ms since 1970, which SUBSCRIBE cannot transmit.

        It is None without a start time, and once an entry has arrived.
        """
        return self.sought_time if self.last is None and self.oldest is None else None

    def connection_lost(self) -> None:
        """Forget the arrived messages not yet received by the application.

        The broker redelivers them.
        """
        self.newest = self.passed = _NOWHERE


_TYPES = {
    ConsumerType.Exclusive: pb.CommandSubscribe.Exclusive,
    ConsumerType.Shared: pb.CommandSubscribe.Shared,
    ConsumerType.Failover: pb.CommandSubscribe.Failover,
    ConsumerType.KeyShared: pb.CommandSubscribe.Key_Shared,
}


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription that a consumer uses, and the consumer's name.

    Attributes:
        name: Name of the subscription.
        consumer_name: Name of the consumer.
        durable: False for a reader's subscription, which is deleted with the reader.
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
    """Return the command SUBSCRIBE for a consumer.

    Args:
        request_id: The request's id.
        consumer_id: The consumer's number within the client.
        topic: Full name of the topic.
        subscription: The subscription.
        options: Consumer options.
        epoch: Number of requested redeliveries of all unacknowledged messages; None for Shared
            types.
        start: Start position of a reader's (non-durable) subscription.
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
    for key, value in (options.subscription_properties or {}).items():
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


def close_command(consumer_id: int, request_id: int = NO_REQUEST) -> pb.BaseCommand:
    """Return the command CLOSE_CONSUMER for a consumer."""
    close = pb.CommandCloseConsumer(consumer_id=consumer_id, request_id=request_id)
    return pb.BaseCommand(type=pb.BaseCommand.CLOSE_CONSUMER, close_consumer=close)
