"""The queue of one topic's received entries, from which single messages are removed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from client.messages.errors import BrokenEntryError

if TYPE_CHECKING:
    from collections.abc import Container

    from client.messages.entry import Entry
    from client.messages.message import Message
    from client.messages.message_id import Place


class Taken(NamedTuple):
    """A message removed from the queue, with the numbers to subtract from the queue's counts.

    Attributes:
        message: The message.
        messages: Number of messages to stop counting; above 1 if other messages of the entry are
            not wanted.
        size_bytes: Number of bytes to stop counting.
    """

    message: Message
    messages: int
    size_bytes: int


class Receiving(Protocol):
    """Interface (typing Protocol) with the methods of a consumer that its queue calls."""

    def read(self, entry: Entry) -> list[Message]:
        """Decode further messages of an entry; return those that should be delivered.

        Raises:
            BrokenEntryError: The (rest of the) entry is unreadable.
        """

    def gone(self, messages: int, size_bytes: int) -> None:
        """Stop counting messages that were removed from the queue without being delivered."""

    def broken(self, place: Place, error: BrokenEntryError) -> None:
        """Skip an entry whose messages, or remaining messages, cannot be decoded."""


@dataclass(slots=True, eq=False)
class _Queued:
    """A queued entry, with the numbers of messages and bytes still counted for it."""

    entry: Entry
    messages: int
    size_bytes: int

    @property
    def place(self) -> Place:
        return self.entry.head.ledger_id, self.entry.head.entry_id


class Received:
    """A queue of received entries, which decodes at most a thousand messages at a time.

    Args:
        consumer: The consumer that owns the queue.

    Attributes:
        queued: Number of queued messages.
        queued_bytes: Number of queued bytes.
    """

    def __init__(self, consumer: Receiving) -> None:
        self._consumer = consumer
        self._entries: deque[_Queued] = deque()
        self._messages: list[Message] = []  # In reverse order: the next message is last.
        self.queued = 0
        self.queued_bytes = 0

    def append(self, entry: Entry, messages: int, size_bytes: int) -> None:
        """Queue an entry, with the numbers of messages and bytes counted for it."""
        self._entries.append(_Queued(entry, messages, size_bytes))
        self.queued += messages
        self.queued_bytes += size_bytes

    def pop(self) -> Taken | None:
        """Remove and return the first message; return None if the queue is empty."""
        while not self._messages:
            if not self._entries:
                return None
            self._read_first()
        message = self._messages.pop()
        first = self._entries[0]
        if self._messages or first.entry.left:
            messages, size_bytes = 1, min(message.size_bytes, first.size_bytes)
            first.messages -= 1
            first.size_bytes -= size_bytes
        else:
            messages, size_bytes = first.messages, first.size_bytes
            self._entries.popleft()
        self.queued -= messages
        self.queued_bytes -= size_bytes
        return Taken(message, messages, size_bytes)

    def _read_first(self) -> None:
        first = self._entries[0]
        try:
            self._messages = self._consumer.read(first.entry)[::-1]
        except BrokenEntryError as error:
            self._consumer.broken(first.place, error)
            self._drop_first()
            return
        if not self._messages and not first.entry.left:
            self._drop_first()

    def _drop_first(self) -> None:
        first = self._entries.popleft()
        self._gone(first.messages, first.size_bytes)

    def _gone(self, messages: int, size_bytes: int) -> None:
        self.queued -= messages
        self.queued_bytes -= size_bytes
        self._consumer.gone(messages, size_bytes)

    def clear(self) -> None:
        """Discard all queued entries."""
        self._entries.clear()
        self._messages.clear()
        self._gone(self.queued, self.queued_bytes)

    def drop(self, places: Container[Place]) -> None:
        """Discard the entries with the given ids; the broker redelivers them."""
        if not self._entries:
            return
        if self._entries[0].place in places:
            self._messages.clear()
        gone = [one for one in self._entries if one.place in places]
        if gone:
            self._entries = deque(one for one in self._entries if one.place not in places)
            self._gone(sum(one.messages for one in gone), sum(one.size_bytes for one in gone))
