"""A message store in memory, whose contents are lost when the process ends."""

from __future__ import annotations

import mmap
import time
import uuid
from array import array
from bisect import bisect_left, bisect_right
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from broker.messages.entry import Entry
from broker.messages.metadata import MessageDigest
from broker.messages.position import Position
from broker.messages.stores.ledger_row import LedgerRow, StoredLedger
from broker.messages.stores.managed_ledger import ManagedLedger, MessageStore, StoredTopic
from broker.messages.stores.room import NO_BOUNDS
from server.tasks.cooperative import SharedTurns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker.messages.stores.managed_ledger import CursorState
    from broker.messages.stores.room import StoreBounds

FIRST_BLOCK_BYTES = 4 * 1024
MAPPED_BLOCK_BYTES = 1024 * 1024
"""Size from which a block is a separate mapping, returned to the system when freed."""
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
"""Private pages: the first touch of a page of shared memory takes nearly twice as long."""


class MemoryLedger(StoredLedger):
    """A ledger in memory: its entries in large blocks, their digests and sizes in arrays.

    Freeing separate bytes objects would take a third of a microsecond each. The allocator might
    also return a gigabyte in one call, which blocks the event loop for 0.3 s.
    """

    __slots__ = (
        *("_ends", "publish_times", "_message_counts", "_deliver_at"),
        *("_blocks", "_firsts", "_bases", "_block", "_used", "_left"),
    )

    def __init__(self, ledger_id: int, opened_at: int = 0) -> None:
        super().__init__(ledger_id, opened_at)
        # Cumulative end of each entry, so that sums of any range take two lookups.
        self._ends = array("Q")
        self.publish_times = array("Q")
        self._message_counts = array("i")
        # Most ledgers have no delayed entries.
        self._deliver_at: array[int] | None = None
        self._blocks: list[bytearray | mmap.mmap] = []
        # For each block: the first entry, and the bytes of the ledger before the block.
        self._firsts: list[int] = []
        self._bases: list[int] = []
        self._block: bytearray | mmap.mmap = bytearray()
        self._used = 0
        self._left = 0

    def __len__(self) -> int:
        return len(self._ends)

    def store(self, data: bytes, digest: MessageDigest) -> int:
        """Store an entry, and return its number in the ledger."""
        size = len(data)
        if size > self._left or not self._blocks:
            self._add_block(size)
        used = self._used
        self._used = end = used + size
        self._left -= size
        self._block[used:end] = data
        self.confirmed += 1
        message_count, publish_time, deliver_at = digest
        ends = self._ends
        number = len(ends)
        ends.append(ends[-1] + size if number else size)
        self.publish_times.append(publish_time)
        self._message_counts.append(message_count)
        if self._deliver_at is not None:
            self._deliver_at.append(deliver_at)
        elif deliver_at:
            self._deliver_at = array("q", bytes(8 * number))
            self._deliver_at.append(deliver_at)
        return number

    def _add_block(self, size: int) -> None:
        """Add a memory block twice as large as the last one, so that small topics stay small."""
        capacity = max(size, min(MAPPED_BLOCK_BYTES, FIRST_BLOCK_BYTES << len(self._blocks)))
        mapped = capacity >= MAPPED_BLOCK_BYTES
        self._block = mmap.mmap(-1, capacity, _PRIVATE) if mapped else bytearray(capacity)
        self._blocks.append(self._block)
        self._firsts.append(len(self))
        self._bases.append(self.bytes_before(len(self)))
        self._used, self._left = 0, capacity

    def digest(self, number: int) -> MessageDigest:
        """Return an entry's message count, publish time and time of delivery."""
        delayed = self._deliver_at
        return MessageDigest(
            self._message_counts[number],
            self.publish_times[number],
            0 if delayed is None else delayed[number],
        )

    def bytes_before(self, number: int) -> int:
        """Return the total bytes of the entries before the entry with a given number."""
        return self._ends[number - 1] if number else 0

    def end_of_read(self, first: int, max_entries: int, max_bytes: int) -> int:
        """Return the exclusive end of a read that respects both limits, as an entry number.

        A read returns at least one entry.
        """
        by_bytes = bisect_left(self._ends, self.bytes_before(first) + max_bytes + 1, first)
        return min(self.confirmed, first + max(1, min(max_entries, by_bytes - first)))

    def data(self, first: int, end: int) -> list[bytes]:
        """Return the bytes of each entry from number ``first`` up to but excluding ``end``."""
        index = bisect_right(self._firsts, first) - 1
        found: list[bytes] = []
        while first < end:
            behind = self._firsts[index + 1] if index + 1 < len(self._firsts) else end
            stop = min(end, behind)
            block, base = self._blocks[index], self._bases[index]
            start = self.bytes_before(first) - base
            for entry_end in self._ends[first:stop]:
                entry_end -= base
                found.append(bytes(block[start:entry_end]))
                start = entry_end
            first, index = stop, index + 1
        return found

    def freed(self) -> Iterator[None]:
        """Free the memory of a deleted ledger; each step of the iterator frees one block."""
        self._block = bytearray()
        while self._blocks:
            block = self._blocks.pop()
            if isinstance(block, mmap.mmap):
                block.close()
            yield


MAX_ENTRIES_PER_LEDGER = 50_000
"""managedLedgerMaxEntriesPerLedger of Pulsar as shipped."""


def wall_clock_ms() -> int:
    """Return the time in ms since 1970."""
    return time.time_ns() // 1_000_000


class MemoryMessageStore(MessageStore):
    """A store of messages and cursors in memory (``floodgateMessageStore=memory``).

    Args:
        bounds: The largest number of bytes for a topic, for a namespace and for the store.
        max_entries_per_ledger: The number of entries with which a ledger is full and closed.
        now_ms: Returns the time in ms since 1970.
    """

    def __init__(
        self,
        bounds: StoreBounds = NO_BOUNDS,
        max_entries_per_ledger: int = MAX_ENTRIES_PER_LEDGER,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        super().__init__(bounds)
        self.identity = f"memory-{uuid.uuid4().hex}"
        self.max_entries_per_ledger = max_entries_per_ledger
        self.now_ms = now_ms
        self._turns = SharedTurns()
        self._next_id = count(1).__next__
        self._topics: dict[str, StoredTopic[MemoryLedger]] = {}

    async def open(self) -> None:
        """Do nothing: a store in memory has no earlier state to recover."""

    async def close(self) -> None:
        """Refuse further writes to all ledgers."""
        self._close_ledgers()

    async def flushed(self) -> None:
        """Return immediately, because entries in memory cannot become more durable."""

    def next_id(self) -> int:
        """Return a new number, for example for a ledger; each number is higher than all before."""
        return self._next_id()

    def new_ledger(self) -> MemoryLedger:
        """Return a new empty ledger."""
        return MemoryLedger(self.next_id(), self.now_ms())

    def free(self, ledger: MemoryLedger) -> None:
        """Free the memory of a deleted ledger in steps, in later event-loop turns.

        Releasing a gigabyte in one step would block the event loop for a quarter of a second.
        """
        self._turns.later(partial(self._turns.in_steps, ledger.freed()))

    async def open_ledger(self, name: str) -> ManagedLedger:
        """Open a topic's ledger, or return the ledger if it is already open."""
        found = self._open.get(name)
        if found is not None:
            return found
        topic = self._topics.get(name)
        if topic is None:
            row = LedgerRow([self.new_ledger()])
            topic = self._topics[name] = StoredTopic(name, row, self.room.of_topic(name))
            ledger = MemoryManagedLedger(topic, self)
        else:
            ledger = MemoryManagedLedger(topic, self)
            ledger.roll()
            topic.row.look_for_last()
        self._open[name] = ledger
        return ledger

    async def unopened_ledger(self, name: str) -> ManagedLedger | None:
        """Return the stored ledger of a topic that is not open.

        Return None if the topic is open, or has no stored entries.
        """
        topic = self._topics.get(name)
        if topic is None or name in self._open or not topic.row.entries:
            return None
        return MemoryManagedLedger(topic, self)

    async def delete_ledger(self, name: str) -> None:
        """Delete the messages and cursors of a topic, if any."""
        self.close_ledger(name)
        topic = self._topics.pop(name, None)
        if topic is not None:
            topic.room.leave()
            # An empty ledger replaces the topic's ledgers, so remaining references read no entries.
            topic.row.add(self.new_ledger())
            for ledger in topic.row.take(len(topic.row) - 1):
                self.free(ledger)


class MemoryManagedLedger(ManagedLedger):
    """The messages of one topic in memory; see ManagedLedger."""

    _row: LedgerRow[MemoryLedger]

    def __init__(self, topic: StoredTopic[MemoryLedger], store: MemoryMessageStore) -> None:
        super().__init__(topic)
        self._store = store

    def append(self, data: bytes, digest: MessageDigest) -> Position:
        """Store an entry immediately, and return its position.

        Raises:
            MessageStoreFullError: The store has no capacity for the entry.
            MessageStoreError: The ledger is closed.
        """
        self._check_open()
        size = len(data)
        self._room.take(size)
        ledger = self._row.open
        position = Position(ledger.ledger_id, ledger.store(data, digest))
        self._row.last_confirmed = position
        self._added_entries += 1
        self._added_bytes += size
        if ledger.confirmed >= self._store.max_entries_per_ledger:
            self.roll()
        if self.listener is not None:
            self.listener.confirmed(position)
        return position

    def _write(self, table: str, name: str, value: CursorState | str | None) -> None:
        """Do nothing: there is no storage outside memory."""

    async def flushed(self) -> None:
        """Return immediately, because entries in memory cannot become more durable.

        Raises:
            MessageStoreError: The ledger is closed.
        """
        self._check_open()

    # -- reading ------------------------------------------------------------------------------

    def read(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return stored entries, starting at the given position; all are in memory."""
        found = self._first_stored(first)
        if found is None:
            return []
        ledger, number = found
        end = ledger.end_of_read(number, max_entries, max_bytes)
        return [
            Entry(ledger.ledger_id, entry_id, data, ledger.digest(entry_id))
            for entry_id, data in enumerate(ledger.data(number, end), number)
        ]

    async def fetch(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return the same entries as ``read``."""
        return self.read(first, max_entries, max_bytes)

    def read_each(self, positions: Sequence[Position]) -> list[Entry]:
        """Return the stored entries at the given positions; skip positions without an entry."""
        entries = []
        for ledger, number in filter(None, map(self._row.holding, positions)):
            (data,) = ledger.data(number, number + 1)
            entries.append(Entry(ledger.ledger_id, number, data, ledger.digest(number)))
        return entries

    async def fetch_each(self, positions: Sequence[Position]) -> list[Entry]:
        """Return the same entries as ``read_each``."""
        return self.read_each(positions)

    def digest(self, position: Position) -> MessageDigest | None:
        """Return the message count and times of a stored entry; None if there is no such entry."""
        found = self._row.holding(position)
        return None if found is None else found[0].digest(found[1])

    async def _publish_time(self, ledger: MemoryLedger, number: int) -> int:
        return ledger.publish_times[number]

    # -- ledgers ------------------------------------------------------------------------------

    def roll(self) -> None:
        """Close the open ledger and open the next; an empty open ledger is removed."""
        self._row.close(self._store.now_ms())
        self._row.add(self._store.new_ledger())

    def _drop(self, count: int) -> None:
        for ledger in self._row.take(count):
            self._room.charge(-len(ledger), -ledger.bytes_before(len(ledger)))
            self._store.free(ledger)
