"""A client's producer, from its PRODUCER command until it closes, and its send receipts.

Receipts are hand-encoded frames: Google's encoder takes four times as long.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from broker.messages.position import signed, to_wire
from broker.messages.statistics import PublishStatistics
from broker.ownership.handing_over import tell_new_owner
from proto.commands import NO_REQUEST, Type, error_command, success_command
from proto.excerpts import excerpt
from proto.parsing.varint import encode_varint
from server.configuration.addresses import NO_URLS, ServerUrls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.messages.metadata import MessageDigest
    from broker.messages.publishing.throttling import ConnectionPublishes
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock
    from proto.names import TopicName
    from proto.transport.turn_writer import TurnWriter
    from server.connection.request_errors import RequestError

_LENGTHS = struct.Struct(">II")
_SMALL = 128
_ONE_BYTE = tuple(bytes((number,)) for number in range(_SMALL))
_RECEIPT_HEAD = b"\x08\x07\x3a"  # BaseCommand: type SEND_RECEIPT, then the body's tag.
_PRODUCER, _SEQUENCE, _MESSAGE_ID, _HIGHEST = b"\x08", b"\x10", b"\x1a", b"\x20"
_NONE = _HIGHEST + encode_varint(to_wire(-1))
_LEDGER, _ENTRY = b"\x08", b"\x10"


def producer_prefix(producer_id: int) -> bytes:
    """Return the bytes that begin the body of each receipt of a producer, for ``receipt_frame``."""
    return _PRODUCER + encode_varint(producer_id) + _SEQUENCE


def receipt_frame(
    prefix: bytes, sequence_id: int, ledger_id: int, entry_id: int, highest_sequence_id: int
) -> bytes:
    """Return the encoded frame of a SEND_RECEIPT command.

    Args:
        prefix: The ``producer_prefix``.
        sequence_id: The client's sequence id.
        ledger_id: The message's ledger; -1 for a duplicate.
        entry_id: The message's number in the ledger; -1 for a duplicate.
        highest_sequence_id: The client's highest sequence id; -1 if absent or lower than
            ``sequence_id``.
    """
    place = (
        _LEDGER
        + encode_varint(ledger_id if ledger_id >= 0 else to_wire(ledger_id))
        + _ENTRY
        + encode_varint(entry_id if entry_id >= 0 else to_wire(entry_id))
    )
    body = prefix + encode_varint(sequence_id) + _MESSAGE_ID + _ONE_BYTE[len(place)] + place
    body += _NONE if highest_sequence_id < 0 else _HIGHEST + encode_varint(highest_sequence_id)
    # A body has at most 11 + 11 + 24 + 11 bytes, so the length is one byte.
    size = len(_RECEIPT_HEAD) + 1 + len(body)
    return _LENGTHS.pack(size + 4, size) + _RECEIPT_HEAD + _ONE_BYTE[len(body)] + body


def send_error(
    producer_id: int, sequence_id: int, error: pb.ServerError.ValueType, message: str
) -> pb.BaseCommand:
    """Build a SEND_ERROR command, which refuses one message of a producer."""
    body = pb.CommandSendError(
        producer_id=producer_id, sequence_id=sequence_id, error=error, message=excerpt(message)
    )
    return pb.BaseCommand(type=Type.SEND_ERROR, send_error=body)


class ProducerConnection(Protocol):
    """The interface (typing Protocol) with the methods of a connection that producers call.

    Attributes:
        peer: The client's address.
        client_version: The client's version text.
        producers: Producers by id, including opening producers.
        turn_writer: Sends receipts.
        publishes: In-flight messages, and the reasons for pausing reads.
    """

    peer: str
    client_version: str
    producers: dict[int, Producer]
    turn_writer: TurnWriter
    publishes: ConnectionPublishes

    def send(self, command: pb.BaseCommand) -> None:
        """Queue a command for sending to the client."""

    async def answers_ping(self) -> bool:
        """Return True if the client answers a ping; otherwise close the connection."""

    def producer_was_closed(self, producer_id: int) -> None:
        """For a while, ignore messages sent to a producer that this broker has closed."""


class ProducedTopic(ABC):
    """The base class with the attributes and methods of a topic that its producers use.

    Attributes:
        name: The full name.
        full_name: The full name as text.
        policies: The effective policies.
    """

    name: TopicName
    full_name: str
    policies: EffectivePolicies

    @abstractmethod
    def publish(
        self,
        producer: Producer,
        sequence_id: int,
        highest_sequence_id: int,
        data: bytes,
        digest: MessageDigest,
        *,
        whole: bool = True,
    ) -> None:
        """Publish a message; the producer gets a receipt once the message is stored.

        Args:
            producer: The message's producer.
            sequence_id: The client's sequence id.
            highest_sequence_id: The last sequence id of a batch; -1 without a batch.
            data: Checksum, metadata and payload.
            digest: The stored part of the metadata.
            whole: False for each chunk of a chunked message except the last.
        """

    @abstractmethod
    def producer_left(self, producer: Producer) -> None:
        """Remove a closed producer from the topic."""


class ProducerState(Enum):
    """A stage of a producer's life."""

    OPENING = "is being made"
    WAITING = "waits for exclusive access"
    OPEN = "open"
    CLOSING = "waits for its last receipt"
    CLOSED = "closed"


class Producer:
    """A producer on a client's connection, which publishes messages to one topic.

    Attributes:
        cnx: The producer's connection.
        producer_id: The client's id, unique on the connection.
        request_id: The id of the PRODUCER request.
        name: The producer's name, chosen by the client or generated.
        access_mode: The requested access mode.
        asked_epoch: The topic epoch in the client's request; None if absent.
        epoch: Counts the client's attempts to connect the producer.
        user_provided_name: True if the client chose the name.
        encrypted: True if the client has announced that it encrypts messages.
        metadata: The client's properties.
        schema_version: The schema's version; empty without a schema.
        last_sequence_id: The last sequence id known to deduplication; -1 if unknown.
        topic: The topic; None until it is loaded.
        state: The stage of the producer's life.
        pending: The number of messages that are not stored yet.
        statistics: The producer's statistics.
        connected_at: Time of connecting, in ms since 1970.

    Source: upstream Producer.
    """

    def __init__(
        self,
        cnx: ProducerConnection,
        request: pb.CommandProducer,
        name: str,
        connected_at: int = 0,
    ) -> None:
        self.cnx = cnx
        self.producer_id = request.producer_id
        self.request_id = request.request_id
        self.name = name
        self.access_mode = int(request.producer_access_mode)
        # As an unsigned number, one peer's -1 would exceed every other epoch.
        self.asked_epoch = signed(request.topic_epoch) if request.HasField("topic_epoch") else None
        self.epoch = request.epoch
        self.user_provided_name = request.user_provided_producer_name
        self.encrypted = request.encrypted
        self.metadata: Mapping[str, str] = {pair.key: pair.value for pair in request.metadata}
        self.schema_version = b""
        self.last_sequence_id = -1
        self.topic: ProducedTopic | None = None
        self.state = ProducerState.OPENING
        self.pending = 0
        self.statistics = PublishStatistics()
        self.connected_at = connected_at
        self._prefix = producer_prefix(self.producer_id)
        self._close_request_id: int | None = None

    def __repr__(self) -> str:
        return f"<Producer {self.name!r} {self.state.value}>"

    @property
    def gone(self) -> bool:
        """True once the producer is closed."""
        return self.state is ProducerState.CLOSED

    @property
    def unanswered(self) -> bool:
        """True until the producer is open or closed: its client waits for the final answer."""
        return self.state in (ProducerState.OPENING, ProducerState.WAITING)

    # -- answers ------------------------------------------------------------------------------

    def opened(self, topic_epoch: int | None) -> None:
        """Tell the client that the producer is open, in answer to its PRODUCER command."""
        self.state = ProducerState.OPEN
        self.cnx.publishes.producer_opens()
        self.cnx.send(self._success(self.request_id, topic_epoch))

    def waits(self) -> None:
        """Tell the client that the producer must wait for exclusive access.

        A second answer follows when the producer is admitted.
        """
        self.state = ProducerState.WAITING
        success = self._success(self.request_id, None)
        success.producer_success.producer_ready = False
        self.cnx.send(success)

    def answer_again(self, request_id: int) -> None:
        """Answer a repeated PRODUCER command, whose producer id is in use, with this producer."""
        again = self._success(request_id, None)
        again.producer_success.last_sequence_id = -1
        self.cnx.send(again)

    def _success(self, request_id: int, topic_epoch: int | None) -> pb.BaseCommand:
        success = pb.CommandProducerSuccess(
            request_id=request_id,
            producer_name=self.name,
            last_sequence_id=self.last_sequence_id,
            schema_version=self.schema_version,
            producer_ready=True,
        )
        if topic_epoch is not None:
            success.topic_epoch = to_wire(topic_epoch)
        return pb.BaseCommand(type=Type.PRODUCER_SUCCESS, producer_success=success)

    def received(
        self, sequence_id: int, ledger_id: int, entry_id: int, highest_sequence_id: int
    ) -> None:
        """Send the client the receipt of a message."""
        frame = receipt_frame(self._prefix, sequence_id, ledger_id, entry_id, highest_sequence_id)
        self.cnx.turn_writer.add(frame)

    def refused(self, sequence_id: int, error: pb.ServerError.ValueType, message: str) -> None:
        """Send the client the error of a refused message; the producer stays open."""
        self.cnx.send(send_error(self.producer_id, sequence_id, error, message))

    # -- closing ------------------------------------------------------------------------------

    def close(self, request_id: int) -> None:
        """Close the producer at the client's request, and answer after the last message's receipt.

        The answer precedes the admission of the next waiting producer (recorded).
        """
        if self.pending and self.state is ProducerState.OPEN:
            self.state = ProducerState.CLOSING
            self._close_request_id = request_id
        else:
            self.cnx.send(success_command(request_id))
            self.end()

    def settled(self) -> None:
        """Count a message as no longer pending: it was stored, or lost when the ledger failed."""
        self.pending -= 1
        if not self.pending and self.state is ProducerState.CLOSING:
            if self._close_request_id is not None:
                self.cnx.send(success_command(self._close_request_id))
            self.end()

    def fail(self, error: RequestError) -> None:
        """Close a producer that is not open yet, and answer its PRODUCER command with an error."""
        self.end()
        self.cnx.send(error_command(self.request_id, error.server_error, error.message))

    def disconnect(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Close the producer at the broker's initiative.

        The client then connects to the topic's new owner; if none is known, it looks up the topic.
        """
        was_open = self.state in (ProducerState.OPEN, ProducerState.CLOSING)
        self.end()
        if was_open:
            self.cnx.producer_was_closed(self.producer_id)
        close = pb.CommandCloseProducer(producer_id=self.producer_id, request_id=NO_REQUEST)
        tell_new_owner(close, new_owner)
        self.cnx.send(pb.BaseCommand(type=Type.CLOSE_PRODUCER, close_producer=close))

    def end(self) -> None:
        """Close the producer without notifying the client, which is lost or was fenced out.

        The next SEND of a client closes the connection, as for an unknown producer.
        """
        if self.state is ProducerState.CLOSED:
            return
        self.state = ProducerState.CLOSED
        if self.cnx.producers.get(self.producer_id) is self:
            del self.cnx.producers[self.producer_id]
        if self.topic is not None:
            self.topic.producer_left(self)


LEAST_GRACE_SECONDS = 5.0
"""The least number of seconds for which a closed producer is remembered, even without
keep-alive."""
MAX_CLOSED = 10_000
"""The largest number of closed producers remembered per connection; above it, the oldest is
forgotten."""


class ClosedProducers:
    """The ids of a connection's producers that the broker closed a short while ago.

    Args:
        clock: The connection's clock.
        seconds: For how many seconds an id is remembered (upstream: keepAliveIntervalSeconds).
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._until: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def __contains__(self, producer_id: int) -> bool:
        return self._until.get(producer_id, -1.0) >= self._clock.now()

    def add(self, producer_id: int) -> None:
        """Remember the id of a producer that was just closed."""
        now = self._clock.now()
        self._until.pop(producer_id, None)
        while self._until:
            oldest = next(iter(self._until))
            if self._until[oldest] >= now and len(self._until) < MAX_CLOSED:
                break
            del self._until[oldest]
        self._until[producer_id] = now + self._seconds

    def discard(self, producer_id: int) -> None:
        """Forget the id of a closed producer, because a new producer now uses the same id."""
        self._until.pop(producer_id, None)
