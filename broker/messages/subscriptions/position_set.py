"""A sorted set of entry positions, stored as one bitmap per ledger."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from itertools import starmap
from typing import TYPE_CHECKING

from broker.messages.position import Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SOME_SET = re.compile(rb"[^\x00]")
_SOME_CLEAR = re.compile(rb"[^\xff]")
_OFFSETS = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


class _Bitmap:
    """The entries of one ledger that a position set contains, as a bitmap.

    The empty bytes before index ``base`` are not stored.
    """

    __slots__ = ("base", "bits", "count", "low")

    def __init__(self) -> None:
        self.base = 0
        self.bits = bytearray()
        self.count = 0
        # Index of the first possibly non-empty byte of ``bits``: searches start here.
        self.low = 0

    def room(self, first: int, last: int) -> None:
        """Extend the stored bytes so that they cover the entries from ``first`` to ``last``."""
        if first >> 3 < self.base:
            self.bits[:0] = bytes(self.base - (first >> 3))
            self.base = first >> 3
        missing = (last >> 3) - self.base + 1 - len(self.bits)
        if missing > 0:
            self.bits.extend(bytes(missing))

    def has(self, entry: int) -> bool:
        index = (entry >> 3) - self.base
        return 0 <= index < len(self.bits) and bool(self.bits[index] & 1 << (entry & 7))

    def next_set(self, entry: int) -> int | None:
        """Return the first contained entry id at or after ``entry``; None if there is none."""
        index = max((entry >> 3) - self.base, 0)
        if index < len(self.bits) and index + self.base == entry >> 3:
            rest = self.bits[index] >> (entry & 7)
            if rest:
                return entry + _lowest(rest)
            index += 1
        found = _SOME_SET.search(self.bits, index)
        if found is None:
            return None
        return (self.base + found.start() << 3) + _lowest(self.bits[found.start()])

    def count_within(self, first: int, end: int | None) -> int:
        if end is None and first <= 0:
            return self.count
        start = self.base << 3
        bits = int.from_bytes(self.bits, "little") >> max(0, first - start)
        if end is not None:
            room = max(0, end - max(first, start))
            bits &= (1 << room) - 1
        return bits.bit_count()


class PositionSet:
    """A set of entry positions, sorted by ledger id and entry id.

    Adding and removing takes constant time. Memory: one bit for each entry of a ledger between the
    first and the last contained entry.

    Attributes:
        count: The number of positions.
    """

    def __init__(self) -> None:
        self._bitmaps: dict[int, _Bitmap] = {}
        self._ledgers: list[int] = []
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def __contains__(self, position: object) -> bool:
        if not isinstance(position, tuple):
            return False
        bitmap = self._bitmaps.get(position[0])
        return bitmap is not None and position[1] >= 0 and bitmap.has(position[1])

    def __iter__(self) -> Iterator[Position]:
        """Yield the positions in order; the set must not change meanwhile."""
        return starmap(Position, self.pairs())

    def pairs(self, begin: tuple[int, int] = (-1, 0)) -> Iterator[tuple[int, int]]:
        """Yield each position as a tuple of ledger id and entry id, twice as fast as iteration.

        Args:
            begin: The position to start at; up to seven entries before it may be included.
        """
        for ledger_id in self._ledgers[bisect_left(self._ledgers, begin[0]) :]:
            bitmap = self._bitmaps[ledger_id]
            found = _SOME_SET.search(bitmap.bits, bitmap.low)
            bitmap.low = start = found.start() if found else 0
            if ledger_id == begin[0]:
                start = max(start, (begin[1] >> 3) - bitmap.base)
            for byte in _SOME_SET.finditer(bitmap.bits, start):
                index = byte.start()
                first = bitmap.base + index << 3
                for offset in _OFFSETS[bitmap.bits[index]]:
                    yield ledger_id, first + offset

    def add(self, position: tuple[int, int]) -> bool:
        """Add a position; return False if the set already contains it."""
        ledger_id, entry = position
        bitmap = self._bitmaps.get(ledger_id) or self._new_bitmap(ledger_id, entry)
        index = (entry >> 3) - bitmap.base
        if not 0 <= index < len(bitmap.bits):
            bitmap.room(entry, entry)
            index = (entry >> 3) - bitmap.base
        bit = 1 << (entry & 7)
        if bitmap.bits[index] & bit:
            return False
        bitmap.bits[index] |= bit
        bitmap.low = min(bitmap.low, index)
        bitmap.count += 1
        self.count += 1
        return True

    def count_between(self, after: Position, last: Position) -> int:
        """Return the number of positions after ``after``, up to and including ``last``."""
        count = 0
        first_ledger = bisect_left(self._ledgers, after.ledger_id)
        for ledger_id in self._ledgers[first_ledger:]:
            if ledger_id > last.ledger_id:
                break
            bitmap = self._bitmaps[ledger_id]
            first = after.entry_id + 1 if ledger_id == after.ledger_id else 0
            end = last.entry_id + 1 if ledger_id == last.ledger_id else None
            count += bitmap.count_within(first, end)
        return count

    def discard(self, position: tuple[int, int]) -> bool:
        """Remove a position; return False if the set does not contain it."""
        if position not in self:
            return False
        ledger_id, entry = position
        bitmap = self._bitmaps[ledger_id]
        bitmap.bits[(entry >> 3) - bitmap.base] &= ~(1 << (entry & 7))
        bitmap.count -= 1
        self.count -= 1
        if not bitmap.count:
            self._drop(bisect_left(self._ledgers, ledger_id), ledger_id)
        return True

    def discard_through(self, position: Position) -> None:
        """Remove all positions up to and including a position."""
        older = bisect_left(self._ledgers, position.ledger_id)
        for ledger_id in self._ledgers[:older]:
            self.count -= self._bitmaps.pop(ledger_id).count
        del self._ledgers[:older]
        bitmap = self._bitmaps.get(position.ledger_id)
        if bitmap is None or position.entry_id < 0:
            return
        whole, rest = divmod(position.entry_id + 1, 8)
        whole = min(max(whole - bitmap.base, 0), len(bitmap.bits))
        removed = int.from_bytes(bitmap.bits[:whole], "little").bit_count()
        del bitmap.bits[:whole]
        bitmap.base += whole
        bitmap.low = max(0, bitmap.low - whole)
        if rest and bitmap.bits and bitmap.base == position.entry_id + 1 >> 3:
            removed += (bitmap.bits[0] & (1 << rest) - 1).bit_count()
            bitmap.bits[0] &= 0xFF << rest & 0xFF
        bitmap.count -= removed
        self.count -= removed
        if not bitmap.count:
            self._drop(0, position.ledger_id)

    def clear(self) -> None:
        """Remove all positions."""
        self._bitmaps.clear()
        self._ledgers.clear()
        self.count = 0

    def first_clear(self, ledger_id: int, entry: int) -> int:
        """Return the first entry id of a ledger, at or after ``entry``, that is not in the set."""
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is None or not bitmap.has(entry):
            return entry
        index = (entry >> 3) - bitmap.base
        rest = ~(bitmap.bits[index] >> (entry & 7)) & 0xFF >> (entry & 7)
        if rest:
            return entry + _lowest(rest)
        found = _SOME_CLEAR.search(bitmap.bits, index + 1)
        if found is None:
            return bitmap.base + len(bitmap.bits) << 3
        return (bitmap.base + found.start() << 3) + _lowest(~bitmap.bits[found.start()] & 0xFF)

    def ranges(self, most: int | None = None) -> list[tuple[int, int, int]]:
        """Return the ranges of consecutive entries: ledger id, first and last entry id, in order.

        Args:
            most: The largest number of ranges to return: half a million ranges take a second.
        """
        found: list[tuple[int, int, int]] = []
        for ledger_id in self._ledgers:
            bitmap = self._bitmaps[ledger_id]
            first = bitmap.next_set(0)
            while first is not None and len(found) != most:
                gap = self.first_clear(ledger_id, first)
                found.append((ledger_id, first, gap - 1))
                first = bitmap.next_set(gap)
        return found

    def count_ranges(self) -> int:
        """Return the number of ranges of consecutive entries."""
        rows = 0
        for bitmap in self._bitmaps.values():
            bits = int.from_bytes(bitmap.bits, "little")
            rows += (bits & ~(bits << 1)).bit_count()
        return rows

    def as_bitmaps(self) -> dict[int, bytes]:
        """Return a bitmap of the contained entries for each ledger.

        Entry 0 is the lowest bit of the first byte.
        """
        return {
            ledger_id: bytes(self._bitmaps[ledger_id].base) + self._bitmaps[ledger_id].bits
            for ledger_id in self._ledgers
        }

    @staticmethod
    def of_bitmaps(bitmaps: Mapping[int, bytes]) -> PositionSet:
        """Create a set from the bitmaps that ``as_bitmaps`` returns."""
        found = PositionSet()
        for ledger_id, bits in bitmaps.items():
            count = int.from_bytes(bits, "little").bit_count()
            if count:
                bitmap = found._new_bitmap(ledger_id, 0)
                bitmap.bits = bytearray(bits)
                bitmap.count = count
                found.count += count
        return found

    def _new_bitmap(self, ledger_id: int, entry: int) -> _Bitmap:
        insort(self._ledgers, ledger_id)
        bitmap = self._bitmaps[ledger_id] = _Bitmap()
        bitmap.base = entry >> 3
        return bitmap

    def _drop(self, index: int, ledger_id: int) -> None:
        del self._ledgers[index], self._bitmaps[ledger_id]


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
