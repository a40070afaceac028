"""A loaded topic with producers, whose connections keep received commands."""

from dataclasses import dataclass, field
from typing import Any

import proto.PulsarApi_pb2 as pb
from broker.configuration.config import BrokerConfig
from broker.messages.errors import MessageStoreError
from broker.messages.metadata import MessageDigest, digest_of, parse_metadata
from broker.messages.position import Position
from broker.messages.producer import ClosedProducers, Producer
from broker.messages.publishing.throttling import (
    ConnectionPublishes,
    PublishBuffer,
    PublishLimits,
    PublishRate,
)
from broker.messages.stores.memory import MemoryManagedLedger, MemoryMessageStore
from broker.messages.topic import PersistentTopic, Topic, TopicContext
from broker.policies.effective import DEFAULTS, NO_RATE, EffectivePolicies
from limiter.flow.read_gate import ReadGate
from proto.frames import encode_payload_command
from proto.names import TopicName
from tests.support.clocks.manual_clock import ManualClock
from tests.support.messages.consumers import KeptConnection

NAME = TopicName.parse("persistent://public/default/t")


def limits(clock: ManualClock, max_pending: int = 0, buffer_bytes: int = 0) -> PublishLimits:
    return PublishLimits(PublishBuffer(buffer_bytes), PublishRate(NO_RATE, clock), max_pending)


class ProducingConnection(KeptConnection):
    """A connection with producers.

    Attributes:
        gate: Closed while reading is paused.
    """

    def __init__(self, clock: ManualClock, of: PublishLimits | None = None) -> None:
        super().__init__()
        self.producers: dict[int, Producer] = {}
        self.gate = ReadGate(lambda: None, lambda: None)
        self.publishes = ConnectionPublishes(self.gate, of or limits(clock))
        self.closed_by_broker = ClosedProducers(clock, 30.0)

    def producer_was_closed(self, producer_id: int) -> None:
        self.closed_by_broker.add(producer_id)

    def producer(self, producer_id: int = 1, **fields: Any) -> Producer:
        """Return a producer under creation on this connection."""
        request = pb.CommandProducer(
            topic=str(NAME), producer_id=producer_id, request_id=producer_id + 100, **fields
        )
        made = Producer(self, request, request.producer_name or f"p{producer_id}")
        self.producers[producer_id] = made
        return made

    def take(self) -> list[pb.BaseCommand]:
        """Return the commands since the last call."""
        found = list(self.commands)
        self.commands.clear()
        return found


def entry_bytes(payload: bytes = b"m", **metadata: Any) -> bytes:
    """Return a message's checksum, metadata and payload."""
    fields: dict[str, Any] = {"producer_name": "p", "sequence_id": 0, "publish_time": 1, **metadata}
    framed = encode_payload_command(
        pb.BaseCommand(type=pb.BaseCommand.PING),
        pb.MessageMetadata(**fields).SerializeToString(),
        payload,
    )
    return framed[8 + int.from_bytes(framed[4:8], "big") :]


class SlowLedger(MemoryManagedLedger):
    """A ledger that confirms entries on command."""

    def append(self, data: bytes, digest: MessageDigest) -> Position:
        listener, self.listener = self.listener, None
        try:
            return super().append(data, digest)
        finally:
            self.listener = listener

    def confirm(self, last: Position) -> None:
        """Confirm entries up to a number."""
        assert self.listener is not None
        self.listener.confirmed(last)

    def fail(self) -> None:
        assert self.listener is not None
        self.listener.failed(MessageStoreError("the disk is gone"))


@dataclass
class TopicOnHand:
    """A topic and its parts.

    Attributes:
        broken: Topics whose ledger failed.
    """

    policies: EffectivePolicies = DEFAULTS
    keys: dict[str, str] = field(default_factory=dict)
    store: MemoryMessageStore = field(default_factory=MemoryMessageStore)
    clock: ManualClock = field(default_factory=ManualClock)
    broken: list[Topic] = field(default_factory=list)

    @property
    def context(self) -> TopicContext:
        return TopicContext(
            BrokerConfig.from_properties(self.keys),
            self.clock,
            lambda _: self.policies,
            self.broken.append,
        )

    async def topic(self, *, slow: bool = False) -> PersistentTopic:
        """Return the topic, loaded."""
        ledger = await self.store.open_ledger(str(NAME))
        if slow:
            ledger.__class__ = SlowLedger
        topic = PersistentTopic(NAME, self.context, ledger)
        await topic.recover()
        return topic

    def connection(self, of: PublishLimits | None = None) -> ProducingConnection:
        return ProducingConnection(self.clock, of)


def add(topic: Topic, producer: Producer) -> None:
    producer.topic = topic
    topic.producers.check_room(topic.policies.max_producers)
    topic.producers.add(producer)


def publish(
    topic: Topic, producer: Producer, sequence_id: int = 0, highest: int = 0, **metadata: Any
) -> None:
    data = entry_bytes(producer_name=producer.name, sequence_id=sequence_id, **metadata)
    topic.publish(producer, sequence_id, highest, data, digest_of(parse_metadata(data)))
