"""Messages as programs receive them. Their parts are read when they are asked for."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any, Protocol

import proto.PulsarApi_pb2 as pb
from client.messages.encryption_context import EncryptionContext
from client.messages.message_id import MessageId

if TYPE_CHECKING:
    from client.messages.encryption_context import EncryptionContext as Context


class Decoding(Protocol):
    """The part of a schema that reads."""

    def decode_message(self, message: Message) -> Any:  # noqa: ANN401 - a schema's own values
        """Return the value of a message, which has one."""


class EntryHead:
    """All that the messages of one entry share.

    Args:
        metadata: The entry's.
        command: The command that it came with.
        topic_name: As the attribute.
        schema: As the attribute.

    Attributes:
        topic_name: Full name of the topic, or of the partition.
        ledger_id: Ledger.
        entry_id: Entry in the ledger.
        partition: The partition's index; -1 if the topic has none.
        redelivery_count: How often the broker was asked to send the entry again.
        batch_size: Messages of the batch; 0 if it is none.
        schema: Reads the values.
        chunk_ids: The ids of all chunks, if the message came in several; all are acknowledged.
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
        # As bytes it takes a twentieth of the memory, and 0.2 us to read.
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
        """The entry's metadata, read anew."""
        return pb.MessageMetadata.FromString(self._metadata)

    def message_id(self, batch_index: int = -1) -> MessageId:
        """Return the id of the entry, or of a message in it."""
        return MessageId(
            self.partition,
            self.ledger_id,
            self.entry_id,
            batch_index,
            batch_size=self.batch_size,
            topic_name=self.topic_name,
            first_chunk=self.chunk_ids[0] if self.chunk_ids else None,
        )


class Message:
    """A message that was received.

    Args:
        entry: What it shares with the others of its entry.
        single: Its SingleMessageMetadata as protobuf bytes; None if it is in no batch.
        payload: Its bytes.
        batch_index: Its place in the batch; -1 if it is in none.

    Attributes:
        entry: What it shares with the others of its entry.
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
        """Bytes of the payload: what the official clients count."""
        return len(self._payload)

    @property
    def batch_index(self) -> int:
        """Its place in the batch; -1 if it is in none."""
        return self._batch_index

    def data(self) -> bytes:
        """Return the payload."""
        return self._payload

    def value(self) -> Any:  # noqa: ANN401 - a schema's own values
        """Return the value that the schema reads in the payload; None for a null value."""
        if self.has_null_value():
            return None
        return self.entry.schema.decode_message(self)

    def properties(self) -> dict[str, str]:
        """Return the properties that the producer gave the message."""
        return {pair.key: pair.value for pair in self._own().properties}

    def partition_key(self) -> str:
        """Return the key; "" without one. One of bytes is base64, as it was sent."""
        return self._own().partition_key

    def partition_key_bytes(self) -> bytes:
        """Return the key as bytes, those that base64 stands for if the producer says so."""
        own = self._own()
        key = own.partition_key.encode()
        if own.partition_key_b64_encoded:
            try:
                return binascii.a2b_base64(key, strict_mode=True)
            except binascii.Error:
                return key  # Flagged, but no base64: as it stands it is a key as well.
        return key

    def ordering_key(self) -> str:
        """Return the key that orders instead of the partition key; "" without one."""
        return self._own().ordering_key.decode(errors="surrogateescape")

    def publish_timestamp(self) -> int:
        """Return when the message was sent, in ms since 1970."""
        return self.entry.metadata.publish_time

    def event_timestamp(self) -> int:
        """Return the time that the producer gave the message, in ms since 1970; 0 without one."""
        return self._own().event_time

    def message_id(self) -> MessageId:
        """Return the id."""
        return self.entry.message_id(self._batch_index)

    def sequence_id(self) -> int:
        """Return the number that its producer gave it."""
        return self._own().sequence_id

    def topic_name(self) -> str:
        """Return the full name of the topic, or of the partition."""
        return self.entry.topic_name

    def redelivery_count(self) -> int:
        """Return how often the broker was asked to send it again (Shared and Key_Shared)."""
        return self.entry.redelivery_count

    def schema_version(self) -> str:
        """Return the version of the schema, a character for each byte; "" without one."""
        return self.entry.metadata.schema_version.decode("latin-1")

    def int_schema_version(self) -> int:
        """Return the version of the schema as a number; -1 without one."""
        version = self.entry.metadata.schema_version
        return int.from_bytes(version, "big") if version else -1

    def producer_name(self) -> str:
        """Return the name of the producer."""
        return self.entry.metadata.producer_name

    def has_null_value(self) -> bool:
        """Tell whether the message has no value: it removes its key where topics are compacted."""
        return self._own().null_value

    def encryption_context(self) -> Context | None:
        """Return how the payload is encrypted; None if it is not."""
        metadata = self.entry.metadata
        return EncryptionContext(metadata) if metadata.encryption_keys else None

    def _own(self) -> pb.SingleMessageMetadata | pb.MessageMetadata:
        """Return what is said of this message alone."""
        if self._single is None:
            return self.entry.metadata
        return pb.SingleMessageMetadata.FromString(self._single)

    def __repr__(self) -> str:
        return f"<Message {self.message_id()} of {self.topic_name()}, {self.size_bytes} bytes>"
