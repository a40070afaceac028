"""The interface of message stores: the messages and cursors of topics.

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
        acknowledged: Acknowledged entries behind ``mark_delete``: a bitmap for each ledger, the
            lowest bit of the first byte first.
        batches: Partly acknowledged entries: the words of the bit set of the remaining messages.
        properties: The subscription's properties.
    """

    mark_delete: Position
    acknowledged: Mapping[int, bytes] = field(default_factory=dict)
    batches: Mapping[Position, tuple[int, ...]] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


class LedgerListener(Protocol):
    """The callbacks of a ledger to its topic."""

    def confirmed(self, last: Position) -> None:
        """Report all entries up to a position as stored; also called within ``append``."""

    def failed(self, error: MessageStoreError) -> None:
        """Unload the topic: unconfirmed messages are lost, and the ledger is closed to writes."""


class StoredTopic(Generic[LedgerT]):
    """The stored data of a topic, open or not.

    Attributes:
        name: The topic's full name.
        row: The ledgers.
        room: The capacity taken by the entries.
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
        listener: Receives confirmations; None without a topic.
        cursors: The durable subscriptions by name, as last saved.
        properties: The topic's properties: epoch, termination, ...
        fetched_entries: Entries fetched from outside memory since opening.
        following, preceding, count, size_between, at: See ``LedgerRow``.
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
        self.count, self.size_between = row.count, row.size_between

    # -- writing ------------------------------------------------------------------------------

    @abstractmethod
    def append(self, data: bytes, digest: MessageDigest) -> Position:
        """Add an entry; the listener is notified once the entry is stored.

        Raises:
            MessageStoreFullError: The store has no capacity for the entry.
            MessageStoreError: The ledger failed or is closed.
        """

    def refused(self) -> None:
        """Count an entry refused for lack of capacity."""
        self._room.refused()

    @abstractmethod
    def save_cursor(self, subscription: str, state: CursorState) -> None:
        """Store a subscription's state."""

    @abstractmethod
    def delete_cursor(self, subscription: str) -> None:
        """Delete a subscription's state."""

    @abstractmethod
    def set_property(self, key: str, value: str | None) -> None:
        """Set a property of the topic; None removes the property."""

    @abstractmethod
    async def flushed(self) -> None:
        """Wait until all previous writes are as durable as the store guarantees.

        Raises:
            MessageStoreError: The store failed.
        """

    def close(self, reason: str) -> None:
        """Refuse further writes."""
        self._error = self._error or MessageStoreError(reason)

    def _check_open(self) -> None:
        if self._error is not None:
            raise self._error

    # -- reading ------------------------------------------------------------------------------

    @abstractmethod
    def read(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry] | None:
        """Return stored entries from a position on, inclusive.

        Returns at least one existing entry, however large; fewer at the end of a ledger. None if
        the first entry is not in memory: use ``fetch``.
        """

    @abstractmethod
    async def fetch(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return the entries of ``read``, from memory or storage.

        Raises:
            MessageStoreError: The store cannot read the entries.
        """

    @abstractmethod
    def read_each(self, positions: Sequence[Position]) -> list[Entry] | None:
        """Return the still stored entries of some positions; None if an entry must be fetched."""

    @abstractmethod
    async def fetch_each(self, positions: Sequence[Position]) -> list[Entry]:
        """Return the entries of ``read_each``, from memory or storage.

        Raises:
            MessageStoreError: The store cannot read the entries.
        """

    async def entry(self, position: Position) -> Entry | None:
        """Return one stored entry; None if missing.

        Raises:
            MessageStoreError: The store cannot read the entry.
        """
        found = await self.fetch_each((position,))
        return found[0] if found else None

    @abstractmethod
    def digest(self, position: Position) -> MessageDigest | None:
        """Return the digest of a stored entry; None if missing or unreadable.

        A digest outside memory is read synchronously, without the entry's bytes: for single
        entries, mostly read recently and therefore in the system's page cache.
        """

    @abstractmethod
    async def _publish_time(self, ledger: Any, number: int) -> int:  # noqa: ANN401
        """Return the producer's publish time of a stored entry."""

    def holds(self, position: Position) -> bool:
        """Return True if an entry is stored at the position."""
        return self._row.holding(position) is not None

    def _first_stored(self, first: Position) -> tuple[Any, int] | None:
        """Return the ledger and number of the first stored entry from a position on."""
        return self._row.holding(first) or self._row.holding(self._row.following(first))

    @property
    def last_confirmed(self) -> Position:
        """The last stored entry, also after its ledger was dropped.

        Determined when the topic is opened: after an unload the last entry of the previous ledger;
        (open ledger, -1) without a previous ledger.
        """
        return self._row.last_confirmed

    @property
    def ledgers(self) -> Sequence[LedgerInfo]:
        """The ledgers in order, the open ledger last."""
        return [ledger.info for ledger in self._row]

    @property
    def size_bytes(self) -> int:
        """Bytes of the entries in all ledgers."""
        return self._row.size_bytes

    @property
    def added(self) -> tuple[int, int]:
        """Entries and bytes appended since opening."""
        return self._added_entries, self._added_bytes

    async def published_at(self, publish_time: int) -> Position:
        """Return the first entry with at least a publish time, by binary search.

        Behind the last entry if all entries are older.

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
        """Close the open ledger and open the next (at an unload, and when full)."""

    @abstractmethod
    def _drop(self, count: int) -> None:
        """Remove a number of the first ledgers from the row, and free their entries."""

    def trim(self, before: Position, keep_bytes: int, keep_since: int) -> None:
        """Drop the ledgers counted by ``consumed``."""
        if self._error is None:
            self._drop(self._row.consumed(before, keep_bytes, keep_since))

    def consumed(self, before: Position, keep_bytes: int, keep_since: int) -> int:
        """Return the number of first ledgers whose entries all lie before a position.

        Args:
            before: The first entry still needed by a subscription.
            keep_bytes: Retention by size: a ledger is dropped while later ledgers have at least as
                many bytes; -1 is unlimited, 0 no retention.
            keep_since: Retention by time, in ms since 1970: ledgers closed earlier are dropped; 0
                is unlimited.
        """
        return self._row.consumed(before, keep_bytes, keep_since)

    def truncate(self) -> None:
        """Drop all closed ledgers."""
        if self._error is None:
            self._drop(self._row.closed)


class MessageStore(ABC):
    """A store of messages (``floodgateMessageStore``).

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
        """Write pending entries, and release files."""

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
        """Return a new unique number (ledger ids rise over the whole broker).

        Raises:
            MessageStoreError: The store accepts no writes, or all numbers are used.
        """

    @abstractmethod
    async def open_ledger(self, name: str) -> ManagedLedger:
        """Return the ledger of a topic, empty at first; the same ledger until closed.

        Raises:
            MessageStoreError: The ledger cannot be read, or its pending writes fail.
        """

    @abstractmethod
    async def unopened_ledger(self, name: str) -> ManagedLedger | None:
        """Return the ledger of an unopened topic as stored; None without entries.

        Raises:
            MessageStoreError: The ledger cannot be read.
        """

    def close_ledger(self, name: str) -> None:
        """Close a topic's ledger to writes, keeping stored entries; reopening adds a new ledger."""
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
        """Return True if the store has data of a topic."""
        return name in self._topics

    def names(self) -> Sequence[str]:
        """Return the topics with stored data."""
        return list(self._topics)

    def when_scarce(self, callback: Callable[[], object]) -> None:
        """Register a callback for scarce capacity, to drop messages."""
        self.room.on_scarce = callback

    def figures(self) -> StoreFigures:
        """Return the contents and statistics of the store, for metrics."""
        return self.room.figures()
