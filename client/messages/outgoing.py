"""Messages and entries that the client sends."""

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


@dataclass(slots=True, eq=False)
class OutgoingMessage:
    """A message to send, with its payload and metadata.

    Attributes:
        payload: Payload bytes; None for a null value.
        sequence_id: Sequence id.
        properties: Properties, or None.
        partition_key: Partition key, or None.
        ordering_key: Ordering key, which overrides the partition key, or None.
        event_timestamp: Event time in ms since 1970, or None.
        deliver_at: Earliest time of delivery in ms since 1970, or None. Excludes batching.
        replication_clusters: Clusters to replicate to; () for the namespace's, ``__local__`` for
            none. Excludes batching.
    """

    payload: bytes | None
    sequence_id: int
    properties: Mapping[str, str] | None = None
    partition_key: str | None = None
    ordering_key: str | None = None
    event_timestamp: int | None = None
    deliver_at: int | None = None
    replication_clusters: Sequence[str] = ()

    @property
    def size_bytes(self) -> int:
        """Size of the payload in bytes, as the official clients count it."""
        return len(self.payload) if self.payload is not None else 0

    @property
    def fits_batch(self) -> bool:
        """True if the message may be sent in a batch."""
        return self.deliver_at is None and not self.replication_clusters


@dataclass(frozen=True, slots=True)
class SendingProducer:
    """The fields that a producer writes into each of its entries.

    Attributes:
        producer_id: The producer's number on the connection.
        producer_name: The producer's name.
        compression: Algorithm that compresses payloads.
        schema_version: Version of the schema; b"" without a schema.
    """

    producer_id: int
    producer_name: str
    compression: CompressionType = CompressionType.NONE
    schema_version: bytes = b""


@dataclass(frozen=True, slots=True)
class OutgoingEntry:
    """An encoded entry, ready to send.

    Attributes:
        metadata: MessageMetadata as protobuf bytes.
        payload: The compressed payload; for a chunk, a view of it.
        sequence_id: Sequence id of the first message.
        highest_sequence_id: Sequence id of the last message.
        message_count: Number of messages.
        is_chunk: Whether the entry is a chunk.
    """

    metadata: bytes
    payload: bytes | memoryview
    sequence_id: int
    highest_sequence_id: int
    message_count: int = 1
    is_chunk: bool = False

    def send_frame(self, producer_id: int) -> tuple[bytes, bytes | memoryview]:
        """Return the SEND frame as two byte strings: head and payload.

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
        payload = bytes(self.payload)  # The checksum takes no view, as a chunk is.
        checksum = google_crc32c.extend(google_crc32c.value(head), payload)
        checked = _CHECKSUM_MAGIC + _LENGTH.pack(checksum) + head
        total = _LENGTH.size + len(command) + len(checked) + len(self.payload)
        return _LENGTHS.pack(total, len(command)) + command + checked, self.payload


def message_entry(
    message: OutgoingMessage, producer: SendingProducer, publish_time: int
) -> OutgoingEntry:
    """Encode an unbatched message as an entry; see ``compression.compressing_takes_long``."""
    metadata = metadata_of(message, producer, publish_time)
    payload = compressed(message.payload or b"", metadata, producer.compression)
    number = message.sequence_id
    return OutgoingEntry(metadata.SerializeToString(), payload, number, number)


def metadata_of(
    message: OutgoingMessage, producer: SendingProducer, publish_time: int
) -> pb.MessageMetadata:
    """Return the metadata to send with an unbatched message."""
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
    """Copy a message's partition and ordering keys into its metadata."""
    if message.partition_key is not None:
        metadata.partition_key = message.partition_key
    if message.ordering_key is not None:
        metadata.ordering_key = message.ordering_key.encode(errors="surrogateescape")


def compressed(payload: bytes, metadata: pb.MessageMetadata, compression: CompressionType) -> bytes:
    """Compress a payload; write the algorithm and the original size into the metadata."""
    if compression is CompressionType.NONE or not payload:
        return payload  # The C++ client cannot read an empty payload compressed by ZLib.
    metadata.compression = pb.CompressionType.ValueType(compression.value)
    metadata.uncompressed_size = len(payload)
    return compress(compression, payload)
