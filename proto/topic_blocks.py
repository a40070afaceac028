"""A namespace's topics as an immutable sequence of wire-ready blocks.

A block of about 64 KiB holds its names exactly as they go on the wire (field ``topics`` of
CommandGetTopicsOfNamespaceResponse), in Java's order, with their count, heap estimate and the
CRC32C of the names joined by commas. Blocks hang in a tree of small branches: a change replaces
one block and the path above it, and old and new versions share the rest. A listing sends the
blocks; the hash of a version combines the CRCs of its parts.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proto.topic_hash import (
    EMPTY_HASH,
    combine_joined,
    format_hash,
    in_java_order,
    java_order,
    joined_crc,
)
from proto.varint import decode_varint, encode_varint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

BLOCK_BYTES = 65_536
"""Wire bytes a block is filled up to."""
BRANCH_CHILDREN = 64
"""Children a branch has at most."""
ESTIMATED_BYTES_PER_NAME = 32
"""Heap estimate of a listed name beside its UTF-8 bytes (upstream: estimateTopicListSize)."""
TOPICS_TAG = b"\x12"
"""Protobuf tag of the repeated string field 2, ``topics``."""
_PREFIXES = tuple(TOPICS_TAG + encode_varint(size) for size in range(512))


def encode_entry(name: bytes) -> bytes:
    """Return one name as a ``topics`` field on the wire."""
    size = len(name)
    return (_PREFIXES[size] if size < 512 else TOPICS_TAG + encode_varint(size)) + name


def decode_entries(wire: bytes) -> list[bytes]:
    """Return the names in a run of ``topics`` fields."""
    names, offset = [], 0
    while offset < len(wire):
        size, start = wire[offset + 1], offset + 2
        if size >= 0x80:
            size, start = decode_varint(wire, offset + 1)
        offset = start + size
        names.append(wire[start:offset])
    return names


@dataclass(frozen=True, slots=True)
class Totals:
    """What is known of a run of names without looking at them.

    Attributes:
        count: Names.
        wire_bytes: Bytes of their ``topics`` fields.
        estimated_bytes: Heap estimate, UTF-8 bytes + 32 a name.
        crc: CRC32C of the names joined by commas.
        joined_bytes: Length of that joined text.
    """

    count: int = 0
    wire_bytes: int = 0
    estimated_bytes: int = 0
    crc: int = 0
    joined_bytes: int = 0

    def __add__(self, other: Totals) -> Totals:
        """Return the totals of this run followed by the other."""
        crc, joined = combine_joined(
            (self.count, self.crc, self.joined_bytes), (other.count, other.crc, other.joined_bytes)
        )
        return Totals(
            self.count + other.count,
            self.wire_bytes + other.wire_bytes,
            self.estimated_bytes + other.estimated_bytes,
            crc,
            joined,
        )


class Block:
    """Some names in order, as they go on the wire. Immutable, never empty."""

    __slots__ = ("first", "totals", "wire")

    def __init__(self, names: Sequence[bytes]) -> None:
        self.wire = b"".join([encode_entry(name) for name in names])
        crc, joined = joined_crc(names)
        name_bytes = joined - (len(names) - 1)
        estimate = name_bytes + ESTIMATED_BYTES_PER_NAME * len(names)
        self.totals = Totals(len(names), len(self.wire), estimate, crc, joined)
        self.first = java_order(names[0])

    def names(self) -> list[bytes]:
        """Return the names, decoded anew at each call."""
        return decode_entries(self.wire)


class Branch:
    """Some blocks or branches in order. Immutable, never empty."""

    __slots__ = ("children", "first", "firsts", "totals")

    def __init__(self, children: Sequence[Node]) -> None:
        self.children = tuple(children)
        self.firsts = tuple(child.first for child in children)
        self.first: bytes = self.firsts[0]
        self.totals: Totals = sum((child.totals for child in children), Totals())


Node = Block | Branch


class TopicSequence:
    """All names of one kind in a namespace, in Java's order: one immutable version of them."""

    __slots__ = ("_root", "_wire_parts", "totals")

    def __init__(self, root: Node | None = None) -> None:
        self._root = root
        self.totals = root.totals if root is not None else Totals()
        self._wire_parts: tuple[bytes, ...] | None = None

    @staticmethod
    def from_names(names: Iterable[bytes]) -> TopicSequence:
        """Build a sequence from UTF-8 names in any order; duplicates count once."""
        return TopicSequence.from_sorted(in_java_order(names))

    @staticmethod
    def from_sorted(names: Sequence[bytes]) -> TopicSequence:
        """Build a sequence from distinct UTF-8 names in Java's order."""
        return TopicSequence(_grow(_cut(names)))

    @staticmethod
    def from_blocks(blocks: Sequence[Block]) -> TopicSequence:
        """Build a sequence of blocks that are in order and share no name."""
        return TopicSequence(_grow(list(blocks)))

    def __len__(self) -> int:
        return self.totals.count

    def __repr__(self) -> str:
        return f"<TopicSequence {self.totals.count} names, {self.totals.wire_bytes} bytes>"

    @property
    def hash(self) -> str:
        """Pulsar's topics hash of the names."""
        return format_hash(self.totals.crc) if self.totals.count else EMPTY_HASH

    @property
    def wire_parts(self) -> tuple[bytes, ...]:
        """The blocks' bytes in order; the same tuple at each call."""
        if self._wire_parts is None:
            self._wire_parts = tuple(block.wire for block in self.blocks())
        return self._wire_parts

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        pending: list[Node] = [self._root] if self._root is not None else []
        while pending:
            node = pending.pop()
            if isinstance(node, Block):
                yield node
            else:
                pending.extend(reversed(node.children))

    def names(self) -> Iterator[bytes]:
        """Yield the names in order, a block decoded at a time."""
        for block in self.blocks():
            yield from block.names()

    def __contains__(self, name: bytes) -> bool:
        node, key = self._root, java_order(name)
        while isinstance(node, Branch):
            node = node.children[max(0, bisect_right(node.firsts, key) - 1)]
        return node is not None and encode_entry(name) in node.wire and name in node.names()

    def apply(self, added: Iterable[bytes], removed: Iterable[bytes]) -> TopicSequence:
        """Return the sequence with some names added and some removed.

        Adding a name that is there, or removing one that is not, changes nothing.
        """
        gone = set(removed)
        changes = in_java_order(gone.union(added))
        if not changes:
            return self
        if self._root is None:
            return TopicSequence.from_sorted([name for name in changes if name not in gone])
        return TopicSequence(_grow(_edit(self._root, changes, gone)))


class Selection:
    """Some of the names of a sequence, chosen block by block in their order.

    A block that is kept whole is the same block: who keeps everything copies nothing.
    """

    def __init__(self, sequence: TopicSequence) -> None:
        self._sequence = sequence
        self._blocks: list[Block] = []
        self._names: list[bytes] = []
        self._names_bytes = 0
        self._whole = True

    def keep(self, block: Block, names: Sequence[bytes]) -> None:
        """Keep some names of the next block, in their order."""
        if len(names) == block.totals.count:
            self._end_block()
            self._blocks.append(block)
            return
        self._whole = False
        self._names.extend(names)
        self._names_bytes += sum(map(len, names))
        if self._names_bytes >= BLOCK_BYTES:
            self._end_block()

    def sequence(self) -> TopicSequence:
        """Return what was kept; the very sequence it was chosen from if that is everything."""
        if self._whole:
            return self._sequence
        self._end_block()
        return TopicSequence.from_blocks(self._blocks)

    def _end_block(self) -> None:
        if self._names:
            self._blocks.append(Block(self._names))
            self._names, self._names_bytes = [], 0


def _cut(names: Sequence[bytes]) -> list[Node]:
    """Cut sorted names into as few blocks of at most about BLOCK_BYTES, of equal size."""
    total = sum(map(len, names)) + 2 * len(names)
    if not names:
        return []
    share = total / -(-total // BLOCK_BYTES)
    blocks: list[Node] = []
    start = size = 0
    for index, name in enumerate(names):
        size += len(name) + 2
        if size >= share * (len(blocks) + 1) - 1:
            blocks.append(Block(names[start : index + 1]))
            start = index + 1
    if start < len(names):
        blocks.append(Block(names[start:]))
    return blocks


def _grow(nodes: list[Node]) -> Node | None:
    """Put branches above nodes until one is left."""
    while len(nodes) > 1:
        nodes = _branches(nodes)
    return nodes[0] if nodes else None


def _branches(nodes: list[Node]) -> list[Node]:
    """Spread nodes evenly over as few branches as hold them."""
    count = -(-len(nodes) // BRANCH_CHILDREN)
    bounds = [len(nodes) * index // count for index in range(count + 1)]
    return [Branch(nodes[a:b]) for a, b in itertools.pairwise(bounds)]


def _edit(node: Node, changes: list[bytes], gone: set[bytes]) -> list[Node]:
    """Return what replaces ``node`` after the changes that fall into it: none, one or more."""
    if isinstance(node, Block):
        kept = set(node.names()).union(changes) - gone
        return _cut(in_java_order(kept))
    children: list[Node] = []
    for child, part in _assign(node, changes):
        children.extend(_edit(child, part, gone) if part else [child])
    children = _join_small(children)
    return _branches(children) if children else []


def _assign(node: Branch, changes: list[bytes]) -> Iterator[tuple[Node, list[bytes]]]:
    """Yield each child with the changes that fall into it; both are in order."""
    keys = [java_order(name) for name in changes]
    start = 0
    for index, child in enumerate(node.children):
        last = index + 1 == len(node.children)
        end = len(keys) if last else bisect_left(keys, node.firsts[index + 1], start)
        yield child, changes[start:end]
        start = end


def _join_small(nodes: list[Node]) -> list[Node]:
    """Join neighbouring blocks that together stay small, so that deletions leave no crumbs."""
    joined: list[Node] = []
    for node in nodes:
        before = joined[-1] if joined else None
        if (
            isinstance(node, Block)
            and isinstance(before, Block)
            and len(before.wire) + len(node.wire) < BLOCK_BYTES // 2
        ):
            joined[-1] = Block(before.names() + node.names())
        else:
            joined.append(node)
    return joined
