"""The common base of all stores' ledgers: reading, and arithmetic on positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic

from broker.messages.managed_ledger import MessageStoreError
from broker.messages.position import Position
from broker.messages.stores.ledger_row import LedgerRow, LedgerT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.messages.entry import Entry
    from broker.messages.managed_ledger import CursorState, LedgerInfo, LedgerListener
    from broker.messages.metadata import MessageDigest
    from broker.messages.stores.room import TopicRoom


class StoredTopic(Generic[LedgerT]):
    """The stored data of a topic, open or not.

    Attributes:
        name: The topic's full name.
        row: The ledgers.
        cursors: The durable subscriptions.
        properties: The topic's properties.
    """

    __slots__ = ("cursors", "name", "properties", "row")

    def __init__(self, name: str, row: LedgerRow[LedgerT]) -> None:
        self.name = name
        self.row = row
        self.cursors: dict[str, CursorState] = {}
        self.properties: dict[str, str] = {}


class TopicLedger(ABC, Generic[LedgerT]):
    """The messages of an open topic; stores add the bytes. See ManagedLedger."""

    def __init__(self, topic: StoredTopic[LedgerT], room: TopicRoom) -> None:
        self.name = topic.name
        self.listener: LedgerListener | None = None
        self.cursors: Mapping[str, CursorState] = MappingProxyType(topic.cursors)
        self.properties: Mapping[str, str] = MappingProxyType(topic.properties)
        self.fetched_entries = 0
        self._topic = topic
        self._row = topic.row
        self._room = room
        self._added_entries = 0
        self._added_bytes = 0
        self._error: MessageStoreError | None = None

    # -- writing ------------------------------------------------------------------------------

    @abstractmethod
    def append(self, data: bytes, digest: MessageDigest) -> Position:
        """Add an entry; the listener is notified once the entry is stored."""

    def refused(self) -> None:
        """Count an entry refused for lack of capacity."""
        self._room.refused()

    def close(self, reason: str) -> None:
        """Refuse further writes."""
        self._error = self._error or MessageStoreError(reason)

    def _check_open(self) -> None:
        if self._error is not None:
            raise self._error

    # -- reading ------------------------------------------------------------------------------

    @abstractmethod
    def read(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry] | None:
        """Return stored entries from a position on; None if they must be fetched."""

    @abstractmethod
    async def fetch(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return the entries of ``read``, from memory or storage."""

    @abstractmethod
    def read_each(self, positions: Sequence[Position]) -> list[Entry] | None:
        """Return the still stored entries of some positions; None if an entry must be fetched."""

    @abstractmethod
    async def fetch_each(self, positions: Sequence[Position]) -> list[Entry]:
        """Return the entries of ``read_each``, from memory or storage."""

    @abstractmethod
    async def _publish_time(self, ledger: LedgerT, number: int) -> int:
        """Return the producer's publish time of a stored entry."""

    async def entry(self, position: Position) -> Entry | None:
        """Return one stored entry; None if missing."""
        found = await self.fetch_each((position,))
        return found[0] if found else None

    def holds(self, position: Position) -> bool:
        """Return True if an entry is stored at the position."""
        return self._row.holding(position) is not None

    def _first_stored(self, first: Position) -> tuple[LedgerT, int] | None:
        """Return the ledger and number of the first stored entry from a position on."""
        return self._row.holding(first) or self._row.holding(self._row.following(first))

    @property
    def last_confirmed(self) -> Position:
        """The last stored entry."""
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

    def following(self, position: Position) -> Position:
        """Return the next position with an entry, or the position of the next new entry."""
        return self._row.following(position)

    def preceding(self, position: Position) -> Position:
        """Return the previous entry; before the first: (its ledger, -1)."""
        return self._row.preceding(position)

    def count(self, after: Position, last: Position) -> int:
        """Return the number of entries behind ``after`` up to and including ``last``."""
        return self._row.count(after, last)

    def size_between(self, after: Position, last: Position) -> int:
        """Return the bytes of the entries behind ``after`` up to and including ``last``."""
        return self._row.size_between(after, last)

    def at(self, after: Position, count: int) -> Position:
        """Return the position of the ``count``-th entry behind ``after``; the last at most."""
        return self._row.at(after, count)

    async def published_at(self, publish_time: int) -> Position:
        """Return the first entry with at least a publish time, by binary search."""
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
        """Close the open ledger and open the next."""

    @abstractmethod
    def _drop(self, count: int) -> None:
        """Remove a number of the first ledgers from the row, and free their entries."""

    def trim(self, before: Position, keep_bytes: int, keep_since: int) -> None:
        """Drop closed ledgers whose entries all lie before a position."""
        if self._error is None:
            self._drop(self._row.consumed(before, keep_bytes, keep_since))

    def truncate(self) -> None:
        """Drop all closed ledgers."""
        if self._error is None:
            self._drop(self._row.closed)
