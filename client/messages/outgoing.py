"""Messages on their way to a broker, and the entries they are sent in."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import google_crc32c

import proto.PulsarApi_pb2 as pb
from client.messages.compression import compress
from client.messages.enums import CompressionType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LENGTH = struct.Struct(">I")
_LENGTHS = struct.Struct(">II")
_CHECKSUM_MAGIC = b"\x0e\x01"


class OutgoingMessage:
    """A message that is to be sent. Producers derive theirs from it.

    Attributes:
        payload: Its bytes; None for a null value.
        sequence_id: Its number.
        properties: Its properties; None for none.
        partition_key: Its key; None for none.
        ordering_key: The key that orders instead; None for none.
        event_timestamp: Its own time, in ms since 1970; None for none.
        deliver_at: Not before then, in ms since 1970; None for at once. It is in no batch.
        replication_clusters: Clusters that it goes to; () for the namespace's. ``__local__`` alone
            keeps it here. It is in no batch.
    """

    __slots__ = (
        "deliver_at",
        "event_timestamp",
        "ordering_key",
        "partition_key",
        "payload",
        "properties",
        "replication_clusters",
        "sequence_id",
    )

    def __init__(  # noqa: PLR0913 - as many as a message has parts
        self,
        payload: bytes | None,
        sequence_id: int,
        properties: Mapping[str, str] | None = None,
        partition_key: str | None = None,
        ordering_key: str | None = None,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        replication_clusters: Sequence[str] = (),
    ) -> None:
        self.payload = payload
        self.sequence_id = sequence_id
        self.properties = properties
        self.partition_key = partition_key
        self.ordering_key = ordering_key
        self.event_timestamp = event_timestamp
        self.deliver_at = deliver_at
        self.replication_clusters = replication_clusters

    @property
    def size_bytes(self) -> int:
        """Bytes of the payload: what the official clients count."""
        return len(self.payload) if self.payload is not None else 0

    @property
    def fits_batch(self) -> bool:
        """True if it may be sent in a batch."""
        return self.deliver_at is None and not self.replication_clusters


@dataclass(frozen=True, slots=True)
class SendingProducer:
    """The parts of a producer that stand in each of its entries.

    Attributes:
        producer_id: Its number on the connection.
        producer_name: Its name.
        compression: How payloads are compressed.
        schema_version: The version of its schema; b"" without one.
    """

    producer_id: int
    producer_name: str
    compression: CompressionType = CompressionType.NONE
    schema_version: bytes = b""


@dataclass(frozen=True, slots=True)
class OutgoingEntry:
    """An entry as it is sent.

    Attributes:
        metadata: MessageMetadata as protobuf bytes.
        payload: The rest, compressed; a view of it for a part of a message.
        sequence_id: Of the first message.
        highest_sequence_id: Of the last message.
        message_count: Messages in it.
        is_chunk: Whether it is a part of a message.
    """

    metadata: bytes
    payload: bytes | memoryview
    sequence_id: int
    highest_sequence_id: int
    message_count: int = 1
    is_chunk: bool = False

    def send_frame(self, producer_id: int) -> tuple[bytes, bytes | memoryview]:
        """Return the frame that sends it, in two pieces: the second is the payload itself.

        Args:
            producer_id: The producer's number on the connection.
        """
        send = pb.CommandSend(
            producer_id=producer_id,
            sequence_id=self.sequence_id,
            num_messages=self.message_count,
        )
        if self.message_count > 1:
            send.highest_sequence_id = self.highest_sequence_id
        if self.is_chunk:
            send.is_chunk = True
        command = pb.BaseCommand(type=pb.BaseCommand.SEND, send=send).SerializeToString()
        head = _LENGTH.pack(len(self.metadata)) + self.metadata
        payload = bytes(self.payload)  # A chunk is a view, which the checksum does not take.
        checksum = google_crc32c.extend(google_crc32c.value(head), payload)
        checked = _CHECKSUM_MAGIC + _LENGTH.pack(checksum) + head
        total = _LENGTH.size + len(command) + len(checked) + len(self.payload)
        return _LENGTHS.pack(total, len(command)) + command + checked, self.payload


def message_entry(
    message: OutgoingMessage, producer: SendingProducer, publish_time: int
) -> OutgoingEntry:
    """Return the entry of one message, in no batch; see ``compression.compressing_takes_long``."""
    metadata = metadata_of(message, producer, publish_time)
    payload = compressed(message.payload or b"", metadata, producer.compression)
    number = message.sequence_id
    return OutgoingEntry(metadata.SerializeToString(), payload, number, number)


def metadata_of(
    message: OutgoingMessage, producer: SendingProducer, publish_time: int
) -> pb.MessageMetadata:
    """Return the metadata of a message that is in no batch; its payload is not in it."""
    metadata = pb.MessageMetadata(
        producer_name=producer.producer_name,
        sequence_id=message.sequence_id,
        publish_time=publish_time,
    )
    if message.properties:
        for key, value in message.properties.items():
            metadata.properties.add(key=key, value=value)
    copy_keys(message, metadata)
    if message.event_timestamp is not None:
        metadata.event_time = message.event_timestamp
    if message.deliver_at is not None:
        metadata.deliver_at_time = message.deliver_at
    if message.replication_clusters:
        metadata.replicate_to.extend(message.replication_clusters)
    if message.payload is None:
        metadata.null_value = True
    if producer.schema_version:
        metadata.schema_version = producer.schema_version
    return metadata


def copy_keys(
    message: OutgoingMessage, metadata: pb.MessageMetadata | pb.SingleMessageMetadata
) -> None:
    """Write a message's keys into metadata."""
    if message.partition_key is not None:
        metadata.partition_key = message.partition_key
    if message.ordering_key is not None:
        metadata.ordering_key = message.ordering_key.encode(errors="surrogateescape")


def compressed(payload: bytes, metadata: pb.MessageMetadata, compression: CompressionType) -> bytes:
    """Return the payload as it is sent, and write into the metadata how it is compressed."""
    if compression is CompressionType.NONE or not payload:
        return payload  # The C++ client cannot read an empty payload that ZLib has compressed.
    metadata.compression = pb.CompressionType.ValueType(compression.value)
    metadata.uncompressed_size = len(payload)
    return compress(compression, payload)
