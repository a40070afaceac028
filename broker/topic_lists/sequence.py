"""A namespace's topic names as an immutable sequence of blocks in wire format.

Each block has about 64 KiB (see ``broker.topic_lists.block``). All names are sorted as Java's
String.compareTo. Blocks form a tree (``broker.topic_lists.tree``): a change replaces one block and
the path to the root, and old and new versions share the rest. A response sends the blocks' bytes; a
version's hash combines the checksums of the blocks.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import compress
from typing import TYPE_CHECKING

from broker.topic_lists.block import Block, Totals, memory_bytes, offsets_of
from broker.topic_lists.paths import common_domain
from broker.topic_lists.tree import (
    BLOCK_BYTES,
    Branch,
    Node,
    cut_entries,
    cut_names,
    edit,
    grow,
    growing,
    moved,
)
from proto.topic_hash import EMPTY_HASH, format_hash, in_java_order, java_order

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from broker.topic_lists.block import Mask, Offsets, Rows

_NOTHING = Totals()
PLACE_BYTES = 300
"""Bytes of a block's slot in the tree, and in ``wire_parts``."""


class TopicSequence:
    """An immutable version of the persistent, or of the non-persistent, names of a namespace.

    They are sorted as Java's String.compareTo.

    A name's row is the zero-based position in that order.
    """

    __slots__ = ("__weakref__", "_root", "_wire_parts", "totals")

    def __init__(self, root: Node | None = None) -> None:
        self._root = root
        self.totals = root.totals if root is not None else _NOTHING
        self._wire_parts: tuple[bytes, ...] | None = None

    @staticmethod
    def from_names(names: Iterable[bytes]) -> TopicSequence:
        """Build a sequence of UTF-8 names in any order; duplicates are left out."""
        return TopicSequence.from_sorted(in_java_order(names))

    @staticmethod
    def from_sorted(names: Sequence[bytes]) -> TopicSequence:
        """Build a sequence of distinct UTF-8 names, sorted as by Java's String.compareTo."""
        return TopicSequence(grow(cut_names(names)))

    @staticmethod
    def from_blocks(blocks: Sequence[Block]) -> TopicSequence:
        """Build a sequence of blocks that are in sort order."""
        return TopicSequence(grow(blocks))

    def __len__(self) -> int:
        return self.totals.count

    def __repr__(self) -> str:
        return f"<TopicSequence {self.totals.count} names, {self.totals.wire_bytes} bytes>"

    @property
    def hash(self) -> str:
        """Pulsar's hash of a topic list that consists of the sequence's names."""
        return format_hash(self.totals.crc) if self.totals.count else EMPTY_HASH

    @property
    def wire_parts(self) -> tuple[bytes, ...]:
        """The bytes of each block, which are the names in wire format; always the same tuple."""
        if self._wire_parts is None:
            self._wire_parts = tuple(block.wire for block in self.blocks())
        return self._wire_parts

    def blocks(self, low: bytes = b"", high: bytes | None = None) -> Iterator[Block]:
        """Yield the blocks in order, without blocks that have no names from ``low`` to ``high``.

        Args:
            low: Skip blocks whose names all sort before this key of ``java_order``.
            high: Skip blocks whose names all sort after this key of ``java_order``.
        """
        pending: list[tuple[Node, bytes | None]] = [(self._root, None)] if self._root else []
        while pending:
            node, end = pending.pop()
            if (end is not None and end <= low) or (high is not None and node.first > high):
                continue
            if isinstance(node, Block):
                yield node
            else:
                ends = (*node.firsts[1:], end)
                pending.extend(zip(reversed(node.children), reversed(ends), strict=True))

    def names(self) -> Iterator[bytes]:
        """Yield the names in sort order, decoding one block at a time."""
        for block in self.blocks():
            yield from block.names()

    @property
    def domain_prefix(self) -> bytes:
        """The domain prefix that all names share; empty if there is none."""
        if self._root is None:
            return b""
        return common_domain(self.name_at(0), self.name_at(len(self) - 1))

    def __contains__(self, name: bytes) -> bool:
        return self.row_of(name) is not None

    def row_of(self, name: bytes) -> int | None:
        """Return the position of a name in the sequence; None if it does not contain the name."""
        node, key, start = self._root, java_order(name), 0
        if node is None:
            return None
        while isinstance(node, Branch):
            index = max(0, bisect_right(node.firsts, key) - 1)
            start += sum(child.totals.count for child in node.children[:index])
            node = node.children[index]
        row = node.row_of(name)
        return start + row if row is not None else None

    def name_at(self, row: int) -> bytes:
        """Return the name at a position, counted from 0.

        Raises:
            IndexError: The row does not exist.
        """
        node = self._root
        if node is None or not 0 <= row < node.totals.count:
            raise IndexError(f"row {row} of {len(self)} names")
        while isinstance(node, Branch):
            for child in node.children:  # pragma: no branch
                if row < child.totals.count:
                    node = child
                    break
                row -= child.totals.count
        return node.name_at(row)

    def blocks_of_rows(self, rows: Rows) -> Iterator[tuple[Block, Rows]]:
        """Yield each block that has any of the positions ``rows``, with these positions.

        The yielded positions are counted from the beginning of the block.
        """
        start = begin = 0
        for block in self.blocks():
            start, before = start + block.totals.count, start
            begin, first = bisect_left(rows, start), begin
            if begin > first:
                yield block, [row - before for row in rows[first:begin]]
            if begin == len(rows):
                return

    def apply(self, added: Iterable[bytes], removed: Iterable[bytes]) -> TopicSequence:
        """Return the sequence after names were added and removed.

        Existing added names and missing removed names are ignored.
        """
        gone = set(removed)
        changes = in_java_order(gone.union(added))
        if not changes:
            return self
        if self._root is None:
            return TopicSequence.from_sorted([name for name in changes if name not in gone])
        edited = edit(self._root, changes, gone)
        return self if edited == [self._root] else TopicSequence(_lowered(grow(edited)))


def _lowered(root: Node | None) -> Node | None:
    """Return a tree without the branches at its top that have a single child."""
    while isinstance(root, Branch) and len(root.children) == 1:
        root = root.children[0]
    return root


class Selection:
    """Collects the names of a sequence that match, block by block in order.

    A wholly kept block is shared: keeping all names copies none. Names for which no method is
    called are left out. The mutable state is the names kept so far.
    """

    def __init__(self, source: TopicSequence) -> None:
        self.source = source
        self._blocks: list[Block] = []
        self._pieces: list[bytes] = []
        self._offsets = array("i", [0])
        self._own_bytes = 0
        self._count = 0

    @property
    def added_bytes(self) -> int:
        """Approximate memory of the finished selection in bytes, without shared blocks."""
        if self._count == self.source.totals.count:
            return 0
        return self._own_bytes + PLACE_BYTES * len(self._blocks)

    def keep(self, block: Block, mask: Mask) -> None:
        """Add those names of a block whose byte in ``mask`` is 1."""
        kept = mask.count(1)
        if kept == len(mask):
            self.keep_block(block)
        elif kept:
            self.keep_entries(list(compress(block.entries(), mask)))

    def keep_rows(self, block: Block, rows: Rows) -> None:
        """Add the names of a block at the given positions, in ascending order."""
        if len(rows) == block.totals.count:
            self.keep_block(block)
        else:
            entries = block.entries()
            self.keep_entries([entries[row] for row in rows])

    def keep_block(self, block: Block) -> None:
        """Add all names of a block to the selection."""
        self._end_block()
        self._blocks.append(block)
        self._count += block.totals.count

    def keep_entries(self, entries: Sequence[bytes]) -> None:
        """Add names in wire format to the selection."""
        self.keep_joined(b"".join(entries), offsets_of(map(len, entries)))

    def keep_joined(self, wire: bytes, offsets: Offsets) -> None:
        """Add names in wire format to the selection, given as one byte string with offsets."""
        self._pieces.append(wire)
        self._offsets += moved(offsets[1:], self._offsets[-1])
        self._count += len(offsets) - 1
        if self._offsets[-1] >= BLOCK_BYTES:
            self._end_block()

    def sequence(self) -> TopicSequence:
        """Return the sequence of all added names; the source itself if all were added."""
        if self._count == self.source.totals.count:
            return self.source
        self._end_block()
        return TopicSequence.from_blocks(self._blocks)

    def finishing(self) -> Generator[None, None, TopicSequence]:
        """Return the same as ``sequence``; a generator that yields after each step."""
        if self._count == self.source.totals.count:
            return self.source
        self._end_block()
        return TopicSequence((yield from growing(self._blocks)))

    def _end_block(self) -> None:
        if self._pieces:
            blocks = cut_entries(b"".join(self._pieces), self._offsets)
            self._blocks += blocks
            self._own_bytes += sum(map(memory_bytes, blocks))
            self._pieces, self._offsets = [], array("i", [0])


NO_NAMES = TopicSequence()
"""The empty sequence, shared by all namespaces without names of a kind."""


class TopicListing:
    """The topic names of a response: persistent names, non-persistent names, or both.

    Listings of the same version and mode are the same object, so that requests can share derived
    values.

    Attributes:
        estimated_bytes: Heap estimate: UTF-8 bytes + 32 a name (upstream: estimateTopicListSize).
        hash: Pulsar's topics hash.
    """

    __slots__ = ("__weakref__", "estimated_bytes", "hash", "sequences", "totals")

    def __init__(self, *sequences: TopicSequence) -> None:
        self.sequences = sequences
        self.totals = Totals.of_all(sequence.totals for sequence in sequences)
        self.estimated_bytes = self.totals.estimated_bytes
        self.hash = format_hash(self.totals.crc) if self.totals.count else EMPTY_HASH

    def __len__(self) -> int:
        return self.totals.count

    def __repr__(self) -> str:
        return f"<TopicListing {self.totals.count} names, {self.totals.wire_bytes} bytes>"

    def wire_parts(self) -> list[bytes]:
        """Return the bytes of each block, which are the names in wire format."""
        return [part for sequence in self.sequences for part in sequence.wire_parts]

    def names(self) -> Iterator[str]:
        """Yield the topic names as text, in the order of the response."""
        return (name.decode() for sequence in self.sequences for name in sequence.names())


EMPTY_LISTING = TopicListing()
