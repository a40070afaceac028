"""Digests and sizes of one ledger's entries, in columns."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from broker.messages.metadata import MessageDigest
from broker.messages.stores.stored_ledger import StoredLedger


class LedgerColumns(StoredLedger):
    """Digests and sizes of one ledger's entries, in columns: objects would cost more memory."""

    __slots__ = ("_deliver_at", "_ends", "_message_counts", "publish_times")

    def __init__(self, ledger_id: int, opened_at: int = 0) -> None:
        super().__init__(ledger_id, opened_at)
        # Cumulative end of each entry, so that sums of any range take two lookups.
        self._ends = array("Q")
        self.publish_times = array("Q")
        self._message_counts = array("i")
        # Most ledgers have no delayed entries.
        self._deliver_at: array[int] | None = None

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, size: int, digest: MessageDigest) -> int:
        """Add an entry's size and digest; return the entry's number."""
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

    def digest(self, number: int) -> MessageDigest:
        """Return an entry's message count, publish time and time of delivery."""
        delayed = self._deliver_at
        return MessageDigest(
            self._message_counts[number],
            self.publish_times[number],
            0 if delayed is None else delayed[number],
        )

    def bytes_before(self, number: int) -> int:
        """Return the bytes of all previous entries."""
        return self._ends[number - 1] if number else 0

    def ends(self, first: int, end: int) -> array[int]:
        """Return where consecutive entries end, in bytes since the start of the ledger."""
        return self._ends[first:end]

    def end_of_read(self, first: int, max_entries: int, max_bytes: int) -> int:
        """Return the number behind the last entry of a read of at least one entry."""
        by_bytes = bisect_left(self._ends, self.bytes_before(first) + max_bytes + 1, first)
        return min(self.confirmed, first + max(1, min(max_entries, by_bytes - first)))
