"""The ledgers of a topic in order, and counts of the entries between two positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from broker.messages.position import Position

if TYPE_CHECKING:
    from collections.abc import Iterator


class LedgerInfo(NamedTuple):
    """The id, size and times of one ledger of a topic.

    Attributes:
        ledger_id: The ledger's number; a newer ledger of the broker has a higher number.
        entries: The number of entries, including acknowledged entries.
        size_bytes: Bytes of the entries' ``data``.
        closed_at: Time of closing, in ms since 1970; 0 for the last ledger, which is open.
        opened_at: Time of opening; 0 if before the topic was loaded.
    """

    ledger_id: int
    entries: int
    size_bytes: int
    closed_at: int
    opened_at: int = 0


class StoredLedger(ABC):
    """The size and times of one ledger; each message store's subclass adds the entries.

    Attributes:
        ledger_id: The ledger's number.
        opened_at: Time of opening, in ms since 1970; 0 for a previously stored ledger.
        closed_at: Time of closing, in ms since 1970; 0 while open.
        first_rank: The number of earlier entries of the topic, counted since the topic was opened.
        first_bytes: The bytes of these earlier entries.
        confirmed: The number of stored entries; later entries are being written.
    """

    __slots__ = ("closed_at", "confirmed", "first_bytes", "first_rank", "ledger_id", "opened_at")

    def __init__(self, ledger_id: int, opened_at: int = 0) -> None:
        self.ledger_id = ledger_id
        self.opened_at = opened_at
        self.closed_at = 0
        self.first_rank = 0
        self.first_bytes = 0
        self.confirmed = 0

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of entries, including entries being written."""

    @abstractmethod
    def bytes_before(self, number: int) -> int:
        """Return the total bytes of the entries before the entry with a given number.

        The result may be an estimate, except at the end of the ledger.
        """

    @property
    def last(self) -> Position:
        """The position of the last stored entry; (ledger id, -1) without entries."""
        return Position(self.ledger_id, self.confirmed - 1)

    @property
    def info(self) -> LedgerInfo:
        """The ledger's id, size and times."""
        size_bytes = self.bytes_before(self.confirmed)
        return LedgerInfo(
            self.ledger_id, self.confirmed, size_bytes, self.closed_at, self.opened_at
        )


LedgerT = TypeVar("LedgerT", bound=StoredLedger)

_first_rank = attrgetter("first_rank")


class LedgerRow(Generic[LedgerT]):
    """The ledgers of a topic, oldest first; the last is open for new entries.

    Every entry has a rank, its number in all ledgers together. The difference of two ranks is the
    number of entries between two positions.

    Attributes:
        last_confirmed: The position of the last stored entry. It is remembered after its ledger is
            dropped, and determined again when the topic is opened.
    """

    def __init__(self, ledgers: list[LedgerT]) -> None:
        self._ledgers = ledgers
        self._ids = [ledger.ledger_id for ledger in ledgers]
        self.last_confirmed = Position(-1, -1)
        self.look_for_last()

    def __iter__(self) -> Iterator[LedgerT]:
        return iter(self._ledgers)

    def __len__(self) -> int:
        return len(self._ledgers)

    @property
    def open(self) -> LedgerT:
        """The open ledger, to which new entries are added."""
        return self._ledgers[-1]

    # -- changes of the row -------------------------------------------------------------------

    def close(self, closed_at: int) -> LedgerT | None:
        """Close the open ledger; if it is empty, remove and return it."""
        ledger = self._ledgers[-1]
        ledger.closed_at = closed_at
        if len(ledger):
            return None
        self._ids.pop()
        return self._ledgers.pop()

    def add(self, ledger: LedgerT) -> None:
        """Add a ledger after the last ledger; it becomes the open ledger."""
        if self._ledgers:
            before = self._ledgers[-1]
            ledger.first_rank = before.first_rank + len(before)
            ledger.first_bytes = before.first_bytes + before.bytes_before(len(before))
        self._ledgers.append(ledger)
        self._ids.append(ledger.ledger_id)

    def count_anew(self) -> None:
        """Remove closed empty ledgers, and rank the entries of the remaining ledgers again."""
        ledgers, self._ledgers, self._ids = self._ledgers, [], []
        for ledger in ledgers:
            if len(ledger) or ledger is ledgers[-1]:
                self.add(ledger)

    def look_for_last(self) -> None:
        """Determine the position of the last stored entry; called when a topic is opened."""
        if self._ledgers:
            total = self._total
            self.last_confirmed = self._of_rank(total - 1) if self.entries else self.open.last

    def consumed(self, before: Position, keep_bytes: int, keep_since: int) -> int:
        """Return the number of oldest ledgers that no subscription and no retention policy needs.

        Args:
            before: The first entry still needed by a subscription.
            keep_bytes: Retention by size: a ledger is dropped while later ledgers have at least as
                many bytes; -1 is unlimited, 0 no retention.
            keep_since: Retention by time, in ms since 1970: ledgers closed earlier are dropped; 0
                is unlimited.
        """
        size_bytes = self.size_bytes
        count = 0
        for ledger in self._ledgers[:-1]:
            over_size = 0 <= keep_bytes <= size_bytes - ledger.bytes_before(len(ledger))
            over_time = ledger.closed_at < keep_since
            if ledger.last >= before or not (over_size or over_time) or self._is_under_way(ledger):
                break
            size_bytes -= ledger.bytes_before(len(ledger))
            count += 1
        return count

    @property
    def closed(self) -> int:
        """The number of oldest ledgers that are closed and completely written."""
        count = 0
        for ledger in self._ledgers[:-1]:
            if self._is_under_way(ledger):
                break
            count += 1
        return count

    def take(self, count: int) -> list[LedgerT]:
        """Remove and return the given number of oldest ledgers."""
        taken = self._ledgers[:count]
        del self._ledgers[:count], self._ids[:count]
        return taken

    @property
    def is_under_way(self) -> bool:
        """True while entries of any ledger are still being written."""
        return any(map(self._is_under_way, self._ledgers))

    @staticmethod
    def _is_under_way(ledger: LedgerT) -> bool:
        return ledger.confirmed < len(ledger)

    # -- positions ----------------------------------------------------------------------------

    @property
    def entries(self) -> int:
        """The number of stored entries in all ledgers."""
        return self._total - self._ledgers[0].first_rank

    @property
    def size_bytes(self) -> int:
        """The total bytes of the stored entries in all ledgers."""
        last = self._ledgers[-1]
        return self._bytes_upto(last.last) - self._ledgers[0].first_bytes

    def holding(self, position: Position) -> tuple[LedgerT, int] | None:
        """Return the ledger and entry number of a position; None if no entry is stored there."""
        index = bisect_right(self._ids, position.ledger_id) - 1
        if index < 0 or self._ids[index] != position.ledger_id:
            return None
        ledger = self._ledgers[index]
        return (ledger, position.entry_id) if 0 <= position.entry_id < ledger.confirmed else None

    def following(self, position: Position) -> Position:
        """Return the position of the first entry after a position.

        If there is no such entry, return the position that the next new entry will have.
        """
        index = bisect_right(self._ids, position.ledger_id) - 1
        if index >= 0:
            ledger = self._ledgers[index]
            number = max(position.entry_id, -1) + 1
            if ledger.ledger_id == position.ledger_id and number < len(ledger):
                return Position(ledger.ledger_id, number)
        behind = index + 1
        if behind < len(self._ledgers):
            return Position(self._ids[behind], 0)
        return Position(self.open.ledger_id, len(self.open))

    def preceding(self, position: Position) -> Position:
        """Return the position of the last entry before a position.

        If there is no such entry, return entry id -1 of the position's ledger, or of the first
        ledger.
        """
        rank = self.rank(Position(position.ledger_id, position.entry_id - 1))
        if rank > self._ledgers[0].first_rank:
            return self._of_rank(rank - 1)
        known = position.ledger_id in self._ids
        return Position(position.ledger_id if known else self._ids[0], -1)

    def count(self, after: Position, last: Position) -> int:
        """Return the number of entries after ``after``, up to and including ``last``."""
        return max(0, self.rank(last) - self.rank(after))

    def size_between(self, after: Position, last: Position) -> int:
        """Return the bytes of the entries after ``after``, up to and including ``last``."""
        return max(0, self._bytes_upto(last) - self._bytes_upto(after))

    def at(self, after: Position, count: int) -> Position:
        """Return the position of the ``count``-th entry after position ``after``.

        If there are fewer entries, return the position of the last entry.
        """
        start = self.rank(after)
        rank = min(start + count, self._total)
        return self._of_rank(rank - 1) if rank > start else after

    def rank(self, position: Position) -> int:
        """Return the number of entries up to a position, counted since the topic was opened.

        Entries of ledgers dropped since then count, too.
        """
        index = bisect_right(self._ids, position.ledger_id) - 1
        if index < 0:
            return self._ledgers[0].first_rank
        ledger = self._ledgers[index]
        return ledger.first_rank + self._number_upto(ledger, position)

    def _bytes_upto(self, position: Position) -> int:
        index = bisect_right(self._ids, position.ledger_id) - 1
        if index < 0:
            return self._ledgers[0].first_bytes
        ledger = self._ledgers[index]
        return ledger.first_bytes + ledger.bytes_before(self._number_upto(ledger, position))

    @staticmethod
    def _number_upto(ledger: LedgerT, position: Position) -> int:
        if ledger.ledger_id != position.ledger_id:
            return ledger.confirmed
        return max(0, min(position.entry_id + 1, ledger.confirmed))

    @property
    def _total(self) -> int:
        # Ledgers are confirmed in order: behind a ledger with pending writes nothing is stored.
        for ledger in reversed(self._ledgers):
            if ledger.confirmed or ledger is self._ledgers[0]:
                return ledger.first_rank + ledger.confirmed
        return 0

    def _ledger_of(self, rank: int) -> LedgerT:
        return self._ledgers[bisect_right(self._ledgers, rank, key=_first_rank) - 1]

    def of_rank(self, rank: int) -> tuple[LedgerT, int] | None:
        """Return the ledger and entry number for a rank (the entry's number across all ledgers).

        Return None if the entry was dropped.
        """
        if not self._ledgers[0].first_rank <= rank < self._total:
            return None
        ledger = self._ledger_of(rank)
        return ledger, rank - ledger.first_rank

    @property
    def ranks(self) -> tuple[int, int]:
        """The rank of the first stored entry, and the rank that the next new entry will have."""
        return self._ledgers[0].first_rank, self._total

    def _of_rank(self, rank: int) -> Position:
        ledger = self._ledger_of(rank)
        return Position(ledger.ledger_id, rank - ledger.first_rank)
