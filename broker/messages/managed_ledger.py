"""The interface of message stores: the messages and cursors of topics.

Reads from memory return immediately; other entries are fetched asynchronously. Writes get a
position immediately and are confirmed in order, once stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker.messages.entry import Entry
    from broker.messages.metadata import MessageDigest
    from broker.messages.position import Position


class MessageStoreError(Exception):
    """The store failed; the sentence names the cause and the remedy."""


class MessageStoreFullError(MessageStoreError):
    """A bound of the store is reached: of the topic, the namespace or the process."""


class LedgerInfo(NamedTuple):
    """One ledger of a topic.

    Attributes:
        ledger_id: Rises over the whole broker.
        entries: Number of entries, including acknowledged entries.
        size_bytes: Bytes of the entries' ``data``.
        closed_at: Time of closing, in ms since 1970; 0 for the open ledger, the last.
        opened_at: Time of opening; 0 if before the topic was loaded.
    """

    ledger_id: int
    entries: int
    size_bytes: int
    closed_at: int
    opened_at: int = 0


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


class ManagedLedger(Protocol):
    """The messages of one topic, in ledgers (upstream: ManagedLedger).

    Attributes:
        name: The topic's full name.
        listener: Receives confirmations; None without a topic.
        cursors: The durable subscriptions by name, as last saved.
        properties: The topic's properties: epoch, termination, ...
        fetched_entries: Entries fetched from outside memory since opening.
    """

    name: str
    listener: LedgerListener | None
    cursors: Mapping[str, CursorState]
    properties: Mapping[str, str]
    fetched_entries: int

    # -- writing ------------------------------------------------------------------------------

    def append(self, data: bytes, digest: MessageDigest) -> Position:
        """Add an entry; the listener is notified once the entry is stored.

        Raises:
            MessageStoreFullError: The store has no capacity for the entry.
            MessageStoreError: The ledger failed or is closed.
        """

    def refused(self) -> None:
        """Count an entry refused for lack of capacity."""

    def save_cursor(self, subscription: str, state: CursorState) -> None:
        """Store a subscription's state."""

    def delete_cursor(self, subscription: str) -> None:
        """Delete a subscription's state."""

    def set_property(self, key: str, value: str | None) -> None:
        """Set a property of the topic; None removes the property."""

    async def flushed(self) -> None:
        """Wait until all previous writes are as durable as the store guarantees.

        Raises:
            MessageStoreError: The store failed.
        """

    # -- reading ------------------------------------------------------------------------------

    @property
    def last_confirmed(self) -> Position:
        """The last stored entry, also after its ledger was dropped.

        Determined when the topic is opened: after an unload the last entry of the previous ledger;
        (open ledger, -1) without a previous ledger.
        """

    @property
    def ledgers(self) -> Sequence[LedgerInfo]:
        """The ledgers in order, the open ledger last."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the entries in all ledgers (storageSize)."""

    @property
    def added(self) -> tuple[int, int]:
        """Entries and bytes appended since opening (entriesAddedCounter)."""

    def holds(self, position: Position) -> bool:
        """Return True if an entry is stored at the position."""

    def read(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry] | None:
        """Return stored entries from a position on, inclusive.

        Returns at least one existing entry, however large; fewer at the end of a ledger. None if
        the first entry is not in memory: use ``fetch``.
        """

    async def fetch(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return the entries of ``read``, from memory or storage.

        Raises:
            MessageStoreError: The store cannot read the entries.
        """

    def read_each(self, positions: Sequence[Position]) -> list[Entry] | None:
        """Return the still stored entries of some positions; None if an entry must be fetched."""

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

    def digest(self, position: Position) -> MessageDigest | None:
        """Return the digest of a stored entry; None if missing or unreadable.

        A digest outside memory is read synchronously, without the entry's bytes: for single
        entries, mostly read recently and therefore in the system's page cache.
        """

    def following(self, position: Position) -> Position:
        """Return the next position with an entry, or the position of the next new entry."""

    def preceding(self, position: Position) -> Position:
        """Return the previous entry; before the first: (its ledger, -1)."""

    def count(self, after: Position, last: Position) -> int:
        """Return the number of entries behind ``after`` up to and including ``last``."""

    def size_between(self, after: Position, last: Position) -> int:
        """Return the approximate bytes of the entries of ``count`` (exact for the last)."""

    def at(self, after: Position, count: int) -> Position:
        """Return the position of the ``count``-th entry behind ``after``; the last at most."""

    async def published_at(self, publish_time: int) -> Position:
        """Return the first entry with at least a publish time, by binary search.

        Behind the last entry if all entries are older.

        Raises:
            MessageStoreError: The store cannot read an entry.
        """

    # -- ledgers ------------------------------------------------------------------------------

    def roll(self) -> None:
        """Close the open ledger and open the next (at an unload, and when full)."""

    def trim(self, before: Position, keep_bytes: int, keep_since: int) -> None:
        """Drop closed ledgers whose entries all lie before a position.

        Args:
            before: The first entry still needed by a subscription.
            keep_bytes: Retention by size: a ledger is dropped while later ledgers have at least as
                many bytes; -1 is unlimited, 0 no retention.
            keep_since: Retention by time, in ms since 1970: ledgers closed earlier are dropped; 0
                is unlimited.
        """

    def truncate(self) -> None:
        """Drop all closed ledgers."""


class MessageStore(Protocol):
    """A store of messages (``floodgateMessageStore``)."""

    async def open(self) -> None:
        """Prepare the store, and recover stored topics.

        Raises:
            MessageStoreError: The store cannot be opened.
        """

    async def close(self) -> None:
        """Write pending entries, and release files."""

    async def flushed(self) -> None:
        """Wait until all previous writes are stored.

        Raises:
            MessageStoreError: A write failed, or the store accepts no writes.
        """

    def next_id(self) -> int:
        """Return a new unique number (ledger ids rise over the whole broker)."""

    async def open_ledger(self, name: str) -> ManagedLedger:
        """Return the ledger of a topic, empty at first; the same ledger until closed.

        Raises:
            MessageStoreError: The ledger cannot be read, or its pending writes fail.
        """

    async def unopened_ledger(self, name: str) -> ManagedLedger | None:
        """Return the ledger of an unopened topic as stored; None without entries.

        Raises:
            MessageStoreError: The ledger cannot be read.
        """

    def close_ledger(self, name: str) -> None:
        """Close a topic's ledger to writes, keeping stored entries; reopening adds a new ledger."""

    async def delete_ledger(self, name: str) -> None:
        """Delete the messages and cursors of a topic, if any."""

    def holds(self, name: str) -> bool:
        """Return True if the store has data of a topic."""

    def names(self) -> Sequence[str]:
        """Return the topics with stored data."""

    def when_scarce(self, callback: Callable[[], object]) -> None:
        """Register a callback for scarce capacity, to drop messages."""

    @property
    def identity(self) -> str:
        """A unique name of the store; begins with ``memory-`` for a store in memory."""
