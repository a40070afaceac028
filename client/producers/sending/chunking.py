"""Progress of a message that is sent in several entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client.messages.chunked_message import ChunkedMessage
    from client.messages.message_id import MessageId


@dataclass(slots=True)
class Chunks:
    """One message's parts.

    Attributes:
        message: Cuts them.
        size_bytes: Its payload, before it was compressed.
        sent: How many became entries.
        answered: How many the broker has.
        first: The first one's id, once the broker has it.
    """

    message: ChunkedMessage
    size_bytes: int
    sent: int = 0
    answered: int = 0
    first: MessageId | None = None

    @property
    def left(self) -> int:
        """Chunks that are to be sent still."""
        return self.message.chunk_count - self.sent

    def part_answered(self) -> bool:
        """Count a part that the broker has; true if it was the last."""
        self.answered += 1
        return self.all_answered

    @property
    def all_answered(self) -> bool:
        """True if the broker has every part."""
        return self.answered == self.message.chunk_count
