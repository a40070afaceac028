"""Names in Java's order as an immutable set: adding or removing one costs a path, not the set.

A weight-balanced tree whose leaves hold up to 128 names. Each node knows count, length and CRC32C
of its names joined by commas, so that Pulsar's hash of a set is there after each change. Versions
share what they have in common, and sets of the same names share the name objects: a set of many
names costs about ten bytes a name beside the names themselves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import google_crc32c

from proto.topic_hash import (
    EMPTY_HASH,
    combine_crc,
    format_hash,
    java_order,
    joined_crc,
    shift_crc,
)
from proto.untracked import untrack

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

MAX_LEAF_NAMES = 128
"""Names of a leaf; one more splits it."""
_FILLED_NAMES = 96
"""Names of a leaf that is made of many: room for some more."""
_SMALL_NAMES = 48
"""Two neighbouring leaves that together hold no more become one."""
_LEAVES_A_STEP = 64
"""Leaves that are put together at once, 5 us each."""
_FEW_NAMES = 8
"""Up to so many names of a leaf are looked for one by one."""
NAME_BYTES = 9
"""What a name costs in a set: its place in a leaf; leaves are three quarters full."""
LEAF_BYTES = 400
"""What a leaf and the fork above it cost beside that."""


class Leaf:
    """Some names. Immutable, never empty."""

    __slots__ = ("count", "crc", "joined_bytes", "leaves", "names")

    def __init__(self, names: tuple[bytes, ...]) -> None:
        self.names = names
        self.count = len(names)
        self.leaves = 1
        joined = joined_crc(names)
        self.crc: int = joined[0]
        self.joined_bytes: int = joined[1]


class Fork:
    """Two nodes side by side. Immutable.

    Attributes:
        split: What sorts before it lies left, by ``java_order``.
        leaves: How many leaves lie below.
    """

    __slots__ = ("count", "crc", "joined_bytes", "leaves", "left", "right", "split")

    def __init__(self, left: Node, right: Node, split: bytes, crc: int | None = None) -> None:
        self.left = left
        self.right = right
        self.split = split
        self.count: int = left.count + right.count
        self.leaves: int = left.leaves + right.leaves
        self.joined_bytes: int = left.joined_bytes + 1 + right.joined_bytes
        if crc is None:
            with_comma = google_crc32c.extend(left.crc, b",")
            crc = combine_crc(with_comma, right.crc, right.joined_bytes)
        self.crc: int = crc


Node = Leaf | Fork
ChangedNodes = dict[int, tuple[Node, Node | None]]
"""What one name makes of nodes that sets share, by ``id``; the nodes, so that none can end."""


@dataclass(frozen=True, slots=True)
class NameChanges:
    """What one version has and another lacks, each in Java's order."""

    added: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()


class SortedNames:
    """One version of a set of UTF-8 names. Equal to none but itself."""

    __slots__ = ("_root",)

    def __init__(self, root: Node | None = None) -> None:
        self._root = root

    @staticmethod
    def from_sorted(names: Sequence[bytes]) -> SortedNames:
        """Make a set of distinct names in Java's order; it keeps the very objects it is given."""
        builder = SortedNamesBuilder()
        builder.extend(names)
        return builder.finished()

    @staticmethod
    def from_leaves(leaves: Sequence[Leaf]) -> Generator[None, None, SortedNames]:
        """Make a set of leaves that are in order, in steps of less than a millisecond."""
        if not leaves:
            return EMPTY_NAMES
        return SortedNames((yield from _build(leaves, 0, len(leaves))))

    def __len__(self) -> int:
        return self._root.count if self._root is not None else 0

    def __repr__(self) -> str:
        return f"<SortedNames {len(self)} names, {self.hash}>"

    @property
    def hash(self) -> str:
        """Pulsar's topics hash of the names."""
        return format_hash(self._root.crc) if self._root is not None else EMPTY_HASH

    @property
    def name_bytes(self) -> int:
        """UTF-8 bytes of all names."""
        return self._root.joined_bytes - (self._root.count - 1) if self._root is not None else 0

    @property
    def own_bytes(self) -> int:
        """About what the set costs in memory, without its names."""
        if self._root is None:
            return 0
        return NAME_BYTES * self._root.count + LEAF_BYTES * self._root.leaves

    @property
    def identity(self) -> int:
        """The same for versions that share all they have; only while one of them lives."""
        return id(self._root)

    @property
    def fingerprint(self) -> tuple[int, int, int]:
        """Count, CRC32C and length: of two sets of a namespace alike only where these are."""
        root = self._root
        return (root.count, root.crc, root.joined_bytes) if root is not None else (0, 0, 0)

    def equals(self, other: SortedNames) -> bool:
        """Whether both have the same names; quick where they are the same objects."""
        return self._root is other._root or list(self.names()) == list(other.names())

    def leaves(self, prefix: bytes = b"") -> Iterator[tuple[bytes, ...]]:
        """Yield the names in order, some at a time; with a prefix all that have it, and others."""
        return (leaf.names for leaf in _leaves(self._root, java_order(prefix)))

    def nodes(self) -> Iterator[Leaf]:
        """Yield the leaves themselves, in order."""
        return _leaves(self._root)

    def leaves_beside(self, newer: SortedNames) -> tuple[list[Leaf], list[Leaf]]:
        """Return the leaves of this version and of a later one that may differ, in order."""
        before: list[Leaf] = []
        after: list[Leaf] = []
        _differing(self._root, newer._root, before, after)
        return before, after

    def names(self) -> Iterator[bytes]:
        """Yield the names in order."""
        return (name for leaf in _leaves(self._root) for name in leaf.names)

    def __contains__(self, name: bytes) -> bool:
        key, node = java_order(name), self._root
        while isinstance(node, Fork):
            node = node.left if key < node.split else node.right
        return node is not None and name in node.names

    def with_name(self, name: bytes, made: ChangedNodes | None = None) -> SortedNames:
        """Return the set with a name added; itself if it has it.

        Args:
            name: The name.
            made: The same for all sets that the name is added to: what they share is made once.
        """
        if self._root is None:
            return SortedNames(Leaf((name,)))
        root = _add(self._root, name, java_order(name), {} if made is None else made)
        return self if root is self._root else SortedNames(root)

    def without_name(self, name: bytes, made: ChangedNodes | None = None) -> SortedNames:
        """Return the set with a name removed; itself if it lacks it. See ``with_name``."""
        if self._root is None:
            return self
        root = _remove(self._root, name, java_order(name), {} if made is None else made)
        if root is None:
            return EMPTY_NAMES
        return self if root is self._root else SortedNames(root)

    def own_objects(self, names: Sequence[bytes]) -> list[bytes]:
        """Return names, which are in Java's order, as the objects of this set.

        What the set lacks comes as it is given. For sets that are to share name objects.
        """
        own: list[bytes] = []
        start = 0
        while start < len(names):
            leaf, end = self._leaf_for(java_order(names[start])), len(names)
            if leaf:
                last = java_order(leaf[-1])
                end = max(start + 1, bisect_right(names, last, start, key=java_order))
            own += _own_objects(leaf, names[start:end])
            start = end
        return own

    def _leaf_for(self, key: bytes) -> tuple[bytes, ...]:
        """Return the names among which a key has its place."""
        node = self._root
        while isinstance(node, Fork):
            node = node.left if key < node.split else node.right
        return node.names if node is not None else ()

    def changes_to(self, newer: SortedNames) -> NameChanges:
        """Return what differs in a later version; what they share is not looked at."""
        before: list[Leaf] = []
        after: list[Leaf] = []
        _differing(self._root, newer._root, before, after)
        known, shown = _names_beside(before, after), _names_beside(after, before)
        had, has = frozenset(known), frozenset(shown)
        return NameChanges(
            [name for name in shown if name not in had],
            [name for name in known if name not in has],
        )


EMPTY_NAMES = SortedNames()


class SortedNamesBuilder:
    """Makes a set of many names, some at a time; the mutable state is what came so far."""

    def __init__(self) -> None:
        self._leaves: list[Leaf] = []
        self._names: list[bytes] = []

    def extend(self, names: Sequence[bytes]) -> None:
        """Add names that sort behind all that came before, in Java's order; none twice."""
        self._names += names
        full = len(self._names) - len(self._names) % _FILLED_NAMES
        for start in range(0, full, _FILLED_NAMES):
            self._leaves.append(Leaf(tuple(self._names[start : start + _FILLED_NAMES])))
        del self._names[:full]

    def finishing(self) -> Generator[None, None, SortedNames]:
        """Return the set of all names, in steps of less than a millisecond; see ``finished``."""
        if self._names:
            self._leaves.append(Leaf(tuple(self._names)))
        return (yield from SortedNames.from_leaves(self._leaves))

    def finished(self) -> SortedNames:
        """Return the set of all names; nothing may be added after it."""
        steps = self.finishing()
        try:
            while True:
                next(steps)
        except StopIteration as done:
            names: SortedNames = done.value
            return names


def _own_objects(leaf: tuple[bytes, ...], names: Sequence[bytes]) -> Sequence[bytes]:
    """Return names as the objects of a leaf; quickest for all of them, then for few of them."""
    if len(names) == len(leaf) and leaf == tuple(names):
        return leaf
    if len(names) > _FEW_NAMES:
        wanted = frozenset(names)
        own = [name for name in leaf if name in wanted]
        if len(own) == len(names):
            return own
    return [leaf[leaf.index(name)] if name in leaf else name for name in names]


def _build(leaves: Sequence[Leaf], start: int, end: int) -> Generator[None, None, Node]:
    """Make a balanced tree of leaves[start:end], a part of it in each step."""
    if end - start <= _LEAVES_A_STEP:
        yield
        return _build_part(leaves, start, end)
    middle = (start + end) // 2
    left = yield from _build(leaves, start, middle)
    right = yield from _build(leaves, middle, end)
    return Fork(left, right, java_order(leaves[middle].names[0]))


def _build_part(leaves: Sequence[Leaf], start: int, end: int) -> Node:
    """Make a part of a tree; the collector, which would find no cycle, need not look at it.

    What single changes make later stays tracked: telling the collector costs as much as the node.
    """
    if end - start == 1:
        untrack(leaves[start])
        return leaves[start]
    middle = (start + end) // 2
    left, right = _build_part(leaves, start, middle), _build_part(leaves, middle, end)
    fork = Fork(left, right, java_order(leaves[middle].names[0]))
    untrack(fork)
    return fork


def _leaves(root: Node | None, prefix: bytes = b"") -> Iterator[Leaf]:
    """Yield the leaves in order, but for those that no name with the prefix can lie in."""
    pending = [root] if root is not None else []
    while pending:
        node = pending.pop()
        if not isinstance(node, Fork):
            yield node
            continue
        if node.split <= prefix or node.split.startswith(prefix):
            pending.append(node.right)
        if node.split > prefix:
            pending.append(node.left)


def _add(node: Node, name: bytes, key: bytes, made: ChangedNodes) -> Node:
    known = made.get(id(node))
    if known is not None and known[1] is not None:
        return known[1]
    after = _added_to(node, name, key, made)
    made[id(node)] = (node, after)
    return after


def _added_to(node: Node, name: bytes, key: bytes, made: ChangedNodes) -> Node:
    if isinstance(node, Leaf):
        return _add_to_leaf(node, name, key)
    if key < node.split:
        left = _add(node.left, name, key, made)
        return node if left is node.left else _with_left(node, left)
    right = _add(node.right, name, key, made)
    return node if right is node.right else _with_right(node, right)


def _add_to_leaf(leaf: Leaf, name: bytes, key: bytes) -> Node:
    names = leaf.names
    place = bisect_left(names, key, key=java_order)
    if place < len(names) and names[place] == name:
        return leaf
    grown = (*names[:place], name, *names[place:])
    if len(grown) <= MAX_LEAF_NAMES:
        return Leaf(grown)
    middle = len(grown) // 2
    return Fork(Leaf(grown[:middle]), Leaf(grown[middle:]), java_order(grown[middle]))


def _remove(node: Node, name: bytes, key: bytes, made: ChangedNodes) -> Node | None:
    known = made.get(id(node))
    if known is not None:
        return known[1]
    after = _removed_from(node, name, key, made)
    made[id(node)] = (node, after)
    return after


def _removed_from(node: Node, name: bytes, key: bytes, made: ChangedNodes) -> Node | None:
    if isinstance(node, Leaf):
        place = bisect_left(node.names, key, key=java_order)
        if node.names[place : place + 1] != (name,):
            return node
        left_over = node.names[:place] + node.names[place + 1 :]
        return Leaf(left_over) if left_over else None
    if key < node.split:
        left = _remove(node.left, name, key, made)
        return node if left is node.left else _without_some(node, left, node.right)
    right = _remove(node.right, name, key, made)
    return node if right is node.right else _without_some(node, node.left, right)


def _without_some(fork: Fork, left: Node | None, right: Node | None) -> Node | None:
    """Put together what a removal left: none of it may be empty, small leaves become one."""
    if left is None or right is None:
        return left or right
    small = left.count + right.count <= _SMALL_NAMES
    if small and isinstance(left, Leaf) and isinstance(right, Leaf):
        return Leaf(left.names + right.names)
    return _with_left(fork, left) if right is fork.right else _fork(left, right, fork.split)


def _with_left(fork: Fork, left: Node) -> Fork:
    """Replace the left side; where the leaves stay as many, nothing needs a turn."""
    if left.leaves != fork.left.leaves:
        return _fork(left, fork.right, fork.split)
    change = shift_crc(fork.left.crc ^ left.crc, fork.right.joined_bytes + 1)
    return Fork(left, fork.right, fork.split, fork.crc ^ change)


def _with_right(fork: Fork, right: Node) -> Fork:
    """Replace the right side by one that is not shorter."""
    if right.leaves != fork.right.leaves:
        return _fork(fork.left, right, fork.split)
    longer_bytes = right.joined_bytes - fork.right.joined_bytes
    left_part = shift_crc(fork.crc ^ fork.right.crc, longer_bytes)
    return Fork(fork.left, right, fork.split, left_part ^ right.crc)


def _fork(left: Node, right: Node, split: bytes) -> Fork:
    """Put two nodes side by side; if one has three times the leaves of the other, rotate."""
    if left.leaves > 3 * right.leaves and isinstance(left, Fork):
        return _lean_right(left, right, split)
    if right.leaves > 3 * left.leaves and isinstance(right, Fork):
        return _lean_left(left, right, split)
    return Fork(left, right, split)


def _lean_right(left: Fork, right: Node, split: bytes) -> Fork:
    inner = left.right
    if inner.leaves < 2 * left.left.leaves or isinstance(inner, Leaf):
        return Fork(left.left, Fork(inner, right, split), left.split)
    outer = Fork(left.left, inner.left, left.split)
    return Fork(outer, Fork(inner.right, right, split), inner.split)


def _lean_left(left: Node, right: Fork, split: bytes) -> Fork:
    inner = right.left
    if inner.leaves < 2 * right.right.leaves or isinstance(inner, Leaf):
        return Fork(Fork(left, inner, split), right.right, right.split)
    outer = Fork(inner.right, right.right, right.split)
    return Fork(Fork(left, inner.left, split), outer, inner.split)


def _differing(
    before: Node | None, after: Node | None, only_before: list[Leaf], only_after: list[Leaf]
) -> None:
    """Collect the leaves of both trees that may differ; the same node on both sides cannot."""
    if before is after:
        return
    if isinstance(before, Fork) and isinstance(after, Fork) and before.split == after.split:
        _differing(before.left, after.left, only_before, only_after)
        _differing(before.right, after.right, only_before, only_after)
        return
    only_before += _leaves(before)
    only_after += _leaves(after)


def _names_beside(leaves: Sequence[Leaf], others: Sequence[Leaf]) -> list[bytes]:
    """Return the names of the leaves that are not among the others."""
    shared = frozenset(map(id, others))
    return [name for leaf in leaves if id(leaf) not in shared for name in leaf.names]
