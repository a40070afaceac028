"""The messages of one topic in a message database."""

from __future__ import annotations

import json
from array import array
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from broker.messages.entry import Entry
from broker.messages.errors import MessageStoreError
from broker.messages.position import Position
from broker.messages.stores.managed_ledger import CursorState, ManagedLedger, StoredTopic
from broker.messages.stores.sqlite.database import FROM_A_COPY
from broker.messages.stores.sqlite.sqlite_ledger import SqliteLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.messages.metadata import MessageDigest
    from broker.messages.stores.ledger_row import LedgerRow
    from broker.messages.stores.room import TopicRoom
    from broker.messages.stores.sqlite.reads import DatabaseReads
    from broker.messages.stores.sqlite.writer import DatabaseWriter

_WORD_RANGE = 1 << 64


def cursor_bytes(state: CursorState) -> bytes:
    """Encode a cursor's state as bytes: a line of JSON, then columns of numbers and bitmaps.

    The encoding is fast, because one event-loop turn encodes the whole cursor, which may have many
    bitmaps and tens of thousands of batches.
    """
    words: array[int]
    try:
        words, kind = array("q", chain.from_iterable(state.batches.values())), "q"
    except OverflowError:
        unsigned = (word % _WORD_RANGE for word in chain.from_iterable(state.batches.values()))
        words, kind = array("Q", unsigned), "Q"
    bitmaps = state.acknowledged.values()
    head = [
        list(state.mark_delete),
        dict(state.properties),
        list(state.acknowledged),
        [len(bitmap) for bitmap in bitmaps],
        len(state.batches),
        kind,
    ]
    positions = array("q", chain.from_iterable(state.batches))
    lengths = array("I", [len(batch) for batch in state.batches.values()])
    columns = (positions.tobytes(), lengths.tobytes(), words.tobytes(), *bitmaps)
    return b"\n".join((json.dumps(head).encode(), b"".join(columns)))


def cursor_state(value: bytes) -> CursorState:
    """Decode a cursor's state from bytes.

    Raises:
        MessageStoreError: The bytes are not a valid state.
    """
    try:
        return _cursor_state(value)
    except (ValueError, TypeError, AttributeError, RuntimeError, OverflowError) as error:
        # A RuntimeError: too few words, or too deeply nested.
        raise MessageStoreError(f"the stored state of a subscription: {error}") from None


def _cursor_state(value: bytes) -> CursorState:
    line, _, rest = value.partition(b"\n")
    mark_delete, properties, ledger_ids, bitmap_sizes, batches, kind = json.loads(line)
    positions, lengths, words = array("q"), array("I"), array(kind)
    rest = _taken(positions, 2 * batches, rest)
    rest = _taken(lengths, batches, rest)
    rest = _taken(words, sum(lengths), rest)
    acknowledged: dict[int, bytes] = {}
    for ledger_id, size in zip(ledger_ids, bitmap_sizes, strict=True):
        acknowledged[ledger_id], rest = rest[:size], rest[size:]
    word = iter(words)
    left = {
        Position(ledger_id, entry_id): tuple(next(word) for _ in range(length))
        for ledger_id, entry_id, length in zip(
            positions[::2], positions[1::2], lengths, strict=True
        )
    }
    return CursorState(Position(*mark_delete), acknowledged, left, properties)


def _taken(column: array[int], count: int, data: bytes) -> bytes:
    """Fill an array from the start of the given bytes; return the remaining bytes."""
    size = count * column.itemsize
    column.frombytes(data[:size])
    return data[size:]


class SqliteTopic(StoredTopic[SqliteLedger]):
    """The stored data of a topic in a database.

    Attributes:
        topic_id: The topic's number; a recreated topic has a new number.
        is_read: True if the cursors and properties are in memory, including unwritten changes.
    """

    __slots__ = ("is_read", "topic_id")

    def __init__(
        self, name: str, topic_id: int, row: LedgerRow[SqliteLedger], room: TopicRoom
    ) -> None:
        super().__init__(name, row, room)
        self.topic_id = topic_id
        self.is_read = False


_NEVER = 1 << 63
"""A time later than any entry's."""


class DatabaseParts(NamedTuple):
    """The services of the database store that each topic's ledger uses.

    Attributes:
        next_id: Returns a new unique number.
        now_ms: Returns the time in ms since 1970.
    """

    writer: DatabaseWriter
    reads: DatabaseReads
    next_id: Callable[[], int]
    now_ms: Callable[[], int]
    max_entries_per_ledger: int


def _damaged(damage: str) -> MessageStoreError:
    return MessageStoreError(
        f"{damage} in the message database; {FROM_A_COPY}, or start the broker with "
        "floodgateMessageStoreDropDamaged=true, which leaves damaged entries out"
    )


class SqliteManagedLedger(ManagedLedger):
    """The messages of one topic in a database; see ManagedLedger."""

    _row: LedgerRow[SqliteLedger]

    def __init__(self, topic: SqliteTopic, parts: DatabaseParts) -> None:
        super().__init__(topic)
        self._topic_id = topic.topic_id
        self._parts = parts
        self._writer = parts.writer
        # Ledgers with pending writes, in order.
        self._waiting: deque[SqliteLedger] = deque()

    # -- writing ------------------------------------------------------------------------------

    def append(self, data: bytes, digest: MessageDigest) -> Position:
        """Add an entry, and return its position; the listener is notified once it is stored.

        Raises:
            MessageStoreFullError: The store has no capacity for the entry.
            MessageStoreError: The ledger is closed.
        """
        self._check_open()
        batch = self._writer.batch()
        size = len(data)
        self._room.take(size)
        ledger = self._row.open
        number = ledger.add(data, digest)
        position = Position(ledger.ledger_id, number)
        batch.add_entry(self, ledger, position, data, digest)
        self._added_entries += 1
        self._added_bytes += size
        if not self._waiting or self._waiting[-1] is not ledger:
            self._waiting.append(ledger)
        if number + 1 >= self._parts.max_entries_per_ledger:
            self.roll()
        return position

    def stored(self, last: Position) -> None:
        """Record that all entries up to a position are stored, and notify the listener."""
        waiting = self._waiting
        while waiting and waiting[0].confirmed == len(waiting[0]):
            waiting.popleft()
        self._row.last_confirmed = last
        if self.listener is not None:
            self.listener.confirmed(last)

    def not_stored(self, error: MessageStoreError) -> None:
        """Give up the unstored entries, and refuse writes until the topic is opened again."""
        for ledger in self._waiting:
            entries, size_bytes = ledger.cut()
            self._room.charge(-entries, -size_bytes)
        self._waiting.clear()
        self._row.count_anew()
        self._error = self._error or error
        if self.listener is not None:
            self.listener.failed(error)

    def _write(self, table: str, name: str, value: CursorState | str | None) -> None:
        batch = self._writer.batch()
        if value is None:
            batch.forget(table, self._topic_id, name)
        else:
            stored = cursor_bytes(value) if isinstance(value, CursorState) else value
            batch.put(table, self._topic_id, name, stored)

    async def flushed(self) -> None:
        """Wait until all previous writes are as durable as the database guarantees.

        Raises:
            MessageStoreError: The store failed.
        """
        await self._writer.flushed()
        self._check_open()

    # -- reading ------------------------------------------------------------------------------

    def read(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry] | None:
        """Return stored entries, starting at a position; None if the first is not in memory."""
        found = self._first_stored(first)
        if found is None:
            return []
        ledger, number = found
        offset = ledger.recent_from
        if number < offset:
            return None
        end = ledger.end_of_recent(number, max_entries, max_bytes)
        return [
            Entry(ledger.ledger_id, entry_id, *stored)
            for entry_id, stored in enumerate(ledger.recent[number - offset : end - offset], number)
        ]

    async def fetch(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return the same entries as ``read``, fetched from the database if not in memory.

        Raises:
            MessageStoreError: The entries are damaged, or cannot be read.
        """
        while True:
            entries = self.read(first, max_entries, max_bytes)
            if entries is not None:
                return entries
            found = self._first_stored(first)
            assert found is not None  # Otherwise the read above would have returned an empty list.
            ledger, number = found
            end = min(ledger.confirmed, number + max(1, max_entries))
            entries, damage = await self._parts.reads.range(
                ledger.ledger_id, number, end, max_bytes
            )
            if entries:
                self.fetched_entries += len(entries)
                return entries
            if self._row.holding(Position(ledger.ledger_id, number)) is None:
                continue  # The ledger was dropped meanwhile.
            if not self._parts.reads.skip_damaged:
                raise _damaged(damage)
            first = Position(ledger.ledger_id, end)

    def read_each(self, positions: Sequence[Position]) -> list[Entry] | None:
        """Return the stored entries at the given positions; skip positions without an entry.

        If any stored entry is not in memory, the whole result is None.
        """
        entries = []
        for position in positions:
            found = self._row.holding(position)
            if found is None:
                continue
            ledger, number = found
            if number < ledger.recent_from:
                return None
            stored = ledger.recent[number - ledger.recent_from]
            entries.append(Entry(ledger.ledger_id, number, *stored))
        return entries

    async def fetch_each(self, positions: Sequence[Position]) -> list[Entry]:
        """Return the undamaged entries at the given positions, read from the database if needed."""
        entries = self.read_each(positions)
        if entries is not None:
            return entries
        there = [position for position in positions if self._row.holding(position) is not None]
        fetched = await self._parts.reads.each(there)
        self.fetched_entries += len(fetched)
        return fetched

    def digest(self, position: Position) -> MessageDigest | None:
        """Return the message count and times of a stored entry; None if missing or unreadable."""
        found = self._row.holding(position)
        if found is None:
            return None
        ledger, number = found
        if number < ledger.recent_from:
            return self._parts.reads.digest(position)
        return ledger.recent[number - ledger.recent_from][1]

    async def _publish_time(self, ledger: SqliteLedger, number: int) -> int:
        if number >= ledger.recent_from:
            return ledger.recent[number - ledger.recent_from][1].publish_time
        position = Position(ledger.ledger_id, number)
        found = await self._parts.reads.publish_time(ledger.ledger_id, number)
        if found is not None:
            return found
        if not self.holds(position):
            return 0  # Meanwhile dropped entries precede all remaining entries.
        # The next whole entry replaces skipped damaged entries.
        following = await self.fetch(position, 1, 1)
        return following[0].publish_time if following else _NEVER

    # -- ledgers ------------------------------------------------------------------------------

    def roll(self) -> None:
        """Close the open ledger and open the next; an empty open ledger is removed."""
        row, now_ms = self._row, self._parts.now_ms()
        following = SqliteLedger(self._parts.next_id(), self._topic_id, now_ms)
        last = row.open if row else None
        if last is not None and not last.closed_at:
            if len(last):
                self._writer.batch().changed[last] = None
            row.close(now_ms)
        row.add(following)

    def _drop(self, count: int) -> None:
        if not count:
            return
        batch = self._writer.batch()  # On a failed writer, raises before any ledger leaves the row.
        for ledger in self._row.take(count):
            self._room.charge(-len(ledger), -ledger.size_bytes)
            self._writer.drop(ledger, batch)
