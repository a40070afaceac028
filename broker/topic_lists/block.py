"""A block: a run of topic names in wire format, with their offsets.

An entry is a name as a ``topics`` field of CommandGetTopicsOfNamespaceResponse: tag, length, name.
Entries and names are Arrow columns over the wire bytes; only encoding works name by name in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from proto.parsing.varint import decode_varint, encode_varint
from proto.topic_hash import combine_joined, java_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    import numpy.typing as npt

    Offsets: TypeAlias = npt.NDArray[np.int32]
    Mask: TypeAlias = npt.NDArray[np.bool_]
    Rows: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]

ESTIMATED_BYTES_PER_NAME = 32
"""Heap estimate of a listed name beside its UTF-8 bytes (upstream: estimateTopicListSize)."""
BLOCK_OBJECT_BYTES = 700
"""Bytes of a block beside wire bytes and offsets: seven small objects."""
TOPICS_TAG = b"\x12"
"""Protobuf tag of the repeated string field 2, ``topics``."""
_PREFIXES = tuple(TOPICS_TAG + encode_varint(size) for size in range(512))
# Longer entries have one more byte before the name: the length is a varint.
_LONGEST_ENTRIES = (129, 16_386, 2_097_155)
_SHORTEST_PREFIX_BYTES = 2
_TO_THE_END = 1 << 30
_COMMA = ord(",")


def encode_entry(name: bytes) -> bytes:
    """Encode a name as a ``topics`` field."""
    size = len(name)
    return (_PREFIXES[size] if size < 512 else TOPICS_TAG + encode_varint(size)) + name


def decode_entry(entry: bytes) -> bytes:
    """Decode a ``topics`` field."""
    return entry[2:] if entry[1] < 0x80 else entry[decode_varint(entry, 1)[1] :]


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums of a run of names, known without reading the names.

    Attributes:
        count: Number of names.
        wire_bytes: Bytes of the ``topics`` fields.
        estimated_bytes: Heap estimate, UTF-8 bytes + 32 a name.
        crc: CRC32C of the names joined by commas.
        joined_bytes: Length of the joined text.
    """

    count: int = 0
    wire_bytes: int = 0
    estimated_bytes: int = 0
    crc: int = 0
    joined_bytes: int = 0

    @staticmethod
    def of_all(runs: Iterable[Totals]) -> Totals:
        """Return the totals of consecutive runs."""
        count = wire_bytes = estimated_bytes = crc = joined_bytes = 0
        for run in runs:
            before, behind = (count, crc, joined_bytes), (run.count, run.crc, run.joined_bytes)
            crc, joined_bytes = combine_joined(before, behind)
            count += run.count
            wire_bytes += run.wire_bytes
            estimated_bytes += run.estimated_bytes
        return Totals(count, wire_bytes, estimated_bytes, crc, joined_bytes)


class Block:
    """Some names in order, in wire format. Immutable, never empty.

    Attributes:
        wire: The entries, one after the other.
        offsets: Start of each entry in ``wire``, followed by the end of the last.
        first: Sort key of the first name.
    """

    __slots__ = ("__weakref__", "_partitioned", "first", "offsets", "totals", "wire")

    def __init__(self, wire: bytes, offsets: Offsets, joined: bytes | None = None) -> None:
        """Wrap entries; ``joined`` is the names joined by commas, if available."""
        self.wire = wire
        self.offsets = offsets
        self.totals = _totals(wire, offsets, _joined(wire, offsets) if joined is None else joined)
        self.first = java_order(self.name_at(0))
        self._partitioned: bool | None = None

    @staticmethod
    def of_names(names: Sequence[bytes]) -> Block:
        """Encode names in Java's order."""
        return Block(*encode_entries(names), b",".join(names))

    @property
    def may_have_partitions(self) -> bool:
        """True if a name contains ``-partition-``; searched once."""
        if self._partitioned is None:
            self._partitioned = b"-partition-" in self.wire
        return self._partitioned

    def entries(self) -> pa.BinaryArray:
        """Return the entries as a column over the wire bytes."""
        return entry_column(self.wire, self.offsets)

    def name_column(self) -> pa.BinaryArray:
        """Return the names as a column; copied at each call."""
        return name_column(self.wire, self.offsets)

    def names(self) -> list[bytes]:
        """Return the names, decoded at each call."""
        names: list[bytes] = self.name_column().to_pylist()
        return names

    def name_at(self, index: int) -> bytes:
        """Return the name at an index; -1 is the last name."""
        index %= self.totals.count
        return decode_entry(self.wire[self.offsets[index] : self.offsets[index + 1]])

    def place_of(self, key: bytes) -> int:
        """Return the number of names that sort before a key of ``java_order``."""
        low, high = 0, self.totals.count
        while low < high:
            middle = (low + high) // 2
            if java_order(self.name_at(middle)) < key:
                low = middle + 1
            else:
                high = middle
        return low

    def row_of(self, name: bytes) -> int | None:
        """Return the index of a name; None if missing."""
        place = self.place_of(java_order(name))
        found = place < self.totals.count and self.name_at(place) == name
        return place if found else None


def memory_bytes(block: Block) -> int:
    """Return a block's approximate memory in bytes."""
    return BLOCK_OBJECT_BYTES + len(block.wire) + len(block.first) + block.offsets.nbytes


def encode_entries(names: Sequence[bytes]) -> tuple[bytes, Offsets]:
    """Return names as wire bytes, with the offset of each entry."""
    entries = [encode_entry(name) for name in names]
    return b"".join(entries), offsets_of(np.fromiter(map(len, entries), np.int32, len(entries)))


def offsets_of(sizes: npt.NDArray[np.int32]) -> Offsets:
    """Return the offsets of entries of some sizes, with the end of the last entry."""
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def entry_column(wire: bytes, offsets: Offsets) -> pa.BinaryArray:
    """Return entries as a column over their bytes, without copying."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(wire)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def name_column(wire: bytes, offsets: Offsets, skipped: int = 0) -> pa.BinaryArray:
    """Return the names of entries as a column, skipping the first ``skipped`` bytes of each."""
    entries = entry_column(wire, offsets)
    sizes = np.diff(offsets)
    longest = int(sizes.max()) if len(sizes) else 0
    if longest <= _LONGEST_ENTRIES[0]:
        return pc.binary_slice(entries, _SHORTEST_PREFIX_BYTES + skipped, _TO_THE_END)
    shortest = int(sizes.min())
    column = pc.binary_slice(entries, _prefix_bytes(shortest) + skipped, _TO_THE_END)
    for bound in _LONGEST_ENTRIES:
        if shortest <= bound < longest:
            start = _prefix_bytes(bound + 1) + skipped
            longer = pc.binary_slice(entries, start, _TO_THE_END)
            column = pc.if_else(pa.array(sizes > bound), longer, column)
    return column


def _prefix_bytes(entry_bytes: int) -> int:
    return _SHORTEST_PREFIX_BYTES + sum(entry_bytes > bound for bound in _LONGEST_ENTRIES)


def _totals(wire: bytes, offsets: Offsets, joined: bytes) -> Totals:
    count = len(offsets) - 1
    estimate = len(joined) - (count - 1) + ESTIMATED_BYTES_PER_NAME * count
    return Totals(count, len(wire), estimate, google_crc32c.value(joined), len(joined))


def _joined(wire: bytes, offsets: Offsets) -> bytes:
    # One byte before each name stays and becomes the comma: half the time of a join.
    column = name_column(wire, offsets, skipped=-1)
    _, begins, data = column.buffers()
    joined = bytearray(data)
    commas = np.frombuffer(begins, np.int32, len(column))
    np.frombuffer(joined, np.uint8)[commas] = _COMMA
    return bytes(memoryview(joined)[1:])
