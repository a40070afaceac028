"""The place in a topic from which on a consumer wants messages, and how far it came."""

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


@dataclass(slots=True)
class Progress:
    """The progress of a consumer since it began, or was sought.

    Attributes:
        start: From where on messages are wanted; None for wherever the subscription stands.
        sought_time: The time at which it began, in ms since 1970; None if not at one.
        oldest: The first entry that came since it began.
        newest: The newest entry that came by this connection.
        passed: The newest entry of which nothing (more) will be handed over: it was broken,
            acknowledged before, or compacted away.
        last: The message that was taken last, as its entry's head and its index.
    """

    start: Position | None = None
    sought_time: int | None = None
    oldest: Place | None = None
    newest: Place = _NOWHERE
    passed: Place = _NOWHERE
    last: tuple[EntryHead, int] | None = None

    @property
    def taken_id(self) -> MessageId:
        """The id of the message that was taken last; earliest before the first."""
        if self.last is None:
            return MessageId.earliest
        head, index = self.last
        return head.message_id(index)

    def resume(self) -> MessageId:
        """Begin behind what was taken last; return the id that the broker is told.

        If nothing was: with what came first. The topic's end is elsewhere by now.
        """
        if self.last is not None:
            self.start = Position(self.taken_id, inclusive=False)
        elif self.oldest is not None and self.start is not None and not self.start.in_topic:
            self.start = Position(MessageId(-1, *self.oldest), inclusive=True)
            self.sought_time = None
        return self.start.sent if self.start is not None else MessageId.latest

    @property
    def unsaid_time(self) -> int | None:
        """The time that SUBSCRIBE cannot say and from which on messages are wanted."""
        return self.sought_time if self.last is None and self.oldest is None else None

    def connection_lost(self) -> None:
        """Forget what came and was not taken: it comes again."""
        self.newest = self.passed = _NOWHERE
