"""The place in a topic from which on a consumer wants messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from client.messages.message_id import MessageId

if TYPE_CHECKING:
    from client.consumers.acknowledging.due_times import Place
    from client.messages.message import EntryHead


@dataclass(frozen=True, slots=True)
class Position:
    """A message id, and whether the message itself is wanted.

    Attributes:
        message_id: Where it begins.
        inclusive: Whether with this message, or behind it.
    """

    message_id: MessageId
    inclusive: bool

    @property
    def in_topic(self) -> bool:
        """True if it names a message, and not one of the topic's ends."""
        return self.message_id not in (MessageId.earliest, MessageId.latest)

    @property
    def sent(self) -> MessageId:
        """The id that the broker is told: the first chunk, for a message that is wanted itself."""
        if self.inclusive and self.message_id.first_chunk is not None:
            return self.message_id.first_chunk
        return self.message_id

    def skips_entry(self, head: EntryHead) -> bool:
        """Tell whether nothing of an entry is wanted."""
        if not self.in_topic:
            return False
        entry, start = (head.ledger_id, head.entry_id), self.sent
        if entry != start.entry:
            return False
        return self._skipped_indexes(head.batch_size) >= max(1, head.batch_size)

    def is_last_chunk(self, entry: Place) -> bool:
        """Tell whether an entry is the last chunk of the message behind which it begins."""
        start = self.message_id
        return not self.inclusive and start.first_chunk is not None and entry == start.entry

    def skipped_indexes(self, head: EntryHead) -> int:
        """Return how many messages at an entry's beginning are not wanted."""
        if not self.in_topic or (head.ledger_id, head.entry_id) != self.sent.entry:
            return 0
        return self._skipped_indexes(head.batch_size)

    def _skipped_indexes(self, batch_size: int) -> int:
        index = self.message_id.batch_index()
        if index < 0 or not batch_size:
            return 0 if self.inclusive else max(1, batch_size)
        return index if self.inclusive else index + 1
