"""Consumers, each of which connects a client to a subscription."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

import proto.PulsarApi_pb2 as pb
from broker.messages.statistics import Counters, Rates
from broker.messages.subscriptions.context import Waits
from broker.messages.subscriptions.key_shared.ranges import FixedRanges, MovedHashes
from broker.messages.subscriptions.message_frames import MessageFrames
from broker.messages.subscriptions.place_map import PlaceMap
from broker.ownership.handing_over import tell_new_owner
from proto.commands import NO_REQUEST
from server.configuration.addresses import NO_URLS, ServerUrls
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.messages.entry import Entry
    from broker.messages.position import Position
    from broker.messages.subscriptions.context import Hashes, SubscribedTopic
    from broker.messages.subscriptions.cursor import ManagedCursor
    from limiter.flow.outbound_buffer import OutboundBuffer
    from proto.transport.turn_writer import TurnWriter


SubType = pb.CommandSubscribe.SubType
ANY_HASHES = pb.KeySharedMeta()
"""The distribution of keys if the client requests none, shared by all consumers."""
NOT_ALONE = "Unconnected or shared consumer attempting to unsubscribe"


class Sent(NamedTuple):
    """The number and bytes of messages sent to consumers, including redeliveries."""

    messages: int = 0
    size_bytes: int = 0


class ClientConnection(Protocol):
    """The interface (typing Protocol) with the methods of a connection that consumers call.

    Attributes:
        consumers: The connection's consumers by id.
        turn_writer: Sends messages, with one write per event-loop turn.
        outbound: Reports whether the client reads what is sent.
        client_version: The client's version text.
    """

    consumers: dict[int, Consumer]
    turn_writer: TurnWriter
    outbound: OutboundBuffer
    peer: str
    client_version: str

    @property
    def role(self) -> str | None:
        """The peer's authenticated role; None without authentication."""

    def send(self, command: pb.BaseCommand) -> None:
        """Queue a command for sending after the messages of the current event-loop turn."""

    def send_with_turn(self, command: pb.BaseCommand) -> None:
        """Queue a command for sending in one write with this event-loop turn's messages."""

    async def answers_ping(self) -> bool:
        """Return True if the client answers a ping; otherwise close the connection."""


class AnySubscription(ABC):
    """The common base class of subscriptions, with or without stored messages.

    Attributes:
        name: The subscription's name.
        topic: The topic.
        cursor: The record of acknowledgements; a stub if the topic is non-persistent.
        durable: True if the subscription outlives its consumers.
        type: The subscription type of the consumers; None before the first consumer.
        internal: True for the broker's own subscription, which compaction uses.
        messages_out, bytes_out: Messages and bytes sent to consumers that have left.
    """

    cursor: ManagedCursor
    durable: bool
    internal = False

    def __init__(self, name: str, topic: SubscribedTopic) -> None:
        self.name = name
        self.topic = topic
        self.type: SubType.ValueType | None = None
        self.messages_out = 0
        self.bytes_out = 0

    @property
    @abstractmethod
    def consumers(self) -> Sequence[Consumer]:
        """The connected consumers."""

    @property
    def awaited(self) -> bool:
        """True if a SEEK closed the consumers, and no consumer has subscribed again yet."""
        return False

    @property
    @abstractmethod
    def ring(self) -> Hashes | None:
        """The assignment of key hashes to consumers; None if the type is not Key_Shared."""

    def sent(self) -> Sent:
        """Return the number and bytes of the messages sent to past and present consumers."""
        messages, size_bytes = self.messages_out, self.bytes_out
        for consumer in self.consumers:
            messages += consumer.messages_out
            size_bytes += consumer.bytes_out
        return Sent(messages, size_bytes)

    def _count(self, gone: Consumer) -> None:
        self.messages_out += gone.messages_out
        self.bytes_out += gone.bytes_out

    # -- consumers ----------------------------------------------------------------------------

    def conflicting(self, meta: pb.KeySharedMeta) -> Consumer | None:
        """Return a consumer that owns key hashes which a new consumer requests, or None."""
        return self.ring.conflicting(meta) if isinstance(self.ring, FixedRanges) else None

    @abstractmethod
    def add_consumer(self, cnx: ClientConnection, options: ConsumerOptions) -> Consumer:
        """Create a consumer for a client, and connect it to the subscription.

        Raises:
            RequestError: An Exclusive consumer is connected, or the types differ.
        """

    def _check_fits(self, newcomer: ConsumerOptions) -> None:
        if self.type != newcomer.type:
            ours, theirs = (
                SubType.Name(one or pb.CommandSubscribe.Exclusive)
                for one in (self.type, newcomer.type)
            )
            raise RequestError(
                pb.ConsumerBusy,
                f"Subscription is of different type. Active subscription type of '{ours}' is "
                f"different than the connecting consumer's type '{theirs}'.",
            )
        if 0 < self.topic.policies.max_consumers_per_subscription <= len(self.consumers):
            raise RequestError(pb.ConsumerBusy, "Subscription reached max consumers limit")

    @abstractmethod
    def remove_consumer(self, consumer: Consumer) -> None:
        """Disconnect a consumer from the subscription."""

    @abstractmethod
    def close_consumers(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Disconnect all consumers, and notify their clients."""

    def check_unsubscribe(self, *, force: bool) -> None:
        """Refuse to unsubscribe while other consumers are connected.

        Raises:
            RequestError: Other consumers are connected.
        """
        if len(self.consumers) > 1 and not force:
            raise RequestError(pb.MetadataError, NOT_ALONE)

    @abstractmethod
    def delete(self) -> None:
        """Close all consumers, and delete the subscription."""

    # -- commands of consumers ----------------------------------------------------------------

    @abstractmethod
    def flow(self, consumer: Consumer, permits: int) -> None:
        """Add message permits that a consumer's client has granted."""

    @abstractmethod
    def acknowledge(self, consumer: Consumer, ids: Sequence[pb.MessageIdData]) -> None:
        """Acknowledge single entries, or single messages within batches."""

    @abstractmethod
    def acknowledge_cumulatively(self, consumer: Consumer, one: pb.MessageIdData) -> None:
        """Acknowledge all entries up to an entry; no-op for Shared and Key_Shared."""

    @abstractmethod
    def redeliver(
        self,
        consumer: Consumer,
        ids: Sequence[pb.MessageIdData],
        epoch: int | None,
        *,
        more: bool = False,
    ) -> None:
        """Redeliver the given unacknowledged entries of a consumer; without ids, redeliver all.

        Args:
            consumer: The requesting consumer.
            ids: The entries.
            epoch: The consumer's new epoch; None if absent.
            more: True if further ids of the same command follow before any delivery.
        """

    @abstractmethod
    def seek(self, first: Position) -> None:
        """Deliver from the given position on, and close the consumers, which subscribe again."""


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """The options of a consumer, as requested in the client's SUBSCRIBE command.

    Attributes:
        type: The subscription type: Exclusive, Shared, Failover or Key_Shared.
        priority_level: The priority among a subscription's consumers; 0 is the highest.
        epoch: The epoch of an Exclusive or Failover consumer; -1 if absent.
        key_shared: How Key_Shared distributes keys: its mode and the requested hash ranges.
        metadata: The client's properties of the consumer, shown by REST.
        takes_any_schema: True if the consumer reads any schema (AUTO_CONSUME).
    """

    consumer_id: int
    name: str
    type: SubType.ValueType
    priority_level: int = 0
    epoch: int = -1
    key_shared: pb.KeySharedMeta = field(default_factory=lambda: ANY_HASHES)
    read_compacted: bool = False
    durable: bool = True
    metadata: Mapping[str, str] = field(default_factory=dict)
    takes_any_schema: bool = False


class Consumer:
    """A client's consumer of a subscription (upstream: Consumer).

    Attributes:
        permits: The number of messages that the client permits; negative after a batch with more
            messages than permits.
        held_permits: The permits granted while the consumer is blocked, added when it is not.
        number: The consumer's number, unique in the dispatcher.
        pending: For Shared and Key_Shared only: the unacknowledged entries, each with the remaining
            messages and the hash of the key (see ``dispatchers.holding.HASH_BITS``).
        unacked: The number of messages in ``pending``.
        blocked: True if the consumer has too many unacknowledged messages for further delivery.
        messages_out, bytes_out: Totals sent to the consumer, including redeliveries.
        mean_batch: The recent mean number of messages in an entry sent; 0 before the first.
        first_flow_at, last_flow_at: Time of the first and last permits, in ms since 1970; 0 for
            never.
        first_sent_at, last_consumed_at: Time of the first and last delivery.
        last_acked_at: Time of the last acknowledgement.
        epoch: Sent with every message; -1 if absent.
    """

    def __init__(
        self,
        cnx: ClientConnection,
        options: ConsumerOptions,
        subscription: AnySubscription,
        partition: int,
    ) -> None:
        self.cnx = cnx
        self.options = options
        self.consumer_id = options.consumer_id
        self.name = options.name
        self.priority_level = options.priority_level
        self.subscription = subscription
        self.permits = 0
        self.number = -1
        self.pending = PlaceMap()
        self.unacked = 0
        self.blocked = False
        self.held_permits = 0
        self.epoch = options.epoch
        self.messages_out = 0
        self.bytes_out = 0
        self.mean_batch = 0.0
        self._together: list[int] = []
        self.messages_redelivered = 0
        self.messages_acked = 0
        self.last_acked_at = 0
        self.last_consumed_at = 0
        self.last_flow_at = 0
        self.first_flow_at = 0
        self.first_sent_at = 0
        self._wall_ms = subscription.topic.clock.wall_ms
        self.reached_end = False
        self.rates = Rates()
        self.connected_since = datetime.now(UTC)
        self._frames = MessageFrames(options.consumer_id, partition)

    def __repr__(self) -> str:
        kind = "Persistent" if self.subscription.topic.name.persistent else "NonPersistent"
        owner = f"topic={self.subscription.topic.name}, name={self.subscription.name}"
        return (
            f"Consumer{{subscription={kind}Subscription{{{owner}}}, consumerId={self.consumer_id}, "
            f"consumerName={self.name}, address=[R:/{self.cnx.peer}]}}"
        )

    @property
    def waits(self) -> Waits | None:
        """The consumer's own reason for receiving no entry now; None if it can receive one."""
        if self.permits <= 0:
            return Waits.PERMITS
        if self.blocked:
            return Waits.ACKNOWLEDGEMENTS
        return None if self.cnx.outbound.writable else Waits.WRITABLE

    def flowed(self, permits: int) -> None:
        """Add permits that the client has granted; a blocked consumer gets them when unblocked."""
        if self.blocked:
            self.held_permits += permits
        else:
            self.permits += permits
        self.last_flow_at = self._wall_ms()
        if not self.first_flow_at:
            self.first_flow_at = self.last_flow_at

    def unblock(self) -> None:
        """Let the consumer receive messages again, with the permits granted meanwhile."""
        self.blocked = False
        self.permits += self.held_permits
        self.held_permits = 0

    def update_rates(self, seconds: float) -> None:
        """Compute the consumer's message rates for the statistics period that ends now."""
        counted = Counters(
            self.messages_out, self.bytes_out, self.messages_redelivered, self.messages_acked
        )
        self.rates.update(counted, seconds)

    @property
    def connected_text(self) -> str:
        """The time of connecting as Java prints it, with nine digits after the second."""
        return f"{self.connected_since:%Y-%m-%dT%H:%M:%S.%f}000Z"

    def take_hashes(self, ring: Hashes) -> list[MovedHashes[Consumer]]:
        """Assign key hashes of a Key_Shared subscription to the consumer, and return them.

        Raises:
            RequestError: Another consumer owns requested ranges.
        """
        if isinstance(ring, FixedRanges):
            ranges = [(one.start, one.end) for one in self.options.key_shared.hashRanges]
            return ring.add(self, ranges)
        return ring.add(self)

    # -- sending ------------------------------------------------------------------------------

    def deliver(
        self,
        entry: Entry,
        message_count: int,
        redelivery_count: int = 0,
        ack_set: Sequence[int] | None = None,
    ) -> None:
        """Send an entry at the end of the loop turn; use up a permit per unacknowledged message."""
        data = entry.data
        header = self._frames.header(
            entry.ledger_id, entry.entry_id, len(data), redelivery_count, ack_set, self.epoch
        )
        self.cnx.turn_writer.add(header, data)
        self.permits -= message_count
        self.messages_out += entry.message_count
        self._together.append(entry.message_count)
        self.last_consumed_at = self._wall_ms()
        if not self.first_sent_at:
            self.first_sent_at = self.last_consumed_at
        self.bytes_out += len(data)

    def sent_together(self) -> None:
        """End a group of delivered entries, and update the mean number of messages in an entry.

        Source: upstream Consumer.sendMessages (avgMessagesPerEntry).
        """
        if self._together:
            mean = sum(self._together) / len(self._together)
            self.mean_batch = 0.9 * self.mean_batch + 0.1 * mean if self.mean_batch >= 1 else mean
            self._together.clear()

    def tell_active(self, *, is_active: bool) -> None:
        """Tell the client whether its consumer is the active one of a Failover subscription."""
        change = pb.CommandActiveConsumerChange(consumer_id=self.consumer_id, is_active=is_active)
        kind = pb.BaseCommand.ACTIVE_CONSUMER_CHANGE
        self.cnx.send(pb.BaseCommand(type=kind, active_consumer_change=change))

    def tell_end(self) -> None:
        """Tell the client, once, that the terminated topic has no more messages for it."""
        if not self.reached_end:
            self.reached_end = True
            reached = pb.CommandReachedEndOfTopic(consumer_id=self.consumer_id)
            kind = pb.BaseCommand.REACHED_END_OF_TOPIC
            self.cnx.send(pb.BaseCommand(type=kind, reachedEndOfTopic=reached))

    def close(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Close the consumer at the broker's initiative, and notify the client.

        The caller removes the consumer from its subscription.

        Args:
            new_owner: The addresses of the topic's new broker; if empty, the client looks the topic
                up.
        """
        self.cnx.consumers.pop(self.consumer_id, None)
        self.tell_closed(new_owner)

    def tell_closed(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Tell the client that its consumer is closed, unless a new consumer uses the same id."""
        if self.consumer_id not in self.cnx.consumers:
            # Closing many consumers with a system call each would block the event loop.
            self.cnx.send_with_turn(close_consumer_command(self.consumer_id, new_owner))


def close_consumer_command(consumer_id: int, new_owner: ServerUrls = NO_URLS) -> pb.BaseCommand:
    """Return the CLOSE_CONSUMER command for a consumer that the broker closes."""
    closed = pb.CommandCloseConsumer(consumer_id=consumer_id, request_id=NO_REQUEST)
    tell_new_owner(closed, new_owner)
    return pb.BaseCommand(type=pb.BaseCommand.CLOSE_CONSUMER, close_consumer=closed)
