"""The files of the log, and what lives in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.stores.log.records import ENTRY_DATA_OFFSET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.messages.stores.log.files import LogFile
    from broker.messages.stores.log.log_ledger import LogLedger
    from broker.messages.stores.log.records import ItemKey

SEGMENT_BYTES = 64 * 1024 * 1024
MOST_SEGMENTS = (1 << 32) - 1
"""A place in the log has so much room for a segment's number."""
_PREFIX, _DIGITS = "segment-", 12


def segment_name(number: int) -> str:
    """Return the name of a segment's file."""
    return f"{_PREFIX}{number:0{_DIGITS}d}"


def segment_number(name: str) -> int | None:
    """Return the number in the name of a segment's file; None for any other file."""
    number = name.removeprefix(_PREFIX)
    if number == name or len(number) != _DIGITS or not (number.isascii() and number.isdigit()):
        return None
    return int(number) if int(number) <= MOST_SEGMENTS else None


class Segment:
    """One file of the log.

    Attributes:
        number: Rises from file to file.
        file: Open for reading; None until its first write.
        size: Bytes that are in it, or are going to be written.
        unsettled: Writes to it that are not confirmed yet.
        synced: Bytes that the disk has for certain.
        live: Bytes of the records that are needed.
        ledgers: The ledgers with entries in it, and their bytes.
        items: The items whose current state is in it, and its size.
        keys: All items of which it has a state, current or not.
        damaged: True if some of it cannot be read: what can is copied away.
    """

    __slots__ = (
        "damaged",
        "file",
        "items",
        "keys",
        "ledgers",
        "live",
        "number",
        "size",
        "synced",
        "unsettled",
    )

    def __init__(self, number: int, file: LogFile | None = None, size: int = 0) -> None:
        self.number = number
        self.file = file
        self.size = size
        self.unsettled = 0
        self.synced = size
        self.live = 0
        self.ledgers: dict[LogLedger, int] = {}
        self.items: dict[ItemKey, int] = {}
        self.keys: set[ItemKey] = set()
        self.damaged = False


class Segments:
    """All segments, and where everything that is needed stands."""

    def __init__(self) -> None:
        self._by_number: dict[int, Segment] = {}
        self._last_number = 0

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._by_number.values())

    def __len__(self) -> int:
        return len(self._by_number)

    def __getitem__(self, number: int) -> Segment:
        return self._by_number[number]

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(segment.size for segment in self)

    def next(self) -> Segment:
        """Add a segment that is still to be written."""
        return self.add(Segment(self._last_number + 1))

    def add(self, segment: Segment) -> Segment:
        """Add a segment."""
        self._by_number[segment.number] = segment
        self._last_number = max(self._last_number, segment.number)
        return segment

    def remove(self, segment: Segment) -> None:
        """Forget a segment."""
        del self._by_number[segment.number]

    # -- what lives where ---------------------------------------------------------------------

    def entries_added(self, ledger: LogLedger, number: int, entries: int, data_bytes: int) -> None:
        """Count entries of a ledger that are in a segment."""
        segment = self._by_number[number]
        size = data_bytes + entries * ENTRY_DATA_OFFSET
        segment.live += size
        segment.ledgers[ledger] = segment.ledgers.get(ledger, 0) + size
        ledger.segments.add(number)

    def entries_gone(self, ledger: LogLedger, number: int, entries: int, data_bytes: int) -> None:
        """Count entries of a ledger that are no longer needed in a segment."""
        segment = self._by_number[number]
        if ledger not in segment.ledgers:
            return
        size = data_bytes + entries * ENTRY_DATA_OFFSET
        segment.live -= size
        segment.ledgers[ledger] -= size
        if not segment.ledgers[ledger]:
            del segment.ledgers[ledger]
            ledger.segments.discard(number)

    def ledger_gone(self, ledger: LogLedger) -> None:
        """Count a whole ledger as no longer needed."""
        for number in ledger.segments:
            segment = self._by_number[number]
            segment.live -= segment.ledgers.pop(ledger)
        ledger.segments.clear()

    def item_saved(self, key: ItemKey, number: int, size: int) -> None:
        """Count the current state of an item."""
        segment = self._by_number[number]
        segment.items[key] = size
        segment.keys.add(key)
        segment.live += size

    def item_gone(self, key: ItemKey, number: int) -> None:
        """Count an item's state in a segment as no longer needed."""
        segment = self._by_number[number]
        segment.live -= segment.items.pop(key)
