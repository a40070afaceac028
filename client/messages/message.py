"""Received messages, whose metadata is parsed on demand."""

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
    """A key that encrypts the data key of an encrypted message.

    Attributes:
        key: The name of the key.
        value: The message's data key, encrypted with this key.
        metadata: Properties that the producer attached to the key.
    """

    def __init__(self, data: pb.EncryptionKeys) -> None:
        self.key = data.key
        self.value = data.value
        self.metadata = {pair.key: pair.value for pair in data.metadata}

    def __repr__(self) -> str:
        size = len(self.value)
        return f"EncryptionKey(key={self.key}, value_len={size}, metadata={self.metadata})"


class EncryptionContext:
    """The parameters that an application needs to decrypt a payload itself.

    Args:
        metadata: The metadata of the entry.
    """

    def __init__(self, metadata: pb.MessageMetadata) -> None:
        self._metadata = metadata

    def keys(self) -> list[EncryptionKey]:
        """Return the keys, each of which encrypts the message's data key."""
        return [EncryptionKey(data) for data in self._metadata.encryption_keys]

    def param(self) -> bytes:
        """Return the parameter of the encryption algorithm."""
        return self._metadata.encryption_param

    def algorithm(self) -> str:
        """Return the name of the encryption algorithm."""
        return self._metadata.encryption_algo

    def compression_type(self) -> CompressionType:
        """Return the algorithm that compressed the payload before encryption."""
        return CompressionType(self._metadata.compression)

    def uncompressed_message_size(self) -> int:
        """Return the payload's size in bytes before compression; 0 if it is not compressed."""
        return self._metadata.uncompressed_size

    def batch_size(self) -> int:
        """Return the number of messages in the payload; -1 if it is not a batch."""
        if not self._metadata.HasField("num_messages_in_batch"):
            return -1
        return self._metadata.num_messages_in_batch

    def is_decryption_failed(self) -> bool:
        """Return True, because this client never decrypts payloads."""
        return True

    def __repr__(self) -> str:
        return (
            f"EncryptionContext(algorithm={self.algorithm()}, "
            f"compression_type={self.compression_type().name}, keys={self.keys()})"
        )


class Decoding(Protocol):
    """Interface (typing Protocol) of a schema that decodes received messages."""

    def decode_message(self, message: Message[Any]) -> Any:  # noqa: ANN401 - a schema's own values
        """Return the value that a message's payload encodes."""


class PlainBytes:
    """The schema of messages that are plain bytes."""

    def decode_message(self, message: Message[Any]) -> Any:  # noqa: ANN401 - as every schema
        """Return the payload of a message unchanged."""
        return message.data()


class EntryHead:
    """The fields common to all messages of a received entry.

    Args:
        metadata: The metadata of the entry.
        command: The entry's MESSAGE command.
        topic_name: As the attribute.
        schema: As the attribute.

    Attributes:
        topic_name: Full name of the topic or partition.
        ledger_id: Id of the ledger.
        entry_id: Id of the entry in the ledger.
        partition: Index of the partition; -1 for an unpartitioned topic.
        redelivery_count: Number of times that redelivery was requested.
        batch_size: Number of messages in the batch; 0 if there is no batch.
        schema: Schema that decodes the values.
        chunk_ids: The ids of all chunks of a chunked message, which are acknowledged together.
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
        """The metadata of the entry, parsed again at each access."""
        return pb.MessageMetadata.FromString(self._metadata)

    def message_id(self, batch_index: int = -1) -> MessageId:
        """Return the id of the entry, or of the message at an index of its batch."""
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
        batch_index: Index of the message in its batch; -1 if it is not in a batch.

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
        """Size of the payload in bytes, as the official clients count it."""
        return len(self._payload)

    @property
    def batch_index(self) -> int:
        """Index of the message in its batch; -1 if it is not in a batch."""
        return self._batch_index

    def data(self) -> bytes:
        """Return the payload of the message."""
        return self._payload

    def value(self) -> ValueT:
        """Return the payload decoded by the schema; None for a null value."""
        if self.has_null_value():
            return cast("ValueT", None)
        value: ValueT = self.entry.schema.decode_message(self)
        return value

    def properties(self) -> dict[str, str]:
        """Return the properties that the producer attached to the message."""
        return {pair.key: pair.value for pair in self._own().properties}

    def partition_key(self) -> str:
        """Return the partition key; "" if there is none.

        A key of bytes is returned as the base64 text that was sent.
        """
        return self._own().partition_key

    def partition_key_bytes(self) -> bytes:
        """Return the partition key as bytes, decoded if the producer marked it as base64."""
        own = self._own()
        key = own.partition_key.encode()
        if own.partition_key_b64_encoded:
            try:
                return binascii.a2b_base64(key, strict_mode=True)
            except binascii.Error:
                return key  # Flagged, but not base64: a valid key nevertheless.
        return key

    def ordering_key(self) -> str:
        """Return the ordering key, which overrides the partition key; "" if there is none."""
        return self._own().ordering_key.decode(errors="surrogateescape")

    def publish_timestamp(self) -> int:
        """Return the time at which the message was published, in ms since 1970."""
        return self.entry.metadata.publish_time

    def event_timestamp(self) -> int:
        """Return the event time set by the producer, in ms since 1970; 0 if there is none."""
        return self._own().event_time

    def message_id(self) -> MessageId:
        """Return the id of the message."""
        return self.entry.message_id(self._batch_index)

    def sequence_id(self) -> int:
        """Return the sequence id that the producer assigned to the message."""
        return self._own().sequence_id

    def topic_name(self) -> str:
        """Return the full name of the topic or partition that contains the message."""
        return self.entry.topic_name

    def redelivery_count(self) -> int:
        """Return how often redelivery was requested (Shared and Key_Shared subscriptions)."""
        return self.entry.redelivery_count

    def schema_version(self) -> str:
        """Return the schema version as text with one character per byte; "" if there is none."""
        return self.entry.metadata.schema_version.decode("latin-1")

    def int_schema_version(self) -> int:
        """Return the schema version as a number; -1 if there is none."""
        version = self.entry.metadata.schema_version
        return int.from_bytes(version, "big") if version else -1

    def producer_name(self) -> str:
        """Return the name of the producer that sent the message."""
        return self.entry.metadata.producer_name

    def has_null_value(self) -> bool:
        """Return True if the value is null, which makes compaction remove the message's key."""
        return self._own().null_value

    def encryption_context(self) -> EncryptionContext | None:
        """Return how the payload is encrypted; None if it is not."""
        metadata = self.entry.metadata
        return EncryptionContext(metadata) if metadata.encryption_keys else None

    def _own(self) -> pb.SingleMessageMetadata | pb.MessageMetadata:
        """Return the metadata of this single message, or of its entry if it is not in a batch."""
        if self._single is None:
            return self.entry.metadata
        return pb.SingleMessageMetadata.FromString(self._single)

    def __repr__(self) -> str:
        return f"<Message {self.message_id()} of {self.topic_name()}, {self.size_bytes} bytes>"
