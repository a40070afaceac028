"""The tree of the blocks of a namespace's topic names; versions share unchanged nodes.

Branches are small, so that a change combines the CRCs of only a few children a level. All blocks
are equally far from the root.
"""

from __future__ import annotations

import itertools
import operator
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from broker.topic_lists.block import Block, Totals, encode_entry
from proto.topic_hash import in_java_order, java_order

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from broker.topic_lists.block import Offsets, Rows

BLOCK_BYTES = 65_536
"""Target wire bytes of a block."""
BRANCH_CHILDREN = 4
"""Most children of a branch."""
BRANCHES_A_STEP = 128
"""Branches built in a step of a millisecond."""
MANY_CHANGES = 16
"""Number of changes from which encoding a block again is cheaper."""


class Branch:
    """An immutable inner node of the tree, with a few blocks or branches below it."""

    __slots__ = ("children", "first", "firsts", "totals")

    def __init__(self, children: Sequence[Node]) -> None:
        self.children = tuple(children)
        self.firsts = tuple(child.first for child in children)
        self.first: bytes = self.firsts[0]
        self.totals: Totals = Totals.of_all(child.totals for child in children)


Node = Block | Branch


def grow(nodes: Sequence[Node]) -> Node | None:
    """Return the root of a new tree above the given blocks or branches; None if none are given."""
    while len(nodes) > 1:
        nodes = _branches(nodes)
    return nodes[0] if nodes else None


def growing(nodes: Sequence[Node]) -> Generator[None, None, Node | None]:
    """Return the same as ``grow``; a generator that yields after each step."""
    while len(nodes) > 1:
        above: list[Node] = []
        for branch in _branching(nodes):
            above.append(branch)
            if len(above) % BRANCHES_A_STEP == 0:
                yield
        nodes = above
    return nodes[0] if nodes else None


def edit(node: Node, changes: list[bytes], gone: set[bytes]) -> list[Node]:
    """Change the names below a node; return the nodes that take its place, none if no name is left.

    The given node is unchanged, as all nodes are immutable.

    Args:
        node: The node.
        changes: Names added and removed, sorted as Java's String.compareTo.
        gone: The removed names.

    Returns:
        The node itself if unchanged.
    """
    if isinstance(node, Block):
        return _edit_block(node, changes, gone)
    children = list(node.children)
    for index, part in reversed(list(_assign(node, changes))):
        children[index : index + 1] = edit(children[index], part, gone)
    if len(children) == len(node.children) and all(map(operator.is_, children, node.children)):
        return [node]
    children = _join_small(children) if gone else children
    return _branches(children) if children else []


def cut_names(names: Sequence[bytes]) -> list[Block]:
    """Return sorted names as the fewest blocks of at most about BLOCK_BYTES, equally large."""
    ends = list(itertools.accumulate(len(name) + 2 for name in names))
    return [Block.of_names(names[a:b]) for a, b in _bounds(ends)]


def cut_entries(wire: bytes, offsets: Offsets) -> list[Block]:
    """Return encoded names as the fewest blocks of at most about BLOCK_BYTES, equally large."""
    return [
        Block(wire[offsets[a] : offsets[b]], moved(offsets[a : b + 1], -offsets[a]))
        for a, b in _bounds(offsets[1:])
    ]


def moved(offsets: Offsets, by: int) -> Offsets:
    """Return the offsets, each increased by ``by``."""
    return array("i", map(by.__add__, offsets)) if by else offsets


def _bounds(ends: Rows) -> list[tuple[int, int]]:
    """Split names into parts of about equal size; return the first and end index of each part.

    Args:
        ends: The offset in bytes at which each name ends.
    """
    if not len(ends):
        return []
    total = ends[-1]
    if total <= BLOCK_BYTES:
        return [(0, len(ends))]
    parts = -(-total // BLOCK_BYTES)
    shares = [total * part // parts for part in range(1, parts)]
    cuts = sorted({0, *(bisect_left(ends, share) + 1 for share in shares), len(ends)})
    return list(itertools.pairwise(cuts))


def _edit_block(block: Block, changes: list[bytes], gone: set[bytes]) -> list[Node]:
    if len(changes) > MANY_CHANGES:
        kept = set(block.names()).union(changes) - gone
        return [*cut_names(in_java_order(kept))]
    spliced = _spliced(block, changes, gone)
    return [*cut_entries(*spliced)] if spliced is not None else [block]


def _spliced(block: Block, changes: list[bytes], gone: set[bytes]) -> tuple[bytes, Offsets] | None:
    """Return a block's bytes and offsets after a few changes; None if nothing changes."""
    offsets, made = block.offsets, array("i")
    pieces: list[bytes] = []
    done = grown = 0
    for name in changes:
        row = block.place_of(java_order(name))
        there = row < block.totals.count and block.name_at(row) == name
        if there != (name in gone):
            continue
        pieces.append(block.wire[offsets[done] : offsets[row]])
        made += moved(offsets[done:row], grown)
        done = row + there
        if there:
            grown -= offsets[done] - offsets[row]
        else:
            made.append(offsets[row] + grown)
            pieces.append(encode_entry(name))
            grown += len(pieces[-1])
    if not pieces:
        return None
    made += moved(offsets[done:], grown)
    return b"".join((*pieces, block.wire[offsets[done] :])), made


def _branches(nodes: Sequence[Node]) -> list[Node]:
    """Return the fewest branches above the nodes, with about equally many nodes in each."""
    return list(_branching(nodes))


def _branching(nodes: Sequence[Node]) -> Iterator[Branch]:
    count = -(-len(nodes) // BRANCH_CHILDREN)
    bounds = (len(nodes) * index // count for index in range(count + 1))
    return (Branch(nodes[a:b]) for a, b in itertools.pairwise(bounds))


def _assign(node: Branch, changes: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the index of each child that changes affect, together with its changes.

    Children and changes are in sort order.
    """
    start, ends = 0, node.firsts[1:]
    while start < len(changes):
        index = bisect_right(ends, java_order(changes[start]))
        last = index == len(ends)
        end = len(changes) if last else bisect_left(changes, ends[index], start, key=java_order)
        yield index, changes[start:end]
        start = end


def _join_small(nodes: list[Node]) -> list[Node]:
    """Return nodes in which small neighbors are merged, so that deletions leave no tiny nodes."""
    joined: list[Node] = []
    for node in nodes:
        both = _joined(joined[-1], node) if joined else None
        if both is None:
            joined.append(node)
        else:
            joined[-1] = both
    return joined


def _joined(one: Node, other: Node) -> Node | None:
    if isinstance(one, Block) and isinstance(other, Block):
        if len(one.wire) + len(other.wire) >= BLOCK_BYTES // 2:
            return None
        offsets = one.offsets[:-1] + moved(other.offsets, len(one.wire))
        return Block(one.wire + other.wire, offsets)
    if isinstance(one, Branch) and isinstance(other, Branch):
        children = one.children + other.children
        return Branch(children) if len(children) <= BRANCH_CHILDREN else None
    return None
