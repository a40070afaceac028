"""The interface of message stores, which store the messages and cursors of topics.

Reads from memory return immediately; other entries are fetched asynchronously. Writes get a
position immediately and are confirmed in order, once stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol

from broker.messages.errors import MessageStoreError
from broker.messages.position import Position
from broker.messages.stores.ledger_row import LedgerRow, LedgerT
from broker.messages.stores.room import StoreRoom

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker.messages.entry import Entry
    from broker.messages.metadata import MessageDigest
    from broker.messages.stores.ledger_row import LedgerInfo
    from broker.messages.stores.room import StoreBounds, StoreFigures, TopicRoom


@dataclass(frozen=True, slots=True)
class CursorState:
    """The stored state of a durable subscription.

    Attributes:
        mark_delete: All entries up to this position are acknowledged.
        acknowledged: The acknowledged entries after ``mark_delete``: a bitmap for each ledger, in
            which entry 0 is the lowest bit of the first byte.
        batches: Partly acknowledged entries: the words of the bit set of the remaining messages.
        properties: The subscription's properties.
    """

    mark_delete: Position
    acknowledged: Mapping[int, bytes] = field(default_factory=dict)
    batches: Mapping[Position, tuple[int, ...]] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


class LedgerListener(Protocol):
    """The interface (typing Protocol) with the methods by which a ledger notifies its topic."""

    def confirmed(self, last: Position) -> None:
        """Record that all entries up to a position are stored; ``append`` itself may call this."""

    def failed(self, error: MessageStoreError) -> None:
        """Unload the topic, because its ledger failed.

        Unconfirmed messages are lost, and the ledger refuses writes.
        """


class StoredTopic(Generic[LedgerT]):
    """The stored data of a topic, open or not.

    Attributes:
        name: The topic's full name.
        row: The ledgers.
        room: The capacity that the stored entries take.
        cursors: The durable subscriptions.
        properties: The topic's properties.
    """

    __slots__ = ("cursors", "name", "properties", "room", "row")

    def __init__(self, name: str, row: LedgerRow[LedgerT], room: TopicRoom) -> None:
        self.name = name
        self.row = row
        self.room = room
        self.cursors: dict[str, CursorState] = {}
        self.properties: dict[str, str] = {}


class ManagedLedger(ABC):
    """The messages of one topic, in ledgers (upstream: ManagedLedger).

    Attributes:
        name: The topic's full name.
        listener: The topic that receives confirmations; None if no topic uses the ledger.
        cursors: The durable subscriptions by name, as last saved.
        properties: The topic's properties: epoch, termination, ...
        fetched_entries: Entries fetched from outside memory since opening.
        following, preceding, count, size_between, at, consumed: See ``LedgerRow``.
    """

    _row: LedgerRow[Any]

    def __init__(self, topic: StoredTopic[Any]) -> None:
        self.name = topic.name
        self.listener: LedgerListener | None = None
        self.cursors: Mapping[str, CursorState] = MappingProxyType(topic.cursors)
        self.properties: Mapping[str, str] = MappingProxyType(topic.properties)
        self.fetched_entries = 0
        self._topic = topic
        self._row = row = topic.row
        self._room = topic.room
        self._added_entries = 0
        self._added_bytes = 0
        self._error: MessageStoreError | None = None
        self.following, self.preceding, self.at = row.following, row.preceding, row.at
        self.count, self.size_between, self.consumed = row.count, row.size_between, row.consumed

    # -- writing ------------------------------------------------------------------------------

    @abstractmethod
    def append(self, data: bytes, digest: MessageDigest) -> Position:
        """Add an entry, and return its position; the listener is notified once it is stored.

        Raises:
            MessageStoreFullError: The store has no capacity for the entry.
            MessageStoreError: The ledger failed or is closed.
        """

    def refused(self) -> None:
        """Count an entry that was refused because the store is full."""
        self._room.refused()

    def save_cursor(self, subscription: str, state: CursorState) -> None:
        """Store the state of a subscription's cursor."""
        self._check_open()
        self._topic.cursors[subscription] = state
        self._write("cursors", subscription, state)

    def delete_cursor(self, subscription: str) -> None:
        """Delete the stored state of a subscription's cursor."""
        self._check_open()
        if self._topic.cursors.pop(subscription, None) is not None:
            self._write("cursors", subscription, None)

    def set_property(self, key: str, value: str | None) -> None:
        """Set a property of the topic; None removes the property."""
        self._check_open()
        if value is not None:
            self._topic.properties[key] = value
            self._write("properties", key, value)
        elif self._topic.properties.pop(key, None) is not None:
            self._write("properties", key, None)

    @abstractmethod
    def _write(self, table: str, name: str, value: CursorState | str | None) -> None:
        """Write a changed cursor or property to the storage outside memory; None deletes it."""

    @abstractmethod
    async def flushed(self) -> None:
        """Wait until all previous writes are as durable as the store guarantees.

        Raises:
            MessageStoreError: The store failed.
        """

    def close(self, reason: str) -> None:
        """Refuse further writes, with the given reason as the error."""
        self._error = self._error or MessageStoreError(reason)

    def _check_open(self) -> None:
        if self._error is not None:
            raise self._error

    # -- reading ------------------------------------------------------------------------------

    @abstractmethod
    def read(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry] | None:
        """Return stored entries, starting at the given position, if they are in memory.

        The result has at least one existing entry, however large, and only entries of one ledger.
        None if the first entry is not in memory: then use ``fetch``.
        """

    @abstractmethod
    async def fetch(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return the same entries as ``read``, fetched from storage if not in memory.

        Raises:
            MessageStoreError: The store cannot read the entries.
        """

    @abstractmethod
    def read_each(self, positions: Sequence[Position]) -> list[Entry] | None:
        """Return the stored entries at the given positions; skip positions without an entry.

        If any stored entry is not in memory, the whole result is None: then use ``fetch_each``.
        """

    @abstractmethod
    async def fetch_each(self, positions: Sequence[Position]) -> list[Entry]:
        """Return the same entries as ``read_each``, fetched from storage if not in memory.

        Raises:
            MessageStoreError: The store cannot read the entries.
        """

    async def entry(self, position: Position) -> Entry | None:
        """Return the stored entry at a position; None if there is none.

        Raises:
            MessageStoreError: The store cannot read the entry.
        """
        found = await self.fetch_each((position,))
        return found[0] if found else None

    @abstractmethod
    def digest(self, position: Position) -> MessageDigest | None:
        """Return the message count and times of the stored entry at a position.

        Return None if the entry is missing or unreadable.

        A digest outside memory is read synchronously, without the entry's bytes. This suits single
        entries, which were mostly read recently and therefore are in the system's page cache.
        """

    @abstractmethod
    async def _publish_time(self, ledger: Any, number: int) -> int:  # noqa: ANN401
        """Return the publish time of a stored entry, in ms since 1970."""

    def holds(self, position: Position) -> bool:
        """Return True if an entry is stored at the position."""
        return self._row.holding(position) is not None

    def _first_stored(self, first: Position) -> tuple[Any, int] | None:
        """Return the ledger and number of the first stored entry at or after a position.

        Return None if there is no such entry.
        """
        return self._row.holding(first) or self._row.holding(self._row.following(first))

    @property
    def last_confirmed(self) -> Position:
        """The position of the last stored entry, even after its ledger was deleted.

        The position is determined when the topic is opened: after an unload it is the last entry of
        the previous ledger; without a previous ledger it is (open ledger, -1).
        """
        return self._row.last_confirmed

    @property
    def ledgers(self) -> Sequence[LedgerInfo]:
        """The sizes and times of the topic's ledgers, oldest first; the last is open."""
        return [ledger.info for ledger in self._row]

    @property
    def size_bytes(self) -> int:
        """The total bytes of the stored entries in all ledgers."""
        return self._row.size_bytes

    @property
    def added(self) -> tuple[int, int]:
        """The number and the bytes of the entries appended since the topic was opened."""
        return self._added_entries, self._added_bytes

    async def published_at(self, publish_time: int) -> Position:
        """Return the position of the first entry published at or after a time.

        If all entries are older, return the position after the last entry. The search is binary.

        Raises:
            MessageStoreError: The store cannot read an entry.
        """
        row = self._row
        low, high = row.ranks
        while low < high:
            middle = (low + high) // 2
            found = row.of_rank(middle)
            # Meanwhile dropped entries precede all remaining entries.
            if found is None or await self._publish_time(*found) < publish_time:
                low = middle + 1
            else:
                high = middle
        found = row.of_rank(low)
        if found is None:
            return row.following(row.last_confirmed)
        return Position(found[0].ledger_id, found[1])

    # -- ledgers ------------------------------------------------------------------------------

    @abstractmethod
    def roll(self) -> None:
        """Close the open ledger, at an unload or when it is full, and open a new ledger."""

    @abstractmethod
    def _drop(self, count: int) -> None:
        """Remove the given number of oldest ledgers, and free the memory of their entries."""

    def trim(self, before: Position, keep_bytes: int, keep_since: int) -> None:
        """Delete the oldest ledgers that no subscription and no retention policy needs.

        ``LedgerRow.consumed`` describes the arguments.
        """
        if self._error is None:
            self._drop(self._row.consumed(before, keep_bytes, keep_since))

    def truncate(self) -> None:
        """Delete all closed ledgers, even if their entries are needed."""
        if self._error is None:
            self._drop(self._row.closed)


class MessageStore(ABC):
    """The interface of a store of all topics' messages (``floodgateMessageStore``).

    Attributes:
        identity: A unique name of the store; begins with ``memory-`` for a store in memory.
        room: The capacity taken by all entries.
    """

    def __init__(self, bounds: StoreBounds) -> None:
        self.identity = ""
        self.room = StoreRoom(bounds)
        self._topics: dict[str, Any] = {}
        self._open: dict[str, ManagedLedger] = {}

    @abstractmethod
    async def open(self) -> None:
        """Prepare the store, and recover stored topics.

        Raises:
            MessageStoreError: The store cannot be opened.
        """

    @abstractmethod
    async def close(self) -> None:
        """Write pending entries, and close the store's files."""

    def _close_ledgers(self) -> None:
        for ledger in self._open.values():
            ledger.close("the message store is closed")
        self._open.clear()

    @abstractmethod
    async def flushed(self) -> None:
        """Wait until all previous writes are stored.

        Raises:
            MessageStoreError: A write failed, or the store accepts no writes.
        """

    @abstractmethod
    def next_id(self) -> int:
        """Return a new number, for example for a ledger; each number is higher than all before.

        Raises:
            MessageStoreError: The store accepts no writes, or all numbers are used.
        """

    @abstractmethod
    async def open_ledger(self, name: str) -> ManagedLedger:
        """Open a topic's ledger, or return the ledger if it is already open.

        The ledger of a new topic is empty.

        Raises:
            MessageStoreError: The ledger cannot be read, or its pending writes fail.
        """

    @abstractmethod
    async def unopened_ledger(self, name: str) -> ManagedLedger | None:
        """Return the stored ledger of a topic that is not open.

        Return None if the topic is open, or has no stored entries.

        Raises:
            MessageStoreError: The ledger cannot be read.
        """

    def close_ledger(self, name: str) -> None:
        """Refuse further writes to a topic's ledger; its stored entries stay.

        Opening the topic again adds a new ledger for new entries.
        """
        ledger = self._open.pop(name, None)
        if ledger is not None:
            ledger.close(f"the ledger of {name} is closed")

    @abstractmethod
    async def delete_ledger(self, name: str) -> None:
        """Delete the messages and cursors of a topic, if any.

        Raises:
            MessageStoreError: The deletion could not be written.
        """

    def holds(self, name: str) -> bool:
        """Return True if the store has data of a topic, given the topic's full name."""
        return name in self._topics

    def names(self) -> Sequence[str]:
        """Return the names of all topics with stored data."""
        return list(self._topics)

    def when_scarce(self, callback: Callable[[], object]) -> None:
        """Register a function that is called when capacity is scarce, so that it drops messages."""
        self.room.on_scarce = callback

    def figures(self) -> StoreFigures:
        """Return the contents and statistics of the store, for metrics."""
        return self.room.figures()
