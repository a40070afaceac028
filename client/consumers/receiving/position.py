"""A consumer's start position in a topic, and its progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from client.messages.message_id import MessageId

if TYPE_CHECKING:
    from client.messages.message import EntryHead
    from client.messages.message_id import Place

_NOWHERE = (-1, -1)


@dataclass(frozen=True, slots=True)
class Position:
    """A message id, inclusive or exclusive.

    Attributes:
        message_id: The start.
        inclusive: Whether to start with the message, not after it.
    """

    message_id: MessageId
    inclusive: bool

    @property
    def in_topic(self) -> bool:
        """True for a message, false for either end of the topic."""
        return self.message_id not in (MessageId.earliest, MessageId.latest)

    @property
    def sent(self) -> MessageId:
        """The id for the broker: the first chunk, if the message is included."""
        if self.inclusive and self.message_id.first_chunk is not None:
            return self.message_id.first_chunk
        return self.message_id

    def skips_entry(self, head: EntryHead) -> bool:
        """Tell whether a whole entry is before the position."""
        if not self.in_topic:
            return False
        entry, start = (head.ledger_id, head.entry_id), self.sent
        if entry != start.entry:
            return False
        return self._skipped_indexes(head.batch_size) >= max(1, head.batch_size)

    def is_last_chunk(self, entry: Place) -> bool:
        """Tell whether an entry is the last chunk of an excluded start message."""
        start = self.message_id
        return not self.inclusive and start.first_chunk is not None and entry == start.entry

    def skipped_indexes(self, head: EntryHead) -> int:
        """Return the number of unwanted messages at an entry's beginning."""
        if not self.in_topic or (head.ledger_id, head.entry_id) != self.sent.entry:
            return 0
        return self._skipped_indexes(head.batch_size)

    def _skipped_indexes(self, batch_size: int) -> int:
        index = self.message_id.batch_index()
        if index < 0 or not batch_size:
            return 0 if self.inclusive else max(1, batch_size)
        return index if self.inclusive else index + 1


@dataclass(slots=True)
class Progress:
    """The progress of a consumer since its start or last seek.

    Attributes:
        start: Start position; None for the subscription's own position.
        sought_time: Start time in ms since 1970, or None.
        oldest: First entry arrived since the start.
        newest: Newest entry arrived on the current connection.
        passed: Newest entry without messages to hand out: broken, acknowledged before, or compacted
            away.
        last: The last message taken, as its entry's head and its index.
    """

    start: Position | None = None
    sought_time: int | None = None
    oldest: Place | None = None
    newest: Place = _NOWHERE
    passed: Place = _NOWHERE
    last: tuple[EntryHead, int] | None = None

    @property
    def taken_id(self) -> MessageId:
        """The id of the last message taken; earliest before the first."""
        if self.last is None:
            return MessageId.earliest
        head, index = self.last
        return head.message_id(index)

    def resume(self) -> MessageId:
        """Restart after the last message taken; return the id for the broker.

        With no message taken, restart at the first arrived entry: the topic's end has moved since.
        """
        if self.last is not None:
            self.start = Position(self.taken_id, inclusive=False)
        elif self.oldest is not None and self.start is not None and not self.start.in_topic:
            self.start = Position(MessageId(-1, *self.oldest), inclusive=True)
            self.sought_time = None
        return self.start.sent if self.start is not None else MessageId.latest

    @property
    def unsaid_time(self) -> int | None:
        """The start time, which SUBSCRIBE cannot carry; None after the first arrival."""
        return self.sought_time if self.last is None and self.oldest is None else None

    def connection_lost(self) -> None:
        """Forget arrived messages not yet taken: the broker redelivers them."""
        self.newest = self.passed = _NOWHERE
