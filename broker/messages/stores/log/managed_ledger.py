"""The messages of one topic in the log."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from broker.messages.position import Position
from broker.messages.stores.log.log_ledger import LogLedger
from broker.messages.stores.log.records import (
    CURSOR,
    OFFSET_BITS,
    PROPERTY,
    TOPIC,
    ItemKey,
    entry_record,
)
from broker.messages.stores.topic_ledger import StoredTopic, TopicLedger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.messages.managed_ledger import CursorState, MessageStoreError
    from broker.messages.metadata import MessageDigest
    from broker.messages.stores.ledger_row import LedgerRow
    from broker.messages.stores.log.parts import LogParts
    from broker.messages.stores.room import TopicRoom


class LogTopic(StoredTopic[LogLedger]):
    """All that the log keeps of a topic.

    Attributes:
        topic_id: Its number in the log; a topic that is made again has another.
        room: The room that its entries take.
    """

    __slots__ = ("room", "topic_id")

    def __init__(
        self, name: str, topic_id: int, row: LedgerRow[LogLedger], room: TopicRoom
    ) -> None:
        super().__init__(name, row)
        self.topic_id = topic_id
        self.room = room

    @property
    def key(self) -> ItemKey:
        """The item that is the topic itself."""
        return ItemKey(self.topic_id, TOPIC, "")


class LogManagedLedger(TopicLedger[LogLedger]):
    """The messages of one topic in the log; see ManagedLedger."""

    def __init__(self, topic: LogTopic, parts: LogParts) -> None:
        super().__init__(topic)
        self._log_topic = topic
        self._parts = parts
        self._room = topic.room
        self._writer = parts.writer
        # Ledgers with entries that are under way, in order.
        self._waiting: deque[LogLedger] = deque()

    # -- writing ------------------------------------------------------------------------------

    def append(self, data: bytes, digest: MessageDigest) -> Position:
        """Add an entry; the listener hears when it is stored.

        Raises:
            MessageStoreFullError: There is no room for it.
            MessageStoreError: The ledger takes no more.
        """
        self._check_open()
        size = len(data)
        self._room.take(size)
        ledger = self._row.open
        number = len(ledger)
        position = Position(ledger.ledger_id, number)
        head = entry_record(ledger.ledger_id, number, data, digest)
        place = self._writer.add_entry(self, position, head, data)
        ledger.store(size, digest, place)
        self._parts.segments.entries_added(ledger, place >> OFFSET_BITS, 1, size)
        self._added_entries += 1
        self._added_bytes += size
        if not self._waiting or self._waiting[-1] is not ledger:
            self._waiting.append(ledger)
        if number + 1 >= self._parts.max_entries_per_ledger:
            self.roll()
        return position

    def stored(self, last: Position) -> None:
        """Confirm everything up to here."""
        waiting = self._waiting
        while waiting and waiting[0].ledger_id < last.ledger_id:
            ledger = waiting.popleft()
            ledger.confirmed = len(ledger)
        ledger = waiting[0]
        ledger.confirmed = last.entry_id + 1
        if ledger.confirmed == len(ledger):
            waiting.popleft()
        self._row.last_confirmed = last
        if self.listener is not None:
            self.listener.confirmed(last)

    def not_stored(self, error: MessageStoreError) -> None:
        """Give up what is not confirmed, and take no more until the topic is opened again."""
        for ledger in self._waiting:
            for segment, size in ledger.cut():
                self._parts.segments.entries_gone(ledger, segment, 1, size)
                self._room.charge(-1, -size)
        self._waiting.clear()
        self._error = self._error or error
        if self.listener is not None:
            self.listener.failed(error)

    def save_cursor(self, subscription: str, state: CursorState) -> None:
        """Keep a subscription's state."""
        self._check_open()
        self._topic.cursors[subscription] = state
        self._save(CURSOR, subscription)

    def delete_cursor(self, subscription: str) -> None:
        """Forget a subscription."""
        self._check_open()
        if self._topic.cursors.pop(subscription, None) is not None:
            self._save(CURSOR, subscription)

    def set_property(self, key: str, value: str | None) -> None:
        """Keep a property of the topic; None removes it."""
        self._check_open()
        if value is not None:
            self._topic.properties[key] = value
        elif self._topic.properties.pop(key, None) is None:
            return
        self._save(PROPERTY, key)

    async def flushed(self) -> None:
        """Return once all that was written before is as durable as the log makes it.

        Raises:
            MessageStoreError: It failed.
        """
        await self._writer.flushed()
        self._check_open()

    def _save(self, kind: int, name: str) -> None:
        self._parts.items.save(ItemKey(self._log_topic.topic_id, kind, name))

    # -- reading ------------------------------------------------------------------------------

    def _data(self, ledger: LogLedger, first: int, end: int) -> Sequence[bytes]:
        return self._parts.reader.read(ledger, first, end)

    # -- ledgers ------------------------------------------------------------------------------

    def roll(self) -> None:
        """Close the open ledger and open the next; an empty one is replaced."""
        self._row.close(self._parts.now_ms())
        self._row.add(LogLedger(self._parts.next_id()))
        self._parts.items.save(self._log_topic.key)

    def _drop(self, ledgers: Sequence[LogLedger]) -> None:
        for ledger in ledgers:
            self._room.charge(-len(ledger), -ledger.bytes_before(len(ledger)))
            self._parts.segments.ledger_gone(ledger)
        if ledgers:
            self._parts.items.save(self._log_topic.key)
            self._parts.cleaner.wake()
