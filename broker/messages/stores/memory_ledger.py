"""One ledger's entries in memory, freed in small steps."""

from __future__ import annotations

import mmap
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from broker.messages.metadata import MessageDigest
from broker.messages.stores.ledger_row import StoredLedger

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_BLOCK_BYTES = 4 * 1024
MAPPED_BLOCK_BYTES = 1024 * 1024
"""A block of this size is a separate mapping, returned to the system when freed."""
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
"""The kernel takes nearly twice as long for the first touch of a page of shared memory."""


class MemoryLedger(StoredLedger):
    """A ledger with entries in blocks of memory, and digests and sizes in columns.

    Separate bytes objects would take a third of a microsecond each to free, and the allocator may
    return a gigabyte in one call, which blocks the event loop for 0.3 s.
    """

    __slots__ = (
        *("_ends", "publish_times", "_message_counts", "_deliver_at"),
        *("_blocks", "_firsts", "_bases", "_block", "_used", "_left"),
    )

    def __init__(self, ledger_id: int, opened_at: int = 0) -> None:
        super().__init__(ledger_id, opened_at)
        # Cumulative end of each entry, so that sums of any range take two lookups.
        self._ends = array("Q")
        self.publish_times = array("Q")
        self._message_counts = array("i")
        # Most ledgers have no delayed entries.
        self._deliver_at: array[int] | None = None
        self._blocks: list[bytearray | mmap.mmap] = []
        # For each block: the first entry, and the bytes of the ledger before the block.
        self._firsts: list[int] = []
        self._bases: list[int] = []
        self._block: bytearray | mmap.mmap = bytearray()
        self._used = 0
        self._left = 0

    def __len__(self) -> int:
        return len(self._ends)

    def store(self, data: bytes, digest: MessageDigest) -> int:
        """Store an entry; return its number."""
        size = len(data)
        if size > self._left or not self._blocks:
            self._add_block(size)
        used = self._used
        self._used = end = used + size
        self._left -= size
        self._block[used:end] = data
        self.confirmed += 1
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

    def _add_block(self, size: int) -> None:
        """Start a block twice as large as the previous, so that small topics stay small."""
        capacity = max(size, min(MAPPED_BLOCK_BYTES, FIRST_BLOCK_BYTES << len(self._blocks)))
        mapped = capacity >= MAPPED_BLOCK_BYTES
        self._block = mmap.mmap(-1, capacity, _PRIVATE) if mapped else bytearray(capacity)
        self._blocks.append(self._block)
        self._firsts.append(len(self))
        self._bases.append(self.bytes_before(len(self)))
        self._used, self._left = 0, capacity

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

    def end_of_read(self, first: int, max_entries: int, max_bytes: int) -> int:
        """Return the number behind the last entry of a read of at least one entry."""
        by_bytes = bisect_left(self._ends, self.bytes_before(first) + max_bytes + 1, first)
        return min(self.confirmed, first + max(1, min(max_entries, by_bytes - first)))

    def data(self, first: int, end: int) -> list[bytes]:
        """Return the bytes of consecutive entries."""
        index = bisect_right(self._firsts, first) - 1
        found: list[bytes] = []
        while first < end:
            behind = self._firsts[index + 1] if index + 1 < len(self._firsts) else end
            stop = min(end, behind)
            block, base = self._blocks[index], self._bases[index]
            start = self.bytes_before(first) - base
            for entry_end in self._ends[first:stop]:
                entry_end -= base
                found.append(bytes(block[start:entry_end]))
                start = entry_end
            first, index = stop, index + 1
        return found

    def freed(self) -> Iterator[None]:
        """Free the entries of an unused ledger, a block in each step."""
        self._block = bytearray()
        while self._blocks:
            block = self._blocks.pop()
            if isinstance(block, mmap.mmap):
                block.close()
            yield
