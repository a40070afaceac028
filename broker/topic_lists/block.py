"""A block of topic names: a part of a topic list, in the wire format of a response.

An entry is a name as a ``topics`` field of CommandGetTopicsOfNamespaceResponse: tag, length, name.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import accumulate, islice
from operator import sub
from typing import TYPE_CHECKING

import google_crc32c

from broker.columns import HAS_COLUMNS
from proto.parsing.varint import decode_varint, encode_varint
from proto.topic_hash import combine_joined, java_order

if TYPE_CHECKING or HAS_COLUMNS:
    import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    Offsets: TypeAlias = array[int]
    Mask: TypeAlias = bytes
    """A byte for each name: 1 or 0."""
    Rows: TypeAlias = Sequence[int]

ESTIMATED_BYTES_PER_NAME = 32
"""Heap estimate of a listed name beside its UTF-8 bytes (upstream: estimateTopicListSize)."""
BLOCK_OBJECT_BYTES = 700
"""Bytes of a block beside wire bytes and offsets: seven small objects."""
TOPICS_TAG = b"\x12"
"""Protobuf tag of the repeated string field 2, ``topics``."""
_PREFIXES = tuple(TOPICS_TAG + encode_varint(size) for size in range(512))
LONGEST_ENTRIES = (129, 16_386, 2_097_155)
"""Longer entries have one more byte before the name: the length is a varint."""
SHORTEST_PREFIX_BYTES = 2


def encode_entry(name: bytes) -> bytes:
    """Return a topic name in wire format, as a ``topics`` field of the response."""
    size = len(name)
    return (_PREFIXES[size] if size < 512 else TOPICS_TAG + encode_varint(size)) + name


def decode_entry(entry: bytes) -> bytes:
    """Return the topic name inside an encoded ``topics`` field."""
    return entry[2:] if entry[1] < 0x80 else entry[decode_varint(entry, 1)[1] :]


@dataclass(frozen=True, slots=True)
class Totals:
    """Number of names, sizes and checksum of consecutive topic names.

    Attributes:
        count: Number of names.
        wire_bytes: Bytes of the ``topics`` fields.
        estimated_bytes: Estimate of the heap memory: length + 32 bytes for each name.
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
        """Return the totals of consecutive parts of a topic list, taken together."""
        count = wire_bytes = estimated_bytes = crc = joined_bytes = 0
        for run in runs:
            before, behind = (count, crc, joined_bytes), (run.count, run.crc, run.joined_bytes)
            crc, joined_bytes = combine_joined(before, behind)
            count += run.count
            wire_bytes += run.wire_bytes
            estimated_bytes += run.estimated_bytes
        return Totals(count, wire_bytes, estimated_bytes, crc, joined_bytes)


class Block:
    """An immutable, non-empty part of a topic list, in wire format.

    Attributes:
        wire: The entries, one after the other.
        offsets: Start of each entry in ``wire``, followed by the end of the last.
        first: Sort key of the first name.
    """

    __slots__ = ("__weakref__", "_partitioned", "first", "offsets", "totals", "wire")

    def __init__(self, wire: bytes, offsets: Offsets, joined: bytes | None = None) -> None:
        """Wrap names in wire format; ``joined``, if given, saves joining the names by commas."""
        self.wire = wire
        self.offsets = offsets
        self.totals = _totals(wire, offsets, _joined(wire, offsets) if joined is None else joined)
        self.first = java_order(self.name_at(0))
        self._partitioned: bool | None = None

    @staticmethod
    def of_names(names: Sequence[bytes]) -> Block:
        """Return a block of names, which must be sorted as by Java's String.compareTo."""
        return Block(*encode_entries(names), b",".join(names))

    @property
    def may_have_partitions(self) -> bool:
        """True if any name contains ``-partition-``; only computed once."""
        if self._partitioned is None:
            self._partitioned = b"-partition-" in self.wire
        return self._partitioned

    def entries(self) -> list[bytes]:
        """Return a copy of each name in wire format."""
        return _slices(self.wire, self.offsets, islice(self.offsets, 1, None))

    def names(self) -> list[bytes]:
        """Return the names of the block, decoded."""
        return _names(self.wire, self.offsets)

    def name_at(self, index: int) -> bytes:
        """Return the block's name at an index; -1 is the last one."""
        index %= self.totals.count
        return decode_entry(self.wire[self.offsets[index] : self.offsets[index + 1]])

    def place_of(self, key: bytes) -> int:
        """Return the number of names that sort before ``key``, which ``java_order`` made."""
        low, high = 0, self.totals.count
        while low < high:
            middle = (low + high) // 2
            if java_order(self.name_at(middle)) < key:
                low = middle + 1
            else:
                high = middle
        return low

    def row_of(self, name: bytes) -> int | None:
        """Return the index of a name in the block; None if the block does not contain it."""
        place = self.place_of(java_order(name))
        found = place < self.totals.count and self.name_at(place) == name
        return place if found else None


def memory_bytes(block: Block) -> int:
    """Return a block's approximate memory in bytes."""
    return BLOCK_OBJECT_BYTES + len(block.wire) + len(block.first) + 4 * len(block.offsets)


def encode_entries(names: Sequence[bytes]) -> tuple[bytes, Offsets]:
    """Return the bytes of topic names in wire format, and the offset of each name."""
    entries = [encode_entry(name) for name in names]
    return b"".join(entries), offsets_of(map(len, entries))


def offsets_of(sizes: Iterable[int]) -> Offsets:
    """Return the offset of each encoded name, given their sizes, and the end of the last one."""
    return array("i", accumulate(sizes, initial=0))


def _names(wire: bytes, offsets: Offsets) -> list[bytes]:
    if max(map(sub, islice(offsets, 1, None), offsets)) > LONGEST_ENTRIES[0]:
        return list(map(decode_entry, _slices(wire, offsets, islice(offsets, 1, None))))
    starts = map(SHORTEST_PREFIX_BYTES.__add__, offsets)
    return _slices(wire, starts, islice(offsets, 1, None))


def _joined(wire: bytes, offsets: Offsets) -> bytes:
    """Return a block's names joined by commas."""
    if HAS_COLUMNS:
        bounds = np.frombuffer(offsets, np.int32)
        if np.diff(bounds).max() <= LONGEST_ENTRIES[0]:
            joined = np.frombuffer(bytearray(wire), np.uint8)
            joined[bounds[:-1] + 1] = ord(",")
            return np.delete(joined, bounds[:-1])[1:].tobytes()
    else:
        parts = wire.split(TOPICS_TAG)  # half the time of slices, if no name has the tag's byte
        if len(parts) == len(offsets) and max(map(len, parts)) < LONGEST_ENTRIES[0]:
            return b",".join([part[1:] for part in parts])[1:]
    return b",".join(_names(wire, offsets))


def _slices(wire: bytes, starts: Iterable[int], ends: Iterable[int]) -> list[bytes]:
    return [wire[start:end] for start, end in zip(starts, ends, strict=False)]


def _totals(wire: bytes, offsets: Offsets, joined: bytes) -> Totals:
    count = len(offsets) - 1
    estimate = len(joined) - (count - 1) + ESTIMATED_BYTES_PER_NAME * count
    return Totals(count, len(wire), estimate, google_crc32c.value(joined), len(joined))
