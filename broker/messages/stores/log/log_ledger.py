"""One ledger's entries in the log: their figures, and where they stand."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from broker.messages.stores.columns import LedgerColumns
from broker.messages.stores.log.records import OFFSET_BITS

if TYPE_CHECKING:
    from broker.messages.metadata import MessageDigest


class LogLedger(LedgerColumns):
    """A ledger whose entries are in the log.

    Attributes:
        places: Where each entry's record stands: the segment's number, then the offset.
        segments: The segments that have entries of it.
    """

    __slots__ = ("places", "segments")

    def __init__(self, ledger_id: int) -> None:
        super().__init__(ledger_id)
        self.places = array("Q")
        self.segments: set[int] = set()

    def store(self, size: int, digest: MessageDigest, place: int) -> None:
        """Add an entry that is on its way to a place."""
        self.add(size, digest)
        self.places.append(place)

    def cut(self) -> list[tuple[int, int]]:
        """Forget the entries that are not stored; return segment and bytes of each."""
        kept = self.confirmed
        cut = [
            (self.places[number] >> OFFSET_BITS, self.size(number))
            for number in range(kept, len(self))
        ]
        self.forget_behind(kept)
        del self.places[kept:]
        return cut

    def numbers_in(self, segment: int) -> list[int]:
        """Return the entries that stand in a segment."""
        # A view of the array keeps it from growing, so it must not outlive this call.
        places = np.frombuffer(self.places, np.uint64)
        found: list[int] = np.flatnonzero(places >> np.uint64(OFFSET_BITS) == segment).tolist()
        return found


class FoundEntries:
    """The entries of one ledger as they are found in the log, in any order."""

    def __init__(self) -> None:
        self.ids = array("Q")
        self.places = array("Q")
        self.sizes = array("I")
        self.message_counts = array("i")
        self.publish_times = array("Q")
        self.deliver_at = array("q")

    def add(self, entry_id: int, place: int, size: int, digest: MessageDigest) -> None:
        """Add an entry; of one that was copied the last place counts."""
        self.ids.append(entry_id)
        self.places.append(place)
        self.sizes.append(size)
        self.message_counts.append(digest.message_count)
        self.publish_times.append(digest.publish_time)
        self.deliver_at.append(digest.deliver_at)

    def ledger(self, ledger_id: int) -> tuple[LogLedger, int]:
        """Return the ledger up to the first entry that is missing, and how many lie behind that."""
        if not self.ids:
            return LogLedger(ledger_id), 0
        self._sort()
        count = self._without_gap()
        ledger = LogLedger(ledger_id)
        ledger.places = self.places[:count]
        ledger.fill(
            array("Q", accumulate(self.sizes[:count])),
            self.publish_times[:count],
            self.message_counts[:count],
            self.deliver_at[:count],
        )
        ledger.confirmed = count
        return ledger, len(self.ids) - count

    def _without_gap(self) -> int:
        ids = np.frombuffer(self.ids, np.uint64)
        gaps = np.flatnonzero(ids != np.arange(len(ids), dtype=np.uint64))
        return int(gaps[0]) if len(gaps) else len(ids)

    def _sort(self) -> None:
        ids = np.frombuffer(self.ids, np.uint64)
        if len(ids) < 2 or bool(np.all(ids[1:] > ids[:-1])):
            return
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        last = np.append(ordered[1:] != ordered[:-1], np.array([True]))
        chosen = order[last].tolist()
        for name in ("ids", "places", "sizes", "message_counts", "publish_times", "deliver_at"):
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, [column[index] for index in chosen]))
