"""A message larger than the broker's limit, sent in several entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from client.exceptions import MessageTooBig
from client.messages.outgoing import OutgoingEntry, compressed, metadata_of

if TYPE_CHECKING:
    from client.messages.message_id import MessageId
    from client.messages.outgoing import OutgoingMessage, SendingProducer

_CHUNK_ID_BYTES = 12
"""Maximum number of metadata bytes that a chunk's number takes."""


class ChunkedMessage:
    """A compressed message, cut on demand into entries within the broker's limit.

    A message within the limit is sent unchunked. See ``compression.compressing_takes_long``.

    Args:
        message: The message.
        producer: The message's producer.
        publish_time: Publish time in ms since 1970.
        max_message_bytes: The broker's limit on an entry's metadata and payload, in bytes.

    Attributes:
        chunk_count: Number of entries.

    Raises:
        MessageTooBig: The metadata alone exceeds the limit.
    """

    __slots__ = ("_chunk_bytes", "_metadata", "_payload", "chunk_count")

    def __init__(
        self,
        message: OutgoingMessage,
        producer: SendingProducer,
        publish_time: int,
        max_message_bytes: int,
    ) -> None:
        metadata = metadata_of(message, producer, publish_time)
        payload = compressed(message.payload or b"", metadata, producer.compression)
        self._metadata = metadata
        self._payload = payload
        self._chunk_bytes = max_message_bytes
        self.chunk_count = 1
        if len(payload) > max_message_bytes:
            metadata.uuid = f"{producer.producer_name}-{message.sequence_id}"
            metadata.total_chunk_msg_size = len(payload)
            metadata.num_chunks_from_msg = len(payload)
            room = max_message_bytes - metadata.ByteSize() - _CHUNK_ID_BYTES
            if room < 1:
                raise MessageTooBig(
                    f"the properties and keys of a message leave no room for it in the "
                    f"{max_message_bytes} bytes that the broker takes: make them shorter"
                )
            self._chunk_bytes = room
            self.chunk_count = -(-len(payload) // room)
            metadata.num_chunks_from_msg = self.chunk_count

    def entry(self, chunk_id: int) -> OutgoingEntry:
        """Encode a chunk as an entry; call this for each chunk's index in ascending order."""
        number, is_chunk = self._metadata.sequence_id, self.chunk_count > 1
        if is_chunk:
            self._metadata.chunk_id = chunk_id
        start = chunk_id * self._chunk_bytes
        part: bytes | memoryview = self._payload
        if is_chunk:  # A view, without a copy of the payload.
            part = memoryview(part)[start : start + self._chunk_bytes]
        if chunk_id == self.chunk_count - 1:
            self._payload = b""  # The entries hold the payload from now on.
        metadata = self._metadata.SerializeToString()
        return OutgoingEntry(metadata, part, number, number, is_chunk=is_chunk)


@dataclass(slots=True)
class Chunks:
    """The chunks of a message that is being sent, with the numbers sent and acknowledged.

    Attributes:
        message: The message, which is cut into chunks on demand.
        size_bytes: Payload bytes before compression.
        sent: Number of chunks sent as entries.
        answered: Number of acknowledged chunks.
        first: Id of the first chunk, once acknowledged.
    """

    message: ChunkedMessage
    size_bytes: int
    sent: int = 0
    answered: int = 0
    first: MessageId | None = None

    @property
    def left(self) -> int:
        """Number of chunks not sent yet."""
        return self.message.chunk_count - self.sent

    def part_answered(self) -> bool:
        """Count an acknowledged chunk; return True if all chunks are now acknowledged."""
        self.answered += 1
        return self.all_answered

    @property
    def all_answered(self) -> bool:
        """True if all chunks are acknowledged."""
        return self.answered == self.message.chunk_count
