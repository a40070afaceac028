"""Progress of a message sent in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client.messages.chunked_message import ChunkedMessage
    from client.messages.message_id import MessageId


@dataclass(slots=True)
class Chunks:
    """The chunks of a message.

    Attributes:
        message: Produces the chunks.
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
        """Number of chunks still to be sent."""
        return self.message.chunk_count - self.sent

    def part_answered(self) -> bool:
        """Count an acknowledged chunk; return true after the last."""
        self.answered += 1
        return self.all_answered

    @property
    def all_answered(self) -> bool:
        """True if all chunks are acknowledged."""
        return self.answered == self.message.chunk_count
