"""Batches: a builder for sending, and a reader like the official client's."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Self

import proto.PulsarApi_pb2 as pb
from client.messages.entry import Entry, EntrySource
from client.messages.message import EntryHead, PlainBytes
from client.messages.message_id import MessageId
from client.messages.outgoing import OutgoingEntry, compressed, copy_keys
from proto.parsing.varint import encode_varint

if TYPE_CHECKING:
    from client.messages.message import Message
    from client.messages.outgoing import OutgoingMessage, SendingProducer

_LENGTH = struct.Struct(">I")


class BatchBuilder:
    """A batch to which messages are being added before it is sent.

    Attributes:
        message_count: Number of messages.
        size_bytes: Bytes in the batch before compression.
    """

    __slots__ = ("_first", "_last_sequence_id", "_parts", "message_count", "size_bytes")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._first: OutgoingMessage | None = None
        self._last_sequence_id = 0
        self.message_count = 0
        self.size_bytes = 0

    def add(self, message: OutgoingMessage) -> None:
        """Add a message to the batch, which must have room for it."""
        payload = message.payload
        if (
            payload is None
            or message.properties
            or message.partition_key is not None
            or message.ordering_key is not None
            or message.event_timestamp is not None
        ):
            head = _single_metadata(message).SerializeToString()
            payload = payload or b""
        else:
            # The common case: only size and number.
            head = b"\x18%b\x40%b" % (
                encode_varint(len(payload)),
                encode_varint(message.sequence_id),
            )
        framed = _LENGTH.pack(len(head)) + head
        self._parts += (framed, payload)
        self.size_bytes += len(framed) + len(payload)
        self.message_count += 1
        self._last_sequence_id = message.sequence_id
        if self._first is None:
            self._first = message

    def build(self, producer: SendingProducer, publish_time: int) -> OutgoingEntry:
        """Encode all added messages, at least one, as an entry.

        See ``compression.compressing_takes_long``.
        """
        first = self._first
        if first is None:
            raise ValueError("a batch without messages cannot be sent: add one first")
        metadata = pb.MessageMetadata(
            producer_name=producer.producer_name,
            sequence_id=first.sequence_id,
            publish_time=publish_time,
            num_messages_in_batch=self.message_count,
        )
        # The broker chooses consumers by the first message's keys.
        copy_keys(first, metadata)
        if self.message_count > 1:
            metadata.highest_sequence_id = self._last_sequence_id
        if producer.schema_version:
            metadata.schema_version = producer.schema_version
        payload = compressed(b"".join(self._parts), metadata, producer.compression)
        return OutgoingEntry(
            metadata.SerializeToString(),
            payload,
            first.sequence_id,
            self._last_sequence_id,
            self.message_count,
        )


def _single_metadata(message: OutgoingMessage) -> pb.SingleMessageMetadata:
    payload = message.payload
    single = pb.SingleMessageMetadata(
        payload_size=len(payload or b""), sequence_id=message.sequence_id
    )
    if message.properties:
        for key, value in message.properties.items():
            single.properties.add(key=key, value=value)
    copy_keys(message, single)
    if message.event_timestamp is not None:
        single.event_time = message.event_timestamp
    if payload is None:
        single.null_value = True
    return single


class MessageBatch:
    """A reader of the messages in a batch's uncompressed payload, without its metadata.

    Example:
        messages = MessageBatch().with_message_id(message_id).parse_from(payload, 10)
    """

    def __init__(self) -> None:
        self._message_id = MessageId.earliest

    def with_message_id(self, msg_id: MessageId) -> Self:
        """Set the id of the batch's entry, from which its messages' ids follow."""
        if not isinstance(msg_id, MessageId):
            raise TypeError(f"msg_id is a MessageId, not {type(msg_id).__name__}")
        self._message_id = msg_id
        return self

    def parse_from(self, data: bytes, size: int) -> list[Message]:
        """Parse a batch's payload into its first ``size`` messages.

        Args:
            data: The batch's payload.
            size: Number of messages.

        Raises:
            InvalidMessage: The payload has fewer messages.
        """
        command = pb.CommandMessage(consumer_id=0, message_id=self._message_id.to_proto())
        metadata = pb.MessageMetadata(producer_name="", sequence_id=0, publish_time=0)
        head = EntryHead(metadata, command, self._message_id.topic_name, PlainBytes())
        head.batch_size = size
        entry = Entry(head, data, None, EntrySource(head.topic_name, head.schema))
        messages: list[Message] = []
        while size > 0 and entry.left:
            messages += entry.take()
        return messages
