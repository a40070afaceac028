"""One ledger of a message database: its sizes, and its newest entries in memory."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from broker.messages.stores.ledger_row import StoredLedger

if TYPE_CHECKING:
    from broker.messages.metadata import MessageDigest

_MOST_MARKS = 256
_MOST_GROUPS = 1_000
"""The number of groups of entries above which the groups of dropped ledgers are forgotten."""
ENTRY_OVERHEAD_BYTES = 200
"""The bytes of memory of an entry in addition to its data: for objects and numbers."""


class SqliteLedger(StoredLedger):
    """A ledger whose entries are in the database, and whose newest entries are also in memory.

    The memory of the ledger is bounded: at first it stores the byte offset of every entry, later
    only of every second entry, every fourth and so on, and estimates the offsets in between.

    Attributes:
        topic_id: The topic's id; 0 for a dropped ledger, whose entries are being deleted.
        size_bytes: Bytes of all entries.
        recent_from: The number of the first entry in memory; all later entries are in memory.
        recent: The entries in memory.
    """

    __slots__ = (
        *("topic_id", "size_bytes", "recent_from", "recent"),
        *("_count", "_confirmed_bytes", "_marks", "_stride"),
    )

    def __init__(self, ledger_id: int, topic_id: int, opened_at: int = 0) -> None:
        super().__init__(ledger_id, opened_at)
        self.topic_id = topic_id
        self.size_bytes = 0
        self.recent_from = 0
        self.recent: list[tuple[bytes, MessageDigest]] = []
        self._count = 0
        self._confirmed_bytes = 0
        self._marks: list[int] = []
        self._stride = 1

    @classmethod
    def stored(
        cls, ledger_id: int, topic_id: int, entries: int, size_bytes: int, closed_at: int
    ) -> SqliteLedger:
        """Create a ledger from its values in the database."""
        ledger = cls(ledger_id, topic_id)
        ledger.closed_at = closed_at
        ledger.size_bytes = ledger._confirmed_bytes = size_bytes
        ledger.confirmed = ledger.recent_from = ledger._count = entries
        ledger._marks, ledger._stride = [0], max(1, entries)
        return ledger

    def __len__(self) -> int:
        return self._count

    def add(self, data: bytes, digest: MessageDigest) -> int:
        """Add an entry that is to be written, and return its number in the ledger."""
        number = self._count
        if number == len(self._marks) * self._stride:
            self._mark()
        self.recent.append((data, digest))
        self.size_bytes += len(data)
        self._count = number + 1
        return number

    def _mark(self) -> None:
        if len(self._marks) == _MOST_MARKS:
            self._marks = self._marks[::2]
            self._stride *= 2
        self._marks.append(self.size_bytes)

    def confirm(self, entries: int, size_bytes: int) -> None:
        """Count the next unstored entries, of the given number and bytes, as stored."""
        self.confirmed += entries
        self._confirmed_bytes += size_bytes

    def cut(self) -> tuple[int, int]:
        """Forget the entries that are not stored; return their number and bytes."""
        entries, size_bytes = self._count - self.confirmed, self.size_bytes - self._confirmed_bytes
        if entries:
            del self.recent[-entries:]
            self._count, self.size_bytes = self.confirmed, self._confirmed_bytes
            del self._marks[-(-self._count // self._stride) :]
        return entries, size_bytes

    def bytes_before(self, number: int) -> int:
        """Return the approximate total bytes of the entries before the entry with a number.

        The result is exact for the number after the last entry, and after the last stored entry.
        """
        if number >= self._count:
            return self.size_bytes
        if number == self.confirmed:
            return self._confirmed_bytes
        index, rest = divmod(number, self._stride)
        before = self._marks[index]
        if not rest:
            return before
        if index + 1 < len(self._marks):
            behind, width = self._marks[index + 1], self._stride
        else:
            behind, width = self.size_bytes, self._count - index * self._stride
        return before + (behind - before) * rest // width

    def forget_recent(self, entries: int) -> None:
        """Drop the given number of oldest entries from memory."""
        del self.recent[:entries]
        self.recent_from += entries

    def end_of_recent(self, first: int, max_entries: int, max_bytes: int) -> int:
        """Return the exclusive end, within both limits, of a read from the entries in memory.

        A read returns at least one entry.
        """
        most = min(self.confirmed, first + max(1, max_entries))
        recent, offset, size = self.recent, self.recent_from, 0
        for number in range(first, most):
            size += len(recent[number - offset][0])
            if size > max_bytes and number > first:
                return number
        return most


class RecentEntries:
    """The newest stored entries of all ledgers, kept in memory up to a bound.

    Attributes:
        size_bytes: The memory of the entries.
    """

    def __init__(self, max_bytes: int) -> None:
        self.size_bytes = 0
        self._max_bytes = max_bytes
        # Also groups of dropped ledgers: those without entries in memory.
        self._groups: deque[tuple[SqliteLedger, int, int]] = deque()
        self._most_groups = _MOST_GROUPS

    def add(self, ledger: SqliteLedger, entries: int, size_bytes: int) -> None:
        """Count newly stored entries; above the limit, drop the oldest entries from memory."""
        if not ledger.recent:
            return  # Dropped before its entries were stored.
        cost = size_bytes + entries * ENTRY_OVERHEAD_BYTES
        self._groups.append((ledger, entries, cost))
        self.size_bytes += cost
        while self.size_bytes > self._max_bytes and self._groups:
            oldest, count, freed = self._groups.popleft()
            if oldest.recent:
                oldest.forget_recent(count)
                self.size_bytes -= freed

    def forget(self, ledger: SqliteLedger) -> None:
        """Remove all entries of a deleted ledger from memory."""
        stored = ledger.recent[: max(0, ledger.confirmed - ledger.recent_from)]
        self.size_bytes -= sum(len(data) + ENTRY_OVERHEAD_BYTES for data, _ in stored)
        ledger.forget_recent(len(ledger.recent))
        if len(self._groups) >= self._most_groups:
            self._groups = deque(group for group in self._groups if group[0].recent)
            self._most_groups = 2 * len(self._groups) + _MOST_GROUPS
