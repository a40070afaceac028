"""A consumer: one client's part of a subscription."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from broker.ownership.handing_over import tell_new_owner
from broker.subscriptions.message_frames import MessageFrames
from broker.subscriptions.places.place_map import PlaceMap
from broker.subscriptions.rates import Counters, Rates
from broker.subscriptions.waits import Waits
from proto.commands import NO_REQUEST
from server.configuration.addresses import NO_URLS, ServerUrls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.messages.entry import Entry
    from broker.messages.position import Position
    from broker.subscriptions.context import SubscribedTopic
    from broker.subscriptions.cursor import ManagedCursor
    from limiter.flow.outbound_buffer import OutboundBuffer
    from proto.transport.turn_writer import TurnWriter


class ClientConnection(Protocol):
    """A client's connection, as far as its consumers depend on it.

    Attributes:
        consumers: Its consumers by id.
        turn_writer: Sends messages, those of a turn at once.
        outbound: Tells whether the client reads what it is sent.
        client_version: As it calls itself.
    """

    consumers: dict[int, Consumer]
    turn_writer: TurnWriter
    outbound: OutboundBuffer
    peer: str
    client_version: str

    @property
    def role(self) -> str | None:
        """The one that its peer was authenticated with; None without authentication."""

    def send(self, command: pb.BaseCommand) -> None:
        """Queue a command behind the messages of this turn."""

    def send_with_turn(self, command: pb.BaseCommand) -> None:
        """Queue a command among the messages of this turn, in one write with them."""

    async def answers_ping(self) -> bool:
        """Ask the client whether it lives; one that does not answer is disconnected."""


class ConsumersSubscription(Protocol):
    """A subscription, as far as its consumers' commands depend on it."""

    name: str
    cursor: ManagedCursor
    topic: SubscribedTopic

    @property
    def internal(self) -> bool:
        """True if its cursor says what the broker itself has done."""

    @property
    def awaited(self) -> bool:
        """True while a SEEK has closed its consumers, and nobody has come since."""

    def flow(self, consumer: Consumer, permits: int) -> None:
        """Give a consumer room for more messages."""

    def acknowledge(self, consumer: Consumer, ids: Sequence[pb.MessageIdData]) -> None:
        """Acknowledge entries, or messages of batches, one by one."""

    def acknowledge_cumulatively(self, consumer: Consumer, one: pb.MessageIdData) -> None:
        """Acknowledge everything up to an entry."""

    def redeliver(
        self,
        consumer: Consumer,
        ids: Sequence[pb.MessageIdData],
        epoch: int | None,
        *,
        more: bool = False,
    ) -> None:
        """Deliver again what a consumer gives back; with ``more``, others follow first."""

    def seek(self, first: Position) -> None:
        """Make an entry the next one."""

    def remove_consumer(self, consumer: Consumer) -> None:
        """Disconnect a consumer."""

    def close_consumers(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Disconnect all consumers, and tell their clients."""

    def check_unsubscribe(self, *, force: bool) -> None:
        """Refuse to delete it under other consumers."""

    def delete(self) -> None:
        """Close all consumers, and forget what they acknowledged."""


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """The values that a client subscribes with.

    Attributes:
        type: Exclusive, Shared, Failover or Key_Shared.
        priority_level: 0 is the highest.
        epoch: Of an Exclusive or Failover consumer; -1 for none.
        key_shared: How keys are shared out; None for none given.
        metadata: Shown by REST.
        takes_any_schema: It reads whatever schema there is (AUTO_CONSUME).
    """

    consumer_id: int
    name: str
    type: pb.CommandSubscribe.SubType.ValueType
    priority_level: int = 0
    epoch: int = -1
    key_shared: pb.KeySharedMeta | None = None
    read_compacted: bool = False
    durable: bool = True
    metadata: Mapping[str, str] = field(default_factory=dict)
    takes_any_schema: bool = False


class Consumer:
    """A consumer of a subscription (upstream: Consumer).

    Attributes:
        permits: Messages that the client has room for; negative after a batch that had no room.
        number: Its own among those that its dispatcher has had.
        pending: Of Shared and Key_Shared: what it got and has not acknowledged, by entry: the
            messages left, and the hash of the key (see ``broker.subscriptions.places.held``).
        unacked: The messages in ``pending``.
        blocked: It has so many that it gets no more.
        messages_out, bytes_out, entries_out: What was sent to it, redelivered included.
        first_flow_at, last_flow_at: When it gave permits, in ms since 1970; 0 for never.
        first_sent_at, last_consumed_at: When it was sent messages.
        last_acked_at: When it acknowledged some.
        epoch: Sent with every message; -1 for none.
    """

    __slots__ = (
        "_frames",
        "_wall_ms",
        "blocked",
        "bytes_out",
        "cnx",
        "connected_since",
        "consumer_id",
        "entries_out",
        "epoch",
        "first_flow_at",
        "first_sent_at",
        "last_acked_at",
        "last_consumed_at",
        "last_flow_at",
        "messages_acked",
        "messages_out",
        "messages_redelivered",
        "name",
        "number",
        "options",
        "pending",
        "permits",
        "priority_level",
        "rates",
        "reached_end",
        "subscription",
        "unacked",
    )

    def __init__(
        self,
        cnx: ClientConnection,
        options: ConsumerOptions,
        subscription: ConsumersSubscription,
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
        self.epoch = options.epoch
        self.messages_out = 0
        self.bytes_out = 0
        self.entries_out = 0
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

    @property
    def takes_any_schema(self) -> bool:
        """True if it reads whatever schema there is (AUTO_CONSUME)."""
        return self.options.takes_any_schema

    def __repr__(self) -> str:
        kind = "Persistent" if self.subscription.topic.name.persistent else "NonPersistent"
        owner = f"topic={self.subscription.topic.name}, name={self.subscription.name}"
        return (
            f"Consumer{{subscription={kind}Subscription{{{owner}}}, consumerId={self.consumer_id}, "
            f"consumerName={self.name}, address=[R:/{self.cnx.peer}]}}"
        )

    @property
    def takes_messages(self) -> bool:
        """True if an entry can be sent to it now."""
        return self.permits > 0 and not self.blocked and self.cnx.outbound.writable

    @property
    def waits(self) -> Waits | None:
        """The reason in itself why no entry can be sent to it; None if one can."""
        if self.permits <= 0:
            return Waits.PERMITS
        if self.blocked:
            return Waits.ACKNOWLEDGEMENTS
        return None if self.cnx.outbound.writable else Waits.WRITABLE

    def flowed(self, permits: int) -> None:
        """Take permits from the client."""
        self.permits += permits
        self.last_flow_at = self._wall_ms()
        if not self.first_flow_at:
            self.first_flow_at = self.last_flow_at

    def update_rates(self, seconds: float) -> None:
        """End a period of the statistics."""
        counted = Counters(
            self.messages_out, self.bytes_out, self.messages_redelivered, self.messages_acked
        )
        self.rates.update(counted, seconds)

    @property
    def connected_text(self) -> str:
        """The moment it connected, as Java writes it: with nine digits of a second."""
        return f"{self.connected_since:%Y-%m-%dT%H:%M:%S.%f}000Z"

    # -- sending ------------------------------------------------------------------------------

    def deliver(
        self,
        entry: Entry,
        message_count: int,
        redelivery_count: int = 0,
        ack_set: Sequence[int] | None = None,
    ) -> None:
        """Send an entry when the turn ends; it uses up as many permits as messages are left."""
        data = entry.data
        header = self._frames.header(
            entry.ledger_id, entry.entry_id, len(data), redelivery_count, ack_set, self.epoch
        )
        self.cnx.turn_writer.add(header, data)
        self.permits -= message_count
        self.messages_out += message_count
        self.entries_out += 1
        self.last_consumed_at = self._wall_ms()
        if not self.first_sent_at:
            self.first_sent_at = self.last_consumed_at
        self.bytes_out += len(data)

    def send(self, command: pb.BaseCommand) -> None:
        """Send a command behind the messages of this turn."""
        self.cnx.send(command)

    def tell_active(self, *, is_active: bool) -> None:
        """Tell a consumer of a Failover subscription whether it is the active one."""
        change = pb.CommandActiveConsumerChange(consumer_id=self.consumer_id, is_active=is_active)
        kind = pb.BaseCommand.ACTIVE_CONSUMER_CHANGE
        self.send(pb.BaseCommand(type=kind, active_consumer_change=change))

    def tell_end(self) -> None:
        """Tell that the topic was terminated and everything is acknowledged; once."""
        if not self.reached_end:
            self.reached_end = True
            reached = pb.CommandReachedEndOfTopic(consumer_id=self.consumer_id)
            kind = pb.BaseCommand.REACHED_END_OF_TOPIC
            self.send(pb.BaseCommand(type=kind, reachedEndOfTopic=reached))

    def close(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Tell the client that the broker closed it; its place in the subscription is not left.

        Args:
            new_owner: The addresses of the broker to which it is to go; empty: it looks the
                topic up.
        """
        self.cnx.consumers.pop(self.consumer_id, None)
        self.tell_closed(new_owner)

    def tell_closed(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Tell the client as above, unless it has another consumer of this id by now."""
        if self.consumer_id not in self.cnx.consumers:
            # Many may be closed at once, and a system call for each would hold up everybody.
            self.cnx.send_with_turn(close_consumer_command(self.consumer_id, new_owner))


def close_consumer_command(consumer_id: int, new_owner: ServerUrls = NO_URLS) -> pb.BaseCommand:
    """Return the CLOSE_CONSUMER for a consumer that the broker closed."""
    closed = pb.CommandCloseConsumer(consumer_id=consumer_id, request_id=NO_REQUEST)
    tell_new_owner(closed, new_owner)
    return pb.BaseCommand(type=pb.BaseCommand.CLOSE_CONSUMER, close_consumer=closed)
