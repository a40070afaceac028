"""The bytes of one ledger's entries in memory."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from typing import TYPE_CHECKING

from broker.messages.stores.columns import LedgerColumns

if TYPE_CHECKING:
    from broker.messages.metadata import MessageDigest

FIRST_BLOCK_BYTES = 4 * 1024
MAPPED_BLOCK_BYTES = 1024 * 1024
"""A block of this size is a separate mapping, returned to the system when freed."""
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
"""The kernel takes nearly twice as long for the first touch of a page of shared memory."""


class MemoryLedger(LedgerColumns):
    """A ledger with entries in blocks of memory.

    Separate bytes objects would take a third of a microsecond each to free, and the allocator may
    return a gigabyte in one call, which blocks the event loop for 0.3 s.
    """

    __slots__ = ("_bases", "_block", "_blocks", "_firsts", "_left", "_used")

    def __init__(self, ledger_id: int, opened_at: int = 0) -> None:
        super().__init__(ledger_id, opened_at)
        self._blocks: list[bytearray | mmap.mmap] = []
        # For each block: the first entry, and the bytes of the ledger before the block.
        self._firsts: list[int] = []
        self._bases: list[int] = []
        self._block: bytearray | mmap.mmap = bytearray()
        self._used = 0
        self._left = 0

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
        return self.add(size, digest)

    def _add_block(self, size: int) -> None:
        """Start a block twice as large as the previous, so that small topics stay small."""
        capacity = max(size, min(MAPPED_BLOCK_BYTES, FIRST_BLOCK_BYTES << len(self._blocks)))
        mapped = capacity >= MAPPED_BLOCK_BYTES
        self._block = mmap.mmap(-1, capacity, _PRIVATE) if mapped else bytearray(capacity)
        self._blocks.append(self._block)
        self._firsts.append(len(self))
        self._bases.append(self.bytes_before(len(self)))
        self._used, self._left = 0, capacity

    def data(self, first: int, end: int) -> list[bytes]:
        """Return the bytes of consecutive entries."""
        index = bisect_right(self._firsts, first) - 1
        found: list[bytes] = []
        while first < end:
            behind = self._firsts[index + 1] if index + 1 < len(self._firsts) else end
            stop = min(end, behind)
            block, base = self._blocks[index], self._bases[index]
            start = self.bytes_before(first) - base
            for entry_end in self.ends(first, stop):
                entry_end -= base
                found.append(bytes(block[start:entry_end]))
                start = entry_end
            first, index = stop, index + 1
        return found

    def free_block(self) -> bool:
        """Free a block; return False without remaining blocks."""
        if not self._blocks:
            return False
        block = self._blocks.pop()
        self._block = bytearray()
        if isinstance(block, mmap.mmap):
            block.close()
        return True
