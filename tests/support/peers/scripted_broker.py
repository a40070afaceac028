"""A scripted broker for producers, in the test's own turn, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import proto.PulsarApi_pb2 as pb
from client.connection.attached import Attached
from client.connection.errors import DisconnectedError
from client.context import ClientContext
from client.exceptions import PulsarException, server_response_error
from client.patience import Patience
from client.producers.options import ProducerOptions
from client.producers.producer import Producer
from client.producers.topic_producer import TopicProducer
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from limiter.flow.outbound_buffer import OutboundBuffer, WriteBufferMarks
from proto.frames import FrameDecoder, split_body, verify_checksum
from proto.transport.turn_writer import TurnWriter
from tests.support.clocks.manual_clock import ManualClock

TOPIC = "persistent://public/default/t"
_CHECKED_FROM = 6


@dataclass(frozen=True)
class Sent:
    send: pb.CommandSend
    metadata: pb.MessageMetadata
    payload: bytes

    @property
    def contents(self) -> list[bytes]:
        """The payloads of its messages, uncompressed."""
        if not self.metadata.HasField("num_messages_in_batch"):
            return [self.payload]
        contents, at = [], 0
        while at < len(self.payload):
            size = int.from_bytes(self.payload[at : at + 4], "big")
            single = pb.SingleMessageMetadata.FromString(self.payload[at + 4 : at + 4 + size])
            at += 4 + size + single.payload_size
            contents.append(self.payload[at - single.payload_size : at])
        return contents


class ScriptedCnx:
    """A connection to the scripted broker, as producers see it."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self._broker = broker
        self.peer = "broker:1"
        self.attached = Attached()
        self.turn_writer = TurnWriter(self._take)
        self.outbound = OutboundBuffer(WriteBufferMarks())
        self.exclusive_turns: dict[int, asyncio.Future[pb.CommandProducerSuccess]] = {}
        self.closed = False
        self.max_message_size = broker.max_message_size
        self.commands: list[pb.BaseCommand] = []
        self._decoder = FrameDecoder(1 << 30)
        self._sent: list[Sent] = []
        self._numbers = count()

    def _take(self, frames: Sequence[bytes | memoryview], _: int) -> None:
        for frame in frames:
            self._decoder.feed(frame)
        while (whole := self._decoder.next_frame()) is not None:
            command, tail = split_body(whole.body(), whole.total_size)
            assert verify_checksum(tail)
            size = int.from_bytes(tail[_CHECKED_FROM : _CHECKED_FROM + 4], "big")
            rest = tail[_CHECKED_FROM + 4 :]
            self._sent.append(
                Sent(
                    pb.BaseCommand.FromString(command).send,
                    pb.MessageMetadata.FromString(rest[:size]),
                    rest[size:],
                )
            )

    @property
    def sent(self) -> list[Sent]:
        self.turn_writer.flush()
        return self._sent

    def send(self, command: pb.BaseCommand) -> None:
        """Keep a command without answer."""
        self.commands.append(command)

    async def request(self, build: Callable[[int], pb.BaseCommand]) -> pb.BaseCommand:
        """Answer as the broker was told to."""
        if self.closed:
            raise DisconnectedError(self.peer)
        command = build(next(self._numbers))
        self.turn_writer.flush()
        self.commands.append(command)
        if command.type == pb.BaseCommand.PRODUCER:
            return await self._broker.attach(self, command.producer)
        if self._broker.holds_closes is not None:
            await self._broker.holds_closes.wait()
        return pb.BaseCommand(type=pb.BaseCommand.SUCCESS)

    def abort(self) -> None:
        self.breaks()

    def breaks(self) -> None:
        self.closed = True
        self.attached.lost()

    def takes_no_more(self) -> None:
        self.turn_writer.flush()
        self.outbound.writable = False

    def takes_more(self) -> None:
        self.outbound.writable = True
        self.outbound.tell_listeners()


@dataclass
class ScriptedBroker:
    """The broker's answers to PRODUCER, and the client's state.

    Attributes:
        refusals: Answers to the next PRODUCERs; None accepts.
        lookup_refusals: Answers to the next partition requests, before real ones.
        may_create: Whether each partition request may create the topic.
        holds: Awaited before PRODUCER is answered.
        holds_closes: Awaited before CLOSE_PRODUCER is answered.
        is_ready: Whether exclusive access is immediate.
        connected: Number of connection requests.
        stored: Entries with receipts.
    """

    limit_bytes: int = 1 << 20
    max_message_size: int = 5_242_880
    refusals: list[Exception | None] = field(default_factory=list)
    lookup_refusals: list[Exception] = field(default_factory=list)
    may_create: list[bool] = field(default_factory=list)
    holds: asyncio.Event | None = None
    holds_closes: asyncio.Event | None = None
    is_ready: bool = True
    last_sequence_id: int = -1
    schema_version: bytes = b""
    topic_epoch: int | None = None
    partition_count: int = 0
    connected: int = 0
    clock: ManualClock = field(default_factory=ManualClock)
    producers: list[pb.CommandProducer] = field(default_factory=list)
    stored: dict[int, Sent] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cnx = ScriptedCnx(self)
        self.patience = Patience(self.clock)
        self.memory = MemoryLimitController(self.limit_bytes, clock=self.clock)
        self._answered = 0
        self._entries = count()
        self._ids = count()

    def context(self, **more: Any) -> ClientContext:
        """Return a client's parts, with this broker as cluster."""
        more = {"producer_ids": self._ids, **more}
        return ClientContext(self, self.memory, 30.0, **more)  # type: ignore[arg-type]

    # -- a client's requests to its cluster ---------------------------------------------------

    async def connection_of(self, _: str) -> ScriptedCnx:
        """Return the connection; a new one after a close."""
        self.connected += 1
        if self.cnx.closed:
            self.cnx = ScriptedCnx(self)
            self._answered = 0
        return self.cnx

    connection_by_url = connection_of

    async def partitions(self, _: str, *, auto_create: bool = True) -> int:
        self.may_create.append(auto_create)
        if self.lookup_refusals:
            raise self.lookup_refusals.pop(0)
        return self.partition_count

    async def attach(self, cnx: ScriptedCnx, producer: pb.CommandProducer) -> pb.BaseCommand:
        self.producers.append(producer)
        if self.holds is not None:
            await self.holds.wait()
        if self.refusals and (refusal := self.refusals.pop(0)) is not None:
            raise refusal
        success = self.success(producer)
        if not self.is_ready:
            success.producer_ready = False
            loop = asyncio.get_running_loop()
            cnx.exclusive_turns[producer.request_id] = loop.create_future()
        return pb.BaseCommand(type=pb.BaseCommand.PRODUCER_SUCCESS, producer_success=success)

    def success(self, producer: pb.CommandProducer) -> pb.CommandProducerSuccess:
        answer = pb.CommandProducerSuccess(
            request_id=producer.request_id,
            producer_name=producer.producer_name or "given",
            last_sequence_id=self.last_sequence_id,
            schema_version=self.schema_version,
        )
        if self.topic_epoch is not None:
            answer.topic_epoch = self.topic_epoch
        return answer

    # -- the broker's side --------------------------------------------------------------------

    @property
    def sent(self) -> list[Sent]:
        return self.cnx.sent

    @property
    def unanswered(self) -> Sent | None:
        """The oldest SEND on the present connection without a receipt."""
        return self.sent[self._answered] if self._answered < len(self.sent) else None

    @property
    def contents(self) -> list[bytes]:
        """Payloads of all messages on the present connection."""
        return [content for one in self.sent for content in one.contents]

    def answers(self, entries: int | None = None) -> None:
        """Send receipts for the oldest pending entries; None for all."""
        cnx = self.cnx
        while self._answered < len(cnx.sent) and entries != 0:
            if cnx.closed:
                return
            one = cnx.sent[self._answered]
            self._answered += 1
            self.receipt(one)
            entries = None if entries is None else entries - 1

    def receipt(self, sent: Sent) -> None:
        """Store an entry and send its receipt."""
        send, entry_id = sent.send, next(self._entries)
        self.stored[entry_id] = sent
        position = pb.MessageIdData(ledgerId=7, entryId=entry_id)
        receipt = pb.CommandSendReceipt(
            producer_id=send.producer_id, sequence_id=send.sequence_id, message_id=position
        )
        if (producer := self.cnx.attached.producers.get(send.producer_id)) is not None:
            producer.receipt_received(receipt)

    def refuses(self, send: pb.CommandSend, code: pb.ServerError.ValueType, text: str = "") -> None:
        error = pb.CommandSendError(
            producer_id=send.producer_id,
            sequence_id=max(send.sequence_id, send.highest_sequence_id),
            error=code,
            message=text,
        )
        if code not in (pb.NotAllowedError, pb.TopicTerminatedError):
            self._answered = len(self.sent)
        else:
            self._answered += 1
        self.cnx.attached.producers[send.producer_id].send_refused(error)

    def closes_producers(self, assigned_url: str | None = None) -> None:
        """Send CLOSE_PRODUCER to all and drop entries without receipt."""
        self._answered = len(self.sent)
        closed = list(self.cnx.attached.producers.values())
        self.cnx.attached.producers.clear()
        for producer in closed:
            producer.closed_by_broker(assigned_url)

    async def producer(self, topic: str = TOPIC, **options: Any) -> Producer:
        """Return a producer of this broker, without batching by default."""
        producer, opening = self.opening(topic, **options)
        await opening
        return producer

    def opening(self, topic: str = TOPIC, **options: Any) -> tuple[Producer, asyncio.Task[None]]:
        chosen = ProducerOptions(**{"batching_enabled": False, **options})
        context = self.context()
        topic_producer = TopicProducer(context, topic, chosen)
        task = asyncio.get_running_loop().create_task(topic_producer.open(context.due()))
        return Producer(topic_producer, chosen, context), task

    def opens(self) -> None:
        """Answer PRODUCER, now and from now on."""
        if self.holds is not None:
            self.holds.set()


def refusal(code: pb.ServerError.ValueType, text: str = "no") -> PulsarException:
    return server_response_error(code, text)
