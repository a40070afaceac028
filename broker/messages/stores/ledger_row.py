"""The ledgers of a topic in order, and arithmetic on positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from broker.messages.position import Position

if TYPE_CHECKING:
    from collections.abc import Iterator


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


class StoredLedger(ABC):
    """The sizes and times of one ledger; stores add the entries.

    Attributes:
        ledger_id: The ledger's number.
        opened_at: Time of opening, in ms since 1970; 0 for a previously stored ledger.
        closed_at: Time of closing, in ms since 1970; 0 while open.
        first_rank: Earlier entries of the topic, since the topic was opened.
        first_bytes: Bytes of the earlier entries.
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
        """Return the bytes of all entries before an entry; exact only for the end of the ledger."""

    @property
    def last(self) -> Position:
        """The last stored entry; (ledger id, -1) without entries."""
        return Position(self.ledger_id, self.confirmed - 1)

    @property
    def info(self) -> LedgerInfo:
        """The ledger's public information."""
        size_bytes = self.bytes_before(self.confirmed)
        return LedgerInfo(
            self.ledger_id, self.confirmed, size_bytes, self.closed_at, self.opened_at
        )


LedgerT = TypeVar("LedgerT", bound=StoredLedger)

_first_rank = attrgetter("first_rank")


class LedgerRow(Generic[LedgerT]):
    """The ledgers of a topic in order, the open ledger last.

    Every entry has a rank, counted through all ledgers: distances are differences of ranks.

    Attributes:
        last_confirmed: The last stored entry. Remembered after its ledger is dropped, and
            determined again when the topic is opened.
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
        """The ledger for new entries."""
        return self._ledgers[-1]

    # -- changes of the row -------------------------------------------------------------------

    def close(self, closed_at: int) -> LedgerT | None:
        """Close the open ledger; remove and return an empty ledger."""
        ledger = self._ledgers[-1]
        ledger.closed_at = closed_at
        if len(ledger):
            return None
        self._ids.pop()
        return self._ledgers.pop()

    def add(self, ledger: LedgerT) -> None:
        """Open a ledger behind the last."""
        if self._ledgers:
            before = self._ledgers[-1]
            ledger.first_rank = before.first_rank + len(before)
            ledger.first_bytes = before.first_bytes + before.bytes_before(len(before))
        self._ledgers.append(ledger)
        self._ids.append(ledger.ledger_id)

    def count_anew(self) -> None:
        """Remove closed empty ledgers, and rank the remaining ledgers again."""
        ledgers, self._ledgers, self._ids = self._ledgers, [], []
        for ledger in ledgers:
            if len(ledger) or ledger is ledgers[-1]:
                self.add(ledger)

    def look_for_last(self) -> None:
        """Find the last stored entry, as when a topic is opened."""
        if self._ledgers:
            total = self._total
            self.last_confirmed = self._of_rank(total - 1) if self.entries else self.open.last

    def consumed(self, before: Position, keep_bytes: int, keep_since: int) -> int:
        """Return the number of leading ledgers dropped by ``trim``."""
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
        """The number of leading closed ledgers without pending writes."""
        count = 0
        for ledger in self._ledgers[:-1]:
            if self._is_under_way(ledger):
                break
            count += 1
        return count

    def take(self, count: int) -> list[LedgerT]:
        """Remove and return a number of leading ledgers."""
        taken = self._ledgers[:count]
        del self._ledgers[:count], self._ids[:count]
        return taken

    @property
    def is_under_way(self) -> bool:
        """True while entries are being written."""
        return any(map(self._is_under_way, self._ledgers))

    @staticmethod
    def _is_under_way(ledger: LedgerT) -> bool:
        return ledger.confirmed < len(ledger)

    # -- positions ----------------------------------------------------------------------------

    @property
    def entries(self) -> int:
        """Stored entries in all ledgers."""
        return self._total - self._ledgers[0].first_rank

    @property
    def size_bytes(self) -> int:
        """Bytes of the stored entries in all ledgers."""
        last = self._ledgers[-1]
        return self._bytes_upto(last.last) - self._ledgers[0].first_bytes

    def holding(self, position: Position) -> tuple[LedgerT, int] | None:
        """Return the ledger and number of a stored entry; None if missing."""
        index = bisect_right(self._ids, position.ledger_id) - 1
        if index < 0 or self._ids[index] != position.ledger_id:
            return None
        ledger = self._ledgers[index]
        return (ledger, position.entry_id) if 0 <= position.entry_id < ledger.confirmed else None

    def following(self, position: Position) -> Position:
        """Return the next position with an entry, or the position of the next new entry."""
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
        """Return the previous entry; before the first entry: (its ledger, -1)."""
        rank = self.rank(Position(position.ledger_id, position.entry_id - 1))
        if rank > self._ledgers[0].first_rank:
            return self._of_rank(rank - 1)
        known = position.ledger_id in self._ids
        return Position(position.ledger_id if known else self._ids[0], -1)

    def count(self, after: Position, last: Position) -> int:
        """Return the number of entries behind ``after`` up to and including ``last``."""
        return max(0, self.rank(last) - self.rank(after))

    def size_between(self, after: Position, last: Position) -> int:
        """Return the bytes of the entries behind ``after`` up to and including ``last``."""
        return max(0, self._bytes_upto(last) - self._bytes_upto(after))

    def at(self, after: Position, count: int) -> Position:
        """Return the position of the ``count``-th entry behind ``after``; the last at most."""
        start = self.rank(after)
        rank = min(start + count, self._total)
        return self._of_rank(rank - 1) if rank > start else after

    def rank(self, position: Position) -> int:
        """Return the number of entries up to a position, since the topic was opened."""
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
        """Return the ledger and number of a stored entry by rank; None if dropped."""
        if not self._ledgers[0].first_rank <= rank < self._total:
            return None
        ledger = self._ledger_of(rank)
        return ledger, rank - ledger.first_rank

    @property
    def ranks(self) -> tuple[int, int]:
        """The rank of the first stored entry, and the rank behind the last."""
        return self._ledgers[0].first_rank, self._total

    def _of_rank(self, rank: int) -> Position:
        ledger = self._ledger_of(rank)
        return Position(ledger.ledger_id, rank - ledger.first_rank)
