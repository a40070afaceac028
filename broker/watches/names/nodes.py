"""Nodes of the tree inside a SortedNames: a leaf holds names, a fork joins two nodes.

Nodes are plain tuples, read by the indexes below, instead of objects with attributes: a change
rebuilds a path of nodes for every affected set, and building and reading a tuple takes two thirds
of the time. Besides, Python's garbage collector stops visiting tuples containing only numbers,
texts and such tuples: a thousand large sets have millions of nodes, and each full collection would
visit all of them while no request is served.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, TypeAlias

import google_crc32c

from proto.topic_hash import combine_crc, java_order, joined_crc, shift_crc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CRC: Final = 0
"""CRC32C of the node's names, joined by commas."""
JOINED_BYTES: Final = 1
"""Length of the node's names, joined by commas."""
COUNT: Final = 2
"""Number of names."""
LEAVES: Final = 3
"""Number of leaves."""
NAMES: Final = 4
"""A leaf's names, at least one."""
LEFT: Final = 4
RIGHT: Final = 5
SPLIT: Final = 6
"""A fork's border: names sorting before it, by ``java_order``, are on the left."""
_FORK_FIELDS: Final = 7

Leaf: TypeAlias = tuple[int, int, int, int, tuple[bytes, ...]]
Fork: TypeAlias = "tuple[int, int, int, int, Node, Node, bytes]"
Node: TypeAlias = "Leaf | Fork"
ChangedNodes: TypeAlias = dict[int, Node]
"""New nodes by the ``id`` of the replaced shared nodes, whose sets must stay alive meanwhile."""

MAX_LEAF_NAMES = 128
"""Most names of a leaf; a larger leaf is split."""
SMALL_NAMES = 48
"""Two neighbouring leaves with at most this total are merged."""


def leaf_of(names: tuple[bytes, ...]) -> Leaf:
    """Return a leaf of names, which must be sorted as by Java's String.compareTo."""
    crc, joined_bytes = joined_crc(names)
    return (crc, joined_bytes, len(names), 1, names)


def fork_of(left: Node, right: Node, split: bytes) -> Fork:
    """Return a fork of two nodes, without balancing their sizes."""
    crc = combine_crc(google_crc32c.extend(left[CRC], b","), right[CRC], right[JOINED_BYTES])
    joined_bytes = left[JOINED_BYTES] + 1 + right[JOINED_BYTES]
    return (
        crc,
        joined_bytes,
        left[COUNT] + right[COUNT],
        left[LEAVES] + right[LEAVES],
        left,
        right,
        split,
    )


def tree_of(leaves: Sequence[Leaf], start: int, end: int) -> Node:
    """Return a balanced tree of leaves[start:end], which must not be empty."""
    if end - start == 1:
        return leaves[start]
    middle = (start + end) // 2
    left, right = tree_of(leaves, start, middle), tree_of(leaves, middle, end)
    return fork_of(left, right, java_order(leaves[middle][NAMES][0]))


def children_of(node: Node) -> tuple[Node, ...]:
    """Return the two nodes that a fork joins; empty for a leaf."""
    return (node[LEFT], node[RIGHT]) if len(node) == _FORK_FIELDS else ()


def leaf_for(node: Node, key: bytes) -> Leaf:
    """Return the leaf that contains a name with the given sort key, or would contain it."""
    while len(node) == _FORK_FIELDS:
        node = node[LEFT] if key < node[SPLIT] else node[RIGHT]
    return node


def leaves_of(root: Node | None) -> Iterator[Leaf]:
    """Yield the leaves below a node in sort order; none for None."""
    pending = [root] if root is not None else []
    while pending:
        node = pending.pop()
        if len(node) != _FORK_FIELDS:
            yield node
        else:
            pending += (node[RIGHT], node[LEFT])


def collect_differing(
    before: Node | None, after: Node | None, only_before: list[Leaf], only_after: list[Leaf]
) -> None:
    """Append to two lists the leaves in which two trees may differ; skip shared nodes."""
    if before is after:
        return
    if (
        before is None
        or after is None
        or len(before) != _FORK_FIELDS
        or len(after) != _FORK_FIELDS
        or before[SPLIT] != after[SPLIT]
    ):
        only_before += leaves_of(before)
        only_after += leaves_of(after)
        return
    collect_differing(before[LEFT], after[LEFT], only_before, only_after)
    collect_differing(before[RIGHT], after[RIGHT], only_before, only_after)


# -- one name -------------------------------------------------------------------------------------


def with_name(root: Node, name: bytes, made: ChangedNodes) -> Node:
    """Return a tree with a name added; the same tree if it already contains the name.

    Args:
        root: The tree.
        name: The name.
        made: Nodes that the name has changed in other trees, for sharing; receives the new ones.
    """
    key, path = java_order(name), list[Fork]()
    node, after = root, made.get(id(root))
    while after is None:
        if len(node) != _FORK_FIELDS:
            after = made[id(node)] = _leaf_with(node, name, key)
            break
        path.append(node)
        node = node[LEFT] if key < node[SPLIT] else node[RIGHT]
        after = made.get(id(node))
    return root if after is node else _with_path(path, node, after, made)


def without_name(root: Node, name: bytes, made: ChangedNodes) -> Node | None:
    """Return a tree without a name; None after removing the last name. See ``with_name``."""
    key, path = java_order(name), list[Fork]()
    node, after = root, made.get(id(root))
    while after is None:
        if len(node) != _FORK_FIELDS:
            after = _leaf_without(node, name, key)
            break
        path.append(node)
        node = node[LEFT] if key < node[SPLIT] else node[RIGHT]
        after = made.get(id(node))
    if after is None:
        if not path:
            return None
        # The leaf is empty: its sibling replaces the fork.
        node = path.pop()
        after = node[RIGHT] if key < node[SPLIT] else node[LEFT]
    made[id(node)] = after
    return root if after is node else _with_path(path, node, after, made)


def _leaf_with(leaf: Leaf, name: bytes, key: bytes) -> Node:
    names = leaf[NAMES]
    place = bisect_left(names, key, key=java_order)
    if place < len(names) and names[place] == name:
        return leaf
    grown = (*names[:place], name, *names[place:])
    if len(grown) <= MAX_LEAF_NAMES:
        return leaf_of(grown)
    middle = len(grown) // 2
    return fork_of(leaf_of(grown[:middle]), leaf_of(grown[middle:]), java_order(grown[middle]))


def _leaf_without(leaf: Leaf, name: bytes, key: bytes) -> Leaf | None:
    names = leaf[NAMES]
    place = bisect_left(names, key, key=java_order)
    if names[place : place + 1] != (name,):
        return leaf
    left_over = names[:place] + names[place + 1 :]
    return leaf_of(left_over) if left_over else None


def _with_path(path: list[Fork], before: Node, after: Node, made: ChangedNodes) -> Node:
    """Return a tree in which one node is replaced, with new forks on the path from the root.

    Args:
        path: The forks, the root first.
        before: The node below the last fork.
        after: The replacement.
        made: Receives the new nodes.
    """
    longer_bytes, more = after[JOINED_BYTES] - before[JOINED_BYTES], after[COUNT] - before[COUNT]
    for fork in reversed(path):
        crc, joined_bytes, count, leaves, left, right, split = fork
        new: Node
        if before[LEAVES] != after[LEAVES] or (more < 0 and leaves == 2):
            new = _reformed(fork, before, after)
        elif before is left:
            crc ^= shift_crc(before[CRC] ^ after[CRC], right[JOINED_BYTES] + 1)
            new = (crc, joined_bytes + longer_bytes, count + more, leaves, after, right, split)
        else:
            crc = shift_crc(crc ^ before[CRC], longer_bytes) ^ after[CRC]
            new = (crc, joined_bytes + longer_bytes, count + more, leaves, left, after, split)
        made[id(fork)] = new
        before, after = fork, new
    return after


def _reformed(fork: Fork, before: Node, after: Node) -> Node:
    """Replace one child of a fork; merge two small leaves, and balance unequal children."""
    left, right = (after, fork[RIGHT]) if before is fork[LEFT] else (fork[LEFT], after)
    small = left[COUNT] + right[COUNT] <= SMALL_NAMES
    if small and len(left) != _FORK_FIELDS and len(right) != _FORK_FIELDS:
        return leaf_of(left[NAMES] + right[NAMES])
    return _balanced(left, right, fork[SPLIT])


def _balanced(left: Node, right: Node, split: bytes) -> Fork:
    """Return a fork of two nodes, rotated if one has more than three times the other's leaves."""
    if left[LEAVES] > 3 * right[LEAVES] and len(left) == _FORK_FIELDS:
        return _lean_right(left, right, split)
    if right[LEAVES] > 3 * left[LEAVES] and len(right) == _FORK_FIELDS:
        return _lean_left(left, right, split)
    return fork_of(left, right, split)


def _lean_right(left: Fork, right: Node, split: bytes) -> Fork:
    outer, inner = left[LEFT], left[RIGHT]
    if inner[LEAVES] < 2 * outer[LEAVES] or len(inner) != _FORK_FIELDS:
        return fork_of(outer, fork_of(inner, right, split), left[SPLIT])
    left_part = fork_of(outer, inner[LEFT], left[SPLIT])
    return fork_of(left_part, fork_of(inner[RIGHT], right, split), inner[SPLIT])


def _lean_left(left: Node, right: Fork, split: bytes) -> Fork:
    inner, outer = right[LEFT], right[RIGHT]
    if inner[LEAVES] < 2 * outer[LEAVES] or len(inner) != _FORK_FIELDS:
        return fork_of(fork_of(left, inner, split), outer, right[SPLIT])
    right_part = fork_of(inner[RIGHT], outer, right[SPLIT])
    return fork_of(fork_of(left, inner[LEFT], split), right_part, inner[SPLIT])
