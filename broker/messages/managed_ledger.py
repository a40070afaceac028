"""The interface of message stores: the messages and cursors of topics.

Reads of what is in memory are answered immediately; the rest is fetched, and waited for. Writes get
their position immediately and are confirmed in order, when they are stored.
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
    """The store failed; one sentence says what, and how to mend it."""


class MessageStoreFullError(MessageStoreError):
    """A bound of the store is reached: of the topic, its namespace or the process."""


class LedgerInfo(NamedTuple):
    """One ledger of a topic.

    Attributes:
        ledger_id: Rises over the whole broker.
        entries: How many it holds, also acknowledged ones.
        size_bytes: Of their ``data``.
        closed_at: When it was closed, in ms since 1970; 0 for the open one, the last.
        opened_at: When it was opened; 0 if that was before the topic was loaded.
    """

    ledger_id: int
    entries: int
    size_bytes: int
    closed_at: int
    opened_at: int = 0


@dataclass(frozen=True, slots=True)
class CursorState:
    """A durable subscription as it is stored.

    Attributes:
        mark_delete: Everything up to here is acknowledged.
        acknowledged: What is acknowledged behind it: for a ledger a bitmap of its entries, the
            lowest bit of the first byte first.
        batches: Entries that are acknowledged in part: the words of the bit set of what is left.
        properties: The subscription's own.
    """

    mark_delete: Position
    acknowledged: Mapping[int, bytes] = field(default_factory=dict)
    batches: Mapping[Position, tuple[int, ...]] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


class LedgerListener(Protocol):
    """The topic, as far as its ledger tells it something."""

    def confirmed(self, last: Position) -> None:
        """Everything up to here is stored now; also called within ``append``."""

    def failed(self, error: MessageStoreError) -> None:
        """Unload the topic: what was not confirmed is lost, and nothing more is taken."""


class ManagedLedger(Protocol):
    """The messages of one topic, in ledgers (upstream: ManagedLedger).

    Attributes:
        name: The topic's full name.
        listener: Is told of what is stored; None for nobody.
        cursors: The durable subscriptions by name, as last saved.
        properties: Of the topic itself: its epoch, whether it is terminated, ...
        fetched_entries: Entries that had to be fetched since it was opened.
    """

    name: str
    listener: LedgerListener | None
    cursors: Mapping[str, CursorState]
    properties: Mapping[str, str]
    fetched_entries: int

    # -- writing ------------------------------------------------------------------------------

    def append(self, data: bytes, digest: MessageDigest) -> Position:
        """Add an entry; the listener hears when it is stored.

        Raises:
            MessageStoreFullError: There is no room for it.
            MessageStoreError: The ledger takes no more (failed, or closed).
        """

    def refused(self) -> None:
        """Count an entry for which no room could be made."""

    def save_cursor(self, subscription: str, state: CursorState) -> None:
        """Keep a subscription's state."""

    def delete_cursor(self, subscription: str) -> None:
        """Forget a subscription."""

    def set_property(self, key: str, value: str | None) -> None:
        """Keep a property of the topic; None removes it."""

    async def flushed(self) -> None:
        """Return once all that was written before is as durable as the store makes it.

        Raises:
            MessageStoreError: It failed.
        """

    # -- reading ------------------------------------------------------------------------------

    @property
    def last_confirmed(self) -> Position:
        """The last stored entry, also when its ledger was dropped since.

        When the topic is opened it is looked for: after an unload the last entry of the ledger
        before the open one; (open ledger, -1) if that is the only one.
        """

    @property
    def ledgers(self) -> Sequence[LedgerInfo]:
        """The ledgers in order, the open one last."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the entries in all ledgers (storageSize)."""

    @property
    def added(self) -> tuple[int, int]:
        """Entries and bytes appended since it was opened (entriesAddedCounter)."""

    def holds(self, position: Position) -> bool:
        """Tell whether there is such a stored entry."""

    def read(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry] | None:
        """Return stored entries from a position on, itself included where it exists.

        At least one if there is any, however large; fewer at the end of a ledger. None if the
        first is not in memory: ``fetch`` it then.
        """

    async def fetch(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return the same entries from wherever they are.

        Raises:
            MessageStoreError: The store cannot read them.
        """

    def read_each(self, positions: Sequence[Position]) -> list[Entry] | None:
        """Return those of some entries that are still stored; None if one is to be fetched."""

    async def fetch_each(self, positions: Sequence[Position]) -> list[Entry]:
        """Return the same entries from wherever they are.

        Raises:
            MessageStoreError: The store cannot read them.
        """

    async def entry(self, position: Position) -> Entry | None:
        """Return one stored entry; None if there is none (any more).

        Raises:
            MessageStoreError: The store cannot read it.
        """

    def digest(self, position: Position) -> MessageDigest | None:
        """Return the digest of a stored entry; None if it is gone, or cannot be read.

        What is not in memory is read immediately, without the entry's bytes: for one entry at a
        time, mostly one that was read a moment ago and whose page the system still has.
        """

    def following(self, position: Position) -> Position:
        """Return the first position behind this one that holds an entry, or will hold the next."""

    def preceding(self, position: Position) -> Position:
        """Return the last entry before this one; before the first: (its ledger, -1)."""

    def count(self, after: Position, last: Position) -> int:
        """Return how many entries there are behind ``after`` up to and including ``last``."""

    def size_between(self, after: Position, last: Position) -> int:
        """Return about how many bytes those entries have (exact for the last ones)."""

    def at(self, after: Position, count: int) -> Position:
        """Return the position of the ``count``-th entry behind ``after``; the last at most."""

    async def published_at(self, publish_time: int) -> Position:
        """Return the first entry whose publish time is not before this one, by halving.

        Behind the last entry if all are older.

        Raises:
            MessageStoreError: The store cannot read one.
        """

    # -- ledgers ------------------------------------------------------------------------------

    def roll(self) -> None:
        """Close the open ledger and open the next (at an unload, and when it is full)."""

    def trim(self, before: Position, keep_bytes: int, keep_since: int) -> None:
        """Drop closed ledgers all of whose entries lie before a position.

        Args:
            before: The first entry that a subscription still needs.
            keep_bytes: Retention by size: dropped while the ledgers behind have as much; -1 is
                no bound by size, 0 no retention.
            keep_since: Retention by time, in ms since 1970: dropped if closed before; 0 is no
                bound by time.
        """

    def truncate(self) -> None:
        """Drop all closed ledgers."""


class MessageStore(Protocol):
    """A store of messages (``floodgateMessageStore``)."""

    async def open(self) -> None:
        """Make the store ready, and recover what it holds.

        Raises:
            MessageStoreError: It cannot be opened.
        """

    async def close(self) -> None:
        """Write what waits, and release files."""

    async def flushed(self) -> None:
        """Return once all that was written before is stored.

        Raises:
            MessageStoreError: It is not, or nothing can be stored for now.
        """

    def next_id(self) -> int:
        """Return a number that was never given before (ledger ids rise over the whole broker)."""

    async def open_ledger(self, name: str) -> ManagedLedger:
        """Return the ledger of a topic, empty at first; the same one until it is closed.

        Raises:
            MessageStoreError: It cannot be read, or what is being written of it is not stored.
        """

    async def unopened_ledger(self, name: str) -> ManagedLedger | None:
        """Return the ledger of a topic that is not open, as it is; None if it has no entries.

        Raises:
            MessageStoreError: It cannot be read.
        """

    def close_ledger(self, name: str) -> None:
        """Take no more for a topic, and keep what is stored; it opens with a new ledger."""

    async def delete_ledger(self, name: str) -> None:
        """Delete the messages and cursors of a topic; nothing happens if there are none."""

    def holds(self, name: str) -> bool:
        """Tell whether anything is stored for a topic."""

    def names(self) -> Sequence[str]:
        """Return the topics of which anything is stored."""

    def when_scarce(self, callback: Callable[[], object]) -> None:
        """Have something called when nearly all room is taken, and messages are to be dropped."""

    @property
    def identity(self) -> str:
        """A name that no other store has; it begins with ``memory-`` if the store ends with us."""
