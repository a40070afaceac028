"""The figures of one ledger's entries, in columns."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from broker.messages.managed_ledger import LedgerInfo
from broker.messages.metadata import MessageDigest
from broker.messages.position import Position


class LedgerColumns:
    """The figures of one ledger's entries: an object for each would cost more than the figures.

    Attributes:
        ledger_id: Its number.
        closed_at: When it was closed, in ms since 1970; 0 while it is open.
        first_rank: Entries of the topic before it, since the topic was opened.
        first_bytes: Bytes of those.
        confirmed: How many of its entries are stored; those behind are under way.
    """

    __slots__ = (
        "_deliver_at",
        "_ends",
        "_message_counts",
        "closed_at",
        "confirmed",
        "first_bytes",
        "first_rank",
        "ledger_id",
        "publish_times",
    )

    def __init__(self, ledger_id: int, first_rank: int = 0, first_bytes: int = 0) -> None:
        self.ledger_id = ledger_id
        self.closed_at = 0
        self.first_rank = first_rank
        self.first_bytes = first_bytes
        self.confirmed = 0
        # Where each entry ends if all of them stood in a row: sums of any range in two looks.
        self._ends = array("Q")
        self.publish_times = array("Q")
        self._message_counts = array("i")
        # Most ledgers hold nothing that is delayed.
        self._deliver_at: array[int] | None = None

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, size: int, digest: MessageDigest) -> int:
        """Add an entry's figures; return its number."""
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

    def fill(
        self,
        ends: array[int],
        publish_times: array[int],
        message_counts: array[int],
        deliver_at: array[int],
    ) -> None:
        """Take over the columns of an empty ledger, as they were found."""
        self._ends = ends
        self.publish_times = publish_times
        self._message_counts = message_counts
        self._deliver_at = deliver_at if any(deliver_at) else None

    def forget_behind(self, count: int) -> None:
        """Keep the first ``count`` entries only."""
        for column in (self._ends, self.publish_times, self._message_counts, self._deliver_at):
            if column is not None:
                del column[count:]

    def digest(self, number: int) -> MessageDigest:
        """Return an entry's message count, publish time and time of delivery."""
        delayed = self._deliver_at
        return MessageDigest(
            self._message_counts[number],
            self.publish_times[number],
            0 if delayed is None else delayed[number],
        )

    def size(self, number: int) -> int:
        """Return how many bytes an entry has."""
        return self._ends[number] - (self._ends[number - 1] if number else 0)

    def bytes_before(self, number: int) -> int:
        """Return the bytes of the entries before this one."""
        return self._ends[number - 1] if number else 0

    def ends(self, first: int, end: int) -> array[int]:
        """Return where consecutive entries end, in bytes since the start of the ledger."""
        return self._ends[first:end]

    @property
    def last(self) -> Position:
        """Its last stored entry; (its id, -1) if there is none."""
        return Position(self.ledger_id, self.confirmed - 1)

    @property
    def info(self) -> LedgerInfo:
        """The ledger as the interface shows it."""
        size_bytes = self.bytes_before(self.confirmed)
        return LedgerInfo(self.ledger_id, self.confirmed, size_bytes, self.closed_at)

    def end_of_read(self, first: int, max_entries: int, max_bytes: int) -> int:
        """Return the number behind the last entry of a read; at least one is read."""
        by_bytes = bisect_left(self._ends, self.bytes_before(first) + max_bytes + 1, first)
        return min(self.confirmed, first + max(1, min(max_entries, by_bytes - first)))
