"""A broker with real subscription rules for a topic's only consumer, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Self

import proto.PulsarApi_pb2 as pb
from client.connection.attached import Attached
from client.connection.errors import DisconnectedError
from client.context import ClientContext
from client.exceptions import PulsarException, server_response_error
from client.messages.outgoing import OutgoingEntry
from client.patience import Patience
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from proto.frames import Frame, FrameDecoder
from proto.transport.turn_writer import TurnWriter
from tests.support.clocks.manual_clock import ManualClock
from tests.support.messages.entries import batch_of, plain
from tests.support.peers.frames import with_checksum

Type = pb.BaseCommand
TOPIC = "persistent://public/default/t"
LEDGER = 7
_OF_CONSUMERS = (Type.SEEK, Type.UNSUBSCRIBE, Type.GET_LAST_MESSAGE_ID)


@dataclass
class Stored:
    """An entry of the topic."""

    tail: bytes
    messages: int
    left: int = 0
    """Unacknowledged messages, as bits; 0 when done."""
    is_batch: bool = False
    sent: bool = False
    redelivery_count: int = 0

    def __post_init__(self) -> None:
        self.left = self.left or (1 << self.messages) - 1
        self.all = (1 << self.messages) - 1


class ModelCnx:
    """A connection to the broker, as consumers see it."""

    def __init__(self, broker: ModelBroker) -> None:
        self._broker = broker
        self.peer = "broker:1"
        self.attached = Attached()
        self.turn_writer = TurnWriter(self._take)
        self.closed = False
        self._decoder = FrameDecoder(1 << 30)
        self._numbers = count()

    def _take(self, frames: Sequence[bytes | memoryview], _: int) -> None:
        for frame in frames:
            self._decoder.feed(frame)
        while (whole := self._decoder.next_frame()) is not None:
            if not self.closed:
                self._broker.said(self, whole.command())

    def send(self, command: pb.BaseCommand) -> None:
        self.turn_writer.flush()
        self._broker.said(self, command)

    async def request(self, build: Callable[[int], pb.BaseCommand]) -> pb.BaseCommand:
        if self.closed:
            raise DisconnectedError(self.peer)
        command = build(next(self._numbers))
        self.turn_writer.flush()
        self._broker.said(self, command)
        if self._broker.hold is not None:
            await self._broker.hold.wait()
        if self.closed:
            raise DisconnectedError(self.peer)
        if self._broker.refusals and (refusal := self._broker.refusals.pop(0)) is not None:
            raise refusal
        return self._broker.answer(self, command)

    def breaks(self) -> None:
        self.turn_writer.flush()
        self.closed = True
        self.attached.lost()


@dataclass
class ModelBroker:
    """The broker, its topic, and the only subscription's acknowledgements.

    Attributes:
        delivers: Whether it sends unprompted, within permits.
        by_index: Whether it acknowledges single messages of batches.
        epochs: Whether it reports the consumer's epoch.
        refusals: Answers to the next requests; None for the usual answer.
        hold: Awaited before an answer.
        commands: Received from consumers.
        permits: Messages it may send.
        most_permits: Maximum of permits so far.
        may_create: Whether each partition request may create the topic.
    """

    limit_bytes: int = 1 << 20
    delivers: bool = True
    by_index: bool = True
    epochs: bool = True
    partition_count: int = 0
    refusals: list[PulsarException | None] = field(default_factory=list)
    hold: asyncio.Event | None = None
    clock: ManualClock = field(default_factory=ManualClock)
    entries: list[Stored] = field(default_factory=list)
    commands: list[pb.BaseCommand] = field(default_factory=list)
    acks: list[pb.CommandAck] = field(default_factory=list)
    permits: int = 0
    most_permits: int = 0
    epoch: int = -1
    subscribed: pb.CommandSubscribe | None = None
    cnx: ModelCnx | None = None
    sought: bool = False
    may_create: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.patience = Patience(self.clock)
        self.memory = MemoryLimitController(self.limit_bytes)
        self.context = ClientContext(self, self.memory, 30.0)  # type: ignore[arg-type]

    # -- the cluster --------------------------------------------------------------------------

    async def connection_of(self, _: str) -> ModelCnx:
        if self.cnx is None or self.cnx.closed:
            self.cnx = ModelCnx(self)
        return self.cnx

    async def connection_by_url(self, url: str) -> ModelCnx:
        return await self.connection_of(url)

    async def partitions(self, _: str, *, auto_create: bool = True) -> int:
        self.may_create.append(auto_create)
        return self.partition_count

    # -- the topic ----------------------------------------------------------------------------

    def publish(
        self, messages: int = 1, *, entries: int = 1, batch: bool | None = None, size: int = 0
    ) -> Self:
        """Store entries: each a batch, or a message alone; payloads are numbers."""
        for _ in range(entries):
            self._publish(messages, batch, size)
        return self

    def _publish(self, messages: int, batch: bool | None, size: int) -> None:
        is_batch = messages > 1 if batch is None else batch
        number = sum(entry.messages for entry in self.entries)
        outgoing = plain(number + messages)[number:]
        for one in outgoing if size else ():
            one.payload = (one.payload or b"").ljust(size, b".")
        if is_batch:
            self.store(batch_of(outgoing), messages, is_batch=True)
        else:
            metadata = pb.MessageMetadata(producer_name="p", sequence_id=number, publish_time=1)
            tail = with_checksum(metadata, outgoing[0].payload or b"")
            self.entries.append(Stored(tail, 1))
            self.deliver()

    def store(self, entry: OutgoingEntry, messages: int = 1, *, is_batch: bool = False) -> None:
        """Store a producer's entry."""
        metadata = pb.MessageMetadata.FromString(entry.metadata)
        tail = with_checksum(metadata, entry.payload)
        self.entries.append(Stored(tail, messages, is_batch=is_batch))
        self.deliver()

    @property
    def left(self) -> list[int]:
        """The unacknowledged entries."""
        return [number for number, entry in enumerate(self.entries) if entry.left]

    def deliver(self) -> None:
        """Send unacknowledged, unsent messages within permits."""
        if self.delivers:
            for number, entry in enumerate(self.entries):
                if self.permits <= 0 or self.subscribed is None:
                    return
                if entry.left and not entry.sent:
                    self.send_entry(number)

    def send_entry(self, number: int) -> None:
        """Send an entry."""
        assert self.cnx is not None
        assert self.subscribed is not None
        entry = self.entries[number]
        entry.sent = True
        consumer_id = self.subscribed.consumer_id
        message = pb.CommandMessage(consumer_id=consumer_id)
        message.message_id.ledgerId, message.message_id.entryId = LEDGER, number
        message.message_id.partition = -1
        message.redelivery_count = entry.redelivery_count
        if self.epochs and self.epoch >= 0:
            message.consumer_epoch = self.epoch
        if self.by_index and entry.is_batch and entry.left != entry.all:
            words = -(-entry.messages // 64)
            data = entry.left.to_bytes(words * 8, "little")
            message.ack_set.extend(
                int.from_bytes(data[at : at + 8], "little", signed=True)
                for at in range(0, len(data), 8)
            )
            self.permits -= entry.left.bit_count()
        else:
            self.permits -= entry.messages
        self.tell(pb.BaseCommand(type=Type.MESSAGE, message=message), entry.tail)

    def tell(self, command: pb.BaseCommand, tail: bytes = b"") -> None:
        """Send an unrequested command."""
        assert self.cnx is not None
        data = command.SerializeToString()
        body = len(data).to_bytes(4, "big") + data + tail
        self.cnx.attached.receive(command, Frame(len(body), (memoryview(body),)))

    # -- the subscription ---------------------------------------------------------------------

    def said(self, cnx: ModelCnx, command: pb.BaseCommand) -> None:
        """Take a command; a request's answer comes by ``answer``."""
        self.commands.append(command)
        if cnx is not self.cnx or self.subscribed is None:
            return  # A broker ignores commands for unknown consumers.
        if command.type == Type.FLOW:
            self.permits += command.flow.messagePermits
            self.most_permits = max(self.most_permits, self.permits)
            self.deliver()
        elif command.type == Type.ACK:
            self._acknowledge(command.ack)
        elif command.type == Type.REDELIVER_UNACKNOWLEDGED_MESSAGES:
            self._redeliver(command.redeliverUnacknowledgedMessages)
        elif command.type == Type.CLOSE_CONSUMER:
            self._leave()

    def _acknowledge(self, ack: pb.CommandAck) -> None:
        self.acks.append(ack)
        for one in ack.message_id:
            if one.entryId == 2**64 - 1:
                continue  # All before the first entry: nothing.
            if ack.ack_type == pb.CommandAck.Cumulative:
                for entry in self.entries[: one.entryId]:
                    entry.left = 0
            entry = self.entries[one.entryId]
            if not one.ack_set:
                entry.left = 0
            elif self.by_index:
                data = b"".join((word % 2**64).to_bytes(8, "little") for word in one.ack_set)
                entry.left &= int.from_bytes(data, "little")

    def _redeliver(self, asked: pb.CommandRedeliverUnacknowledgedMessages) -> None:
        assert self.subscribed is not None
        if asked.HasField("consumer_epoch"):
            self.epoch = asked.consumer_epoch
        shared = self.subscribed.subType in (
            pb.CommandSubscribe.Shared,
            pb.CommandSubscribe.Key_Shared,
        )
        numbers = [one.entryId for one in asked.message_ids] if shared else []
        for number in numbers or range(len(self.entries)):
            entry = self.entries[number]
            if entry.sent:
                entry.sent = False
                entry.redelivery_count += shared
        self.deliver()

    def _leave(self) -> None:
        self.subscribed, self.permits = None, 0
        for entry in self.entries:
            entry.sent = False

    def close_consumer(self) -> None:
        """Close the consumer, as when its topic is unloaded."""
        assert self.subscribed is not None
        consumer_id = self.subscribed.consumer_id
        self._leave()
        close = pb.CommandCloseConsumer(consumer_id=consumer_id, request_id=2**64 - 1)
        self.tell(pb.BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=close))

    def breaks(self) -> None:
        assert self.cnx is not None
        self._leave()
        self.cnx.breaks()

    def answer(self, cnx: ModelCnx, command: pb.BaseCommand) -> pb.BaseCommand:
        """Apply a request and return its answer."""
        kind = command.type
        success = pb.BaseCommand(type=Type.SUCCESS)
        if kind == Type.SUBSCRIBE:
            self._leave()
            self.subscribed = command.subscribe
            told = command.subscribe.HasField("consumer_epoch")
            self.epoch = command.subscribe.consumer_epoch if told else -1
            self._begin(command.subscribe)
        elif kind in _OF_CONSUMERS and self.subscribed is None:
            raise server_response_error(pb.MetadataError, "there is no such consumer")
        elif kind == Type.SEEK:
            asked = command.seek
            target = asked.message_id.entryId if asked.HasField("message_id") else 0
            target = min(target, len(self.entries)) if target < 2**63 else 0
            for number, entry in enumerate(self.entries):
                entry.left = entry.all if number >= target else 0
            self.sought = True
            self.close_consumer()
        elif kind == Type.GET_LAST_MESSAGE_ID:
            return self._last(command.getLastMessageId.request_id)
        elif kind == Type.CONSUMER_STATS:
            return pb.BaseCommand(
                type=Type.CONSUMER_STATS_RESPONSE,
                consumerStatsResponse=pb.CommandConsumerStatsResponse(
                    request_id=0,
                    availablePermits=max(0, self.permits),
                    msgBacklog=len(self.left),
                    unackedMessages=3,
                ),
            )
        elif kind == Type.ACK:
            return pb.BaseCommand(
                type=Type.ACK_RESPONSE,
                ackResponse=pb.CommandAckResponse(consumer_id=0, request_id=0),
            )
        return success

    def _begin(self, asked: pb.CommandSubscribe) -> None:
        """Begin at a non-durable subscription's start, unless just sought."""
        kept, self.sought = self.sought, False
        start = asked.start_message_id
        if not asked.durable and not kept and start.ledgerId == LEDGER:
            for number, entry in enumerate(self.entries):
                entry.left = entry.all if number >= start.entryId else 0

    def _last(self, request_id: int) -> pb.BaseCommand:
        response = pb.CommandGetLastMessageIdResponse(request_id=request_id)
        last = len(self.entries) - 1
        response.last_message_id.ledgerId = LEDGER if last >= 0 else 2**64 - 1
        response.last_message_id.entryId = last % 2**64
        if last >= 0 and self.entries[last].is_batch:
            response.last_message_id.batch_index = self.entries[last].messages - 1
        done = next(iter(self.left), len(self.entries)) - 1
        response.consumer_mark_delete_position.ledgerId = LEDGER
        response.consumer_mark_delete_position.entryId = done % 2**64
        return pb.BaseCommand(
            type=Type.GET_LAST_MESSAGE_ID_RESPONSE, getLastMessageIdResponse=response
        )
