"""A topic in memory with consumers that keep every received command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import digest_of, parse_metadata
from broker.messages.position import Position
from broker.messages.statistics import PublishStatistics
from broker.messages.stores.managed_ledger import ManagedLedger
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.subscriptions.consumer import ANY_HASHES, Consumer, ConsumerOptions
from broker.messages.subscriptions.context import SubscriptionRules
from broker.messages.subscriptions.subscription import Subscription
from broker.messages.subscriptions.subscriptions import Subscriptions
from broker.policies.effective import DEFAULTS, EffectivePolicies
from limiter.flow.outbound_buffer import OutboundBuffer, WriteBufferMarks
from proto.frames import FrameDecoder, encode_payload_command, split_body
from proto.names import TopicName
from proto.transport.turn_writer import TurnWriter
from server.tasks.cooperative import SharedTurns
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle

NAME = TopicName.parse("persistent://public/default/t")


class KeptConnection:
    """A connection whose peer keeps every command, in order."""

    client_version = "test"
    role: str | None = None

    def __init__(self) -> None:
        self.peer = "127.0.0.1:1"
        self.consumers: dict[int, Consumer] = {}
        self.turn_writer = TurnWriter(self._take)
        self.outbound = OutboundBuffer(WriteBufferMarks())
        self._decoder = FrameDecoder()
        self._commands: list[pb.BaseCommand] = []
        self.lives = True

    def _take(self, frames: Sequence[bytes | memoryview], _: int) -> None:
        for frame in frames:
            self._decoder.feed(frame)
        while (whole := self._decoder.next_frame()) is not None:
            command, _ = split_body(whole.body(), whole.total_size)
            self._commands.append(pb.BaseCommand.FromString(command))

    def send(self, command: pb.BaseCommand) -> None:
        """Keep a command behind the turn's messages."""
        self.turn_writer.flush()
        self._commands.append(command)

    def send_with_turn(self, command: pb.BaseCommand) -> None:
        """Keep a command behind the turn's messages."""
        self.send(command)

    async def answers_ping(self) -> bool:
        """Say whether the peer lives."""
        return self.lives

    @property
    def commands(self) -> list[pb.BaseCommand]:
        self.turn_writer.flush()
        return self._commands

    @property
    def messages(self) -> list[pb.CommandMessage]:
        return [one.message for one in self.commands if one.HasField("message")]

    @property
    def entries(self) -> list[int]:
        """The entry ids of all messages so far."""
        return [one.message_id.entryId for one in self.messages]

    def take_entries(self) -> list[int]:
        """Return the entry ids received since the last call."""
        entries = self.entries
        self._commands.clear()
        return entries

    def block(self) -> None:
        """Stop reading: the buffer is above the high mark."""
        self.outbound.weigh(1 << 20)
        self.outbound.became_unwritable()

    def unblock(self) -> None:
        """Read everything."""
        self.outbound.left(1 << 20)
        self.outbound.tell_listeners()


@dataclass
class KeptTopic:
    """A topic of one ledger; publishing notifies its subscriptions immediately."""

    ledger: ManagedLedger
    clock: ManualClock = field(default_factory=ManualClock)
    policies: EffectivePolicies = DEFAULTS
    name: TopicName = NAME
    terminated: bool = False
    published: int = 0
    rules: SubscriptionRules = field(default_factory=SubscriptionRules)
    turns: SharedTurns = field(default_factory=SharedTurns)
    statistics: PublishStatistics = field(default_factory=PublishStatistics)

    def touched(self) -> None:
        """No periodic work visits the topic."""

    def confirmed(self, last: Position) -> None:
        """Immediately."""

    def failed(self, error: Exception) -> None:
        """A memory store does not fail."""
        raise error

    def subscriptions(self, rules: SubscriptionRules | None = None) -> Subscriptions:
        """Return the stored subscriptions."""
        self.rules = rules or self.rules
        return Subscriptions(self)

    def publish(
        self, count: int = 1, *, batch: int = 0, key: str = "", deliver_at: int = 0
    ) -> list[Position]:
        """Store messages or batches without notifying subscriptions."""
        return [self._store(batch, key, deliver_at) for _ in range(count)]

    def publish_chunk(self, uuid: str, number: int, count: int) -> Position:
        """Store a chunk of a chunked message without notifying subscriptions."""
        return self._store(uuid=uuid, chunk_id=number, num_chunks_from_msg=count)

    def _store(self, batch: int = 0, key: str = "", deliver_at: int = 0, **fields: Any) -> Position:
        metadata = pb.MessageMetadata(
            producer_name="p",
            sequence_id=self.published,
            publish_time=1000 + self.published,
            **fields,
        )
        self.published += 1
        if batch:
            metadata.num_messages_in_batch = batch
        if key:
            metadata.partition_key = key
        if deliver_at:
            metadata.deliver_at_time = deliver_at
        sent = pb.BaseCommand(type=pb.BaseCommand.SEND, send=pb.CommandSend())
        sent.send.producer_id = sent.send.sequence_id = 0
        frame = encode_payload_command(sent, metadata.SerializeToString(), b"m")
        _, data = split_body(frame[4:], len(frame) - 4)
        return self.ledger.append(data, digest_of(parse_metadata(data)))


async def kept_topic(policies: EffectivePolicies = DEFAULTS, ledger_entries: int = 50) -> KeptTopic:
    """Return an empty topic with the given number of entries per ledger."""
    store = MemoryMessageStore(max_entries_per_ledger=ledger_entries)
    return KeptTopic(await store.open_ledger(str(NAME)), policies=policies)


async def subscribed_topic(
    policies: EffectivePolicies = DEFAULTS, ledger_entries: int = 50
) -> tuple[KeptTopic, Subscription]:
    """Return a topic, as :func:`kept_topic` does, with the subscription "s"."""
    topic = await kept_topic(policies, ledger_entries)
    return topic, topic.subscriptions().create("s")


async def dispatched(subscription: Subscription) -> None:
    """Let a subscription dispatch the entries added to its topic."""
    subscription.entries_added()
    await settle()


def consume(
    subscription: Subscription,
    kind: pb.CommandSubscribe.SubType.ValueType,
    permits: int = 0,
    *,
    name: str = "c",
    cnx: KeptConnection | None = None,
    priority: int = 0,
    key_shared: pb.KeySharedMeta | None = None,
) -> tuple[Consumer, KeptConnection]:
    """Connect a consumer on its own connection."""
    cnx = cnx or KeptConnection()
    options = ConsumerOptions(
        len(cnx.consumers) + 1,
        name,
        kind,
        priority_level=priority,
        key_shared=key_shared or ANY_HASHES,
    )
    consumer = subscription.add_consumer(cnx, options)
    cnx.consumers[options.consumer_id] = consumer
    if permits:
        subscription.flow(consumer, permits)
    return consumer, cnx


def ids(*positions: Position, ack_set: Sequence[int] = ()) -> list[pb.MessageIdData]:
    """Return positions as a client names them."""
    return [
        pb.MessageIdData(ledgerId=one.ledger_id, entryId=one.entry_id, ack_set=ack_set)
        for one in positions
    ]
