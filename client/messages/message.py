"""Received messages, parsed lazily."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast

import proto.PulsarApi_pb2 as pb
from client.messages.enums import CompressionType
from client.messages.message_id import MessageId

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # Only of type checkers: its default is of Python 3.13.

    ValueT = TypeVar("ValueT", default=bytes)
else:
    from typing import TypeVar

    ValueT = TypeVar("ValueT")


class EncryptionKey:
    """A key used to encrypt a message's own key.

    Attributes:
        key: The key's name.
        value: The message's key, encrypted.
        metadata: The producer's metadata of the key.
    """

    def __init__(self, data: pb.EncryptionKeys) -> None:
        self.key = data.key
        self.value = data.value
        self.metadata = {pair.key: pair.value for pair in data.metadata}

    def __repr__(self) -> str:
        size = len(self.value)
        return f"EncryptionKey(key={self.key}, value_len={size}, metadata={self.metadata})"


class EncryptionContext:
    """The parameters for a program's own decryption of a payload.

    Args:
        metadata: The entry's metadata.
    """

    def __init__(self, metadata: pb.MessageMetadata) -> None:
        self._metadata = metadata

    def keys(self) -> list[EncryptionKey]:
        """Return the keys used to encrypt the message's own key."""
        return [EncryptionKey(data) for data in self._metadata.encryption_keys]

    def param(self) -> bytes:
        """Return the algorithm's parameter."""
        return self._metadata.encryption_param

    def algorithm(self) -> str:
        """Return the algorithm's name."""
        return self._metadata.encryption_algo

    def compression_type(self) -> CompressionType:
        """Return the compression applied before encryption."""
        return CompressionType(self._metadata.compression)

    def uncompressed_message_size(self) -> int:
        """Return the size before compression; 0 without compression."""
        return self._metadata.uncompressed_size

    def batch_size(self) -> int:
        """Return the number of messages in the payload; -1 if unbatched."""
        if not self._metadata.HasField("num_messages_in_batch"):
            return -1
        return self._metadata.num_messages_in_batch

    def is_decryption_failed(self) -> bool:
        """Return True: this client never decrypts."""
        return True

    def __repr__(self) -> str:
        return (
            f"EncryptionContext(algorithm={self.algorithm()}, "
            f"compression_type={self.compression_type().name}, keys={self.keys()})"
        )


class Decoding(Protocol):
    """The part of a schema that decodes messages."""

    def decode_message(self, message: Message[Any]) -> Any:  # noqa: ANN401 - a schema's own values
        """Return the decoded value of a message."""


class PlainBytes:
    """The schema of plain bytes."""

    def decode_message(self, message: Message[Any]) -> Any:  # noqa: ANN401 - as every schema
        """Return the payload."""
        return message.data()


class EntryHead:
    """The fields that all messages of an entry share.

    Args:
        metadata: The entry's metadata.
        command: The entry's MESSAGE command.
        topic_name: As the attribute.
        schema: As the attribute.

    Attributes:
        topic_name: Full name of the topic or partition.
        ledger_id: Ledger.
        entry_id: Entry in the ledger.
        partition: Index of the partition; -1 for an unpartitioned topic.
        redelivery_count: Number of requested redeliveries.
        batch_size: Messages of the batch; 0 if unbatched.
        schema: Decodes the values.
        chunk_ids: The ids of a chunked message's chunks, acknowledged together.
    """

    __slots__ = (
        "_metadata",
        "batch_size",
        "chunk_ids",
        "entry_id",
        "ledger_id",
        "partition",
        "redelivery_count",
        "schema",
        "topic_name",
    )

    def __init__(
        self,
        metadata: pb.MessageMetadata,
        command: pb.CommandMessage,
        topic_name: str,
        schema: Decoding,
    ) -> None:
        position = command.message_id
        # Serialized: a twentieth of the memory, and 0.2 us to read.
        self._metadata = metadata.SerializePartialToString()
        self.topic_name = topic_name
        self.ledger_id = position.ledgerId
        self.entry_id = position.entryId
        self.partition = position.partition
        self.redelivery_count = command.redelivery_count
        self.batch_size = 0
        self.schema = schema
        self.chunk_ids: tuple[MessageId, ...] = ()

    @property
    def metadata(self) -> pb.MessageMetadata:
        """The entry's metadata, parsed at each access."""
        return pb.MessageMetadata.FromString(self._metadata)

    def message_id(self, batch_index: int = -1) -> MessageId:
        """Return the id of the entry, or of a message in the entry."""
        return MessageId(
            self.partition,
            self.ledger_id,
            self.entry_id,
            batch_index,
            batch_size=self.batch_size,
            topic_name=self.topic_name,
            first_chunk=self.chunk_ids[0] if self.chunk_ids else None,
        )


class Message(Generic[ValueT]):
    """A received message, whose value has the type of the consumer's schema.

    Args:
        entry: The fields common to the entry's messages.
        single: SingleMessageMetadata as protobuf bytes; None if unbatched.
        payload: Payload bytes.
        batch_index: Index in the batch; -1 if unbatched.

    Attributes:
        entry: The fields common to the entry's messages.
    """

    __slots__ = ("_batch_index", "_payload", "_single", "entry")

    def __init__(
        self, entry: EntryHead, single: bytes | None, payload: bytes, batch_index: int
    ) -> None:
        self.entry = entry
        self._single = single
        self._payload = payload
        self._batch_index = batch_index

    @property
    def size_bytes(self) -> int:
        """Bytes of the payload, as counted by the official clients."""
        return len(self._payload)

    @property
    def batch_index(self) -> int:
        """Index in the batch; -1 if unbatched."""
        return self._batch_index

    def data(self) -> bytes:
        """Return the payload."""
        return self._payload

    def value(self) -> ValueT:
        """Return the payload decoded by the schema; None for a null value."""
        if self.has_null_value():
            return cast("ValueT", None)
        value: ValueT = self.entry.schema.decode_message(self)
        return value

    def properties(self) -> dict[str, str]:
        """Return the producer's properties of the message."""
        return {pair.key: pair.value for pair in self._own().properties}

    def partition_key(self) -> str:
        """Return the partition key, "" for none; a key of bytes is base64, as sent."""
        return self._own().partition_key

    def partition_key_bytes(self) -> bytes:
        """Return the partition key as bytes, decoded from base64 if flagged by the producer."""
        own = self._own()
        key = own.partition_key.encode()
        if own.partition_key_b64_encoded:
            try:
                return binascii.a2b_base64(key, strict_mode=True)
            except binascii.Error:
                return key  # Flagged, but not base64: a valid key nevertheless.
        return key

    def ordering_key(self) -> str:
        """Return the ordering key, which takes precedence over the partition key; "" for none."""
        return self._own().ordering_key.decode(errors="surrogateescape")

    def publish_timestamp(self) -> int:
        """Return the publish time, in ms since 1970."""
        return self.entry.metadata.publish_time

    def event_timestamp(self) -> int:
        """Return the producer's event time, in ms since 1970; 0 for none."""
        return self._own().event_time

    def message_id(self) -> MessageId:
        """Return the id."""
        return self.entry.message_id(self._batch_index)

    def sequence_id(self) -> int:
        """Return the sequence id assigned by the producer."""
        return self._own().sequence_id

    def topic_name(self) -> str:
        """Return the full name of the topic or partition."""
        return self.entry.topic_name

    def redelivery_count(self) -> int:
        """Return the number of requested redeliveries (Shared and Key_Shared)."""
        return self.entry.redelivery_count

    def schema_version(self) -> str:
        """Return the schema version, a character per byte; "" for none."""
        return self.entry.metadata.schema_version.decode("latin-1")

    def int_schema_version(self) -> int:
        """Return the schema version as a number; -1 for none."""
        version = self.entry.metadata.schema_version
        return int.from_bytes(version, "big") if version else -1

    def producer_name(self) -> str:
        """Return the name of the producer."""
        return self.entry.metadata.producer_name

    def has_null_value(self) -> bool:
        """Tell whether the value is null; compaction then removes the message's key."""
        return self._own().null_value

    def encryption_context(self) -> EncryptionContext | None:
        """Return the payload's encryption; None if unencrypted."""
        metadata = self.entry.metadata
        return EncryptionContext(metadata) if metadata.encryption_keys else None

    def _own(self) -> pb.SingleMessageMetadata | pb.MessageMetadata:
        """Return the message's own metadata."""
        if self._single is None:
            return self.entry.metadata
        return pb.SingleMessageMetadata.FromString(self._single)

    def __repr__(self) -> str:
        return f"<Message {self.message_id()} of {self.topic_name()}, {self.size_bytes} bytes>"
