"""An immutable sorted set of topic names; a changed copy shares all but one path of its tree.

Names are sorted as Java's String.compareTo.

A weight-balanced tree with up to 128 names in a leaf. Each node stores count, length and CRC32C of
its names joined by commas, so that Pulsar's hash of a set is known after each change. Versions
share their common nodes, and sets of the same names share the name objects: a set of many names
costs about ten bytes a name beside the names themselves.
"""

from __future__ import annotations

import gc
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.watches.names import nodes as name_nodes
from broker.watches.names.nodes import (
    COUNT,
    CRC,
    JOINED_BYTES,
    LEAVES,
    NAMES,
    children_of,
    collect_differing,
    fork_of,
    leaf_for,
    leaf_of,
    leaves_of,
    tree_of,
)
from proto.topic_hash import EMPTY_HASH, format_hash, java_order
from server.tasks.cooperative import Turns

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from broker.watches.names.nodes import ChangedNodes, Leaf, Node

FILLED_NAMES = 96
"""Names of a leaf built from many, with capacity for more."""
_LEAVES_A_STEP = 64
"""Leaves built in a step, 5 us each."""
LEAVES_A_LOOK = 128
"""Leaves built between two garbage collections of young objects, 0.3 ms each."""
_FEW_NAMES = 8
"""Most names of a leaf looked up one by one."""
NAME_BYTES = 9
"""Memory of a name in a set, its slot in a leaf; leaves are three quarters full."""
LEAF_BYTES = 400
"""Memory of a leaf and its fork, beside the names."""


@dataclass(frozen=True, slots=True)
class NameChanges:
    """The names added and the names removed between two versions of a set, both sorted."""

    added: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()


class SortedNames:
    """An immutable version of a set of UTF-8 names; versions are compared by identity."""

    __slots__ = ("_root",)

    def __init__(self, root: Node | None = None) -> None:
        self._root = root

    @staticmethod
    def from_sorted(names: Sequence[bytes]) -> SortedNames:
        """Return a set of distinct names, which must be sorted as by Java's String.compareTo.

        The set refers to the given objects.
        """
        builder = SortedNamesBuilder()
        builder.extend(names)
        return builder.finished()

    @staticmethod
    def from_leaves(leaves: Sequence[Leaf]) -> Generator[None, None, SortedNames]:
        """Return a set of leaves in sort order; a generator that yields after each step."""
        if not leaves:
            return EMPTY_NAMES
        return SortedNames((yield from _build(leaves, 0, len(leaves))))

    def __len__(self) -> int:
        return self._root[COUNT] if self._root is not None else 0

    def __repr__(self) -> str:
        return f"<SortedNames {len(self)} names, {self.hash}>"

    @property
    def hash(self) -> str:
        """Pulsar's hash of a topic list that consists of the set's names."""
        return format_hash(self._root[CRC]) if self._root is not None else EMPTY_HASH

    @property
    def crc(self) -> int:
        """CRC32C of the set's names joined by commas; 0 without names."""
        return self._root[CRC] if self._root is not None else 0

    @property
    def name_bytes(self) -> int:
        """The sum of the lengths of the set's names in bytes."""
        root = self._root
        return root[JOINED_BYTES] - (root[COUNT] - 1) if root is not None else 0

    @property
    def own_bytes(self) -> int:
        """Approximate memory of the set in bytes, without the names themselves."""
        if self._root is None:
            return 0
        return NAME_BYTES * self._root[COUNT] + LEAF_BYTES * self._root[LEAVES]

    @property
    def identity(self) -> int:
        """A number that only versions with the very same tree share, while one of them lives."""
        return id(self._root)

    @property
    def root(self) -> Node | None:
        """The root of the set's tree; None without names."""
        return self._root

    @property
    def fingerprint(self) -> tuple[int, int, int]:
        """Number, CRC32C and total length of the set's names.

        Equal for equal sets; within a namespace, equal fingerprints mean equal sets.
        """
        root = self._root
        return (root[COUNT], root[CRC], root[JOINED_BYTES]) if root is not None else (0, 0, 0)

    def leaves(self) -> Iterator[tuple[bytes, ...]]:
        """Yield the names of each leaf of the tree, in sort order."""
        return (leaf[NAMES] for leaf in leaves_of(self._root))

    def nodes(self) -> Iterator[Leaf]:
        """Yield the leaves of the set's tree, in sort order."""
        return leaves_of(self._root)

    def leaves_beside(self, newer: SortedNames) -> tuple[list[Leaf], list[Leaf]]:
        """Return the leaves in which this version and a newer one may differ, for each in order."""
        before: list[Leaf] = []
        after: list[Leaf] = []
        collect_differing(self._root, newer._root, before, after)
        return before, after

    def names(self) -> Iterator[bytes]:
        """Yield all names of the set in sort order."""
        return (name for leaf in leaves_of(self._root) for name in leaf[NAMES])

    def __contains__(self, name: bytes) -> bool:
        return name in self._names_beside(java_order(name))

    def with_name(self, name: bytes, made: ChangedNodes | None = None) -> SortedNames:
        """Return the set with a name added; the same object if it already contains the name.

        Args:
            name: The name.
            made: A dict shared by all sets receiving the name, so that shared nodes are built once;
                the owner keeps the sets alive meanwhile.
        """
        if self._root is None:
            return SortedNames(leaf_of((name,)))
        root = name_nodes.with_name(self._root, name, {} if made is None else made)
        return self if root is self._root else SortedNames(root)

    def without_name(self, name: bytes, made: ChangedNodes | None = None) -> SortedNames:
        """Return the set without a name; the same object if it does not contain the name."""
        if self._root is None:
            return self
        root = name_nodes.without_name(self._root, name, {} if made is None else made)
        if root is None:
            return EMPTY_NAMES
        return self if root is self._root else SortedNames(root)

    def own_objects(self, names: Sequence[bytes]) -> list[bytes]:
        """Return sorted names, each replaced by the equal object in the set if there is one.

        Other names are returned as given. So sets can share the objects of names.
        """
        own: list[bytes] = []
        start = 0
        while start < len(names):
            leaf, end = self._names_beside(java_order(names[start])), len(names)
            if leaf:
                last = java_order(leaf[-1])
                end = max(start + 1, bisect_right(names, last, start, key=java_order))
            own += _own_objects(leaf, names[start:end])
            start = end
        return own

    def _names_beside(self, key: bytes) -> tuple[bytes, ...]:
        """Return the names of the leaf to which a sort key belongs."""
        return leaf_for(self._root, key)[NAMES] if self._root is not None else ()


EMPTY_NAMES = SortedNames()


class YoungLooks:
    """Runs the garbage collector on young objects from time to time while leaves are built.

    The collector visits each new leaf once, with all its names: thousands of leaves take 10 ms or
    more.
    """

    def __init__(self) -> None:
        self._seen = 0

    def made(self, leaves: int) -> None:
        """Run the garbage collector if enough leaves were built since the last run."""
        if leaves >= self._seen + LEAVES_A_LOOK:
            self._seen = leaves
            gc.collect(0)


class SortedNamesBuilder:
    """Builds a set of many names, which the caller adds in sorted parts."""

    def __init__(self) -> None:
        self._leaves: list[Leaf] = []
        self._names: list[bytes] = []
        self._looks = YoungLooks()

    def extend(self, names: Sequence[bytes]) -> None:
        """Add distinct, sorted names, which all sort after the names added before."""
        self._names += names
        full = len(self._names) - len(self._names) % FILLED_NAMES
        for start in range(0, full, FILLED_NAMES):
            self._leaves.append(leaf_of(tuple(self._names[start : start + FILLED_NAMES])))
            self._looks.made(len(self._leaves))
        del self._names[:full]

    def finishing(self) -> Generator[None, None, SortedNames]:
        """Return the set of all added names; a generator that yields after each step."""
        if self._names:
            self._leaves.append(leaf_of(tuple(self._names)))
        return (yield from SortedNames.from_leaves(self._leaves))

    def finished(self) -> SortedNames:
        """Return the set of all added names; none may be added afterwards."""
        steps = self.finishing()
        try:
            while True:
                next(steps)
        except StopIteration as done:
            names: SortedNames = done.value
            return names


def _own_objects(leaf: tuple[bytes, ...], names: Sequence[bytes]) -> Sequence[bytes]:
    """Return names, each replaced by the equal object in a leaf if there is one.

    Fastest if the names are the whole leaf, then if they are few.
    """
    if len(names) == len(leaf) and leaf == tuple(names):
        return leaf
    if len(names) > _FEW_NAMES:
        wanted = frozenset(names)
        own = [name for name in leaf if name in wanted]
        if len(own) == len(names):
            return own
    return [leaf[leaf.index(name)] if name in leaf else name for name in names]


def _build(leaves: Sequence[Leaf], start: int, end: int) -> Generator[None, None, Node]:
    """Return a balanced tree of leaves[start:end]; yields after every few leaves."""
    if end - start <= _LEAVES_A_STEP:
        yield
        return tree_of(leaves, start, end)
    middle = (start + end) // 2
    left = yield from _build(leaves, start, middle)
    right = yield from _build(leaves, middle, end)
    return fork_of(left, right, java_order(leaves[middle][NAMES][0]))


class NamesDisposal:
    """Frees the memory of sets that are no longer used, one node of their trees at a time.

    Freeing a large set at once would block the event loop.

    The mutable state is the pending nodes.
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._turns = Turns(self._free_one)

    def __len__(self) -> int:
        return len(self._nodes)

    def free(self, names: SortedNames) -> None:
        """Begin to free a set's memory, in later event-loop iterations."""
        if names.root is not None:
            self._nodes.append(names.root)
            self._turns.start()

    def _free_one(self) -> bool:
        self._nodes += children_of(self._nodes.pop())
        return bool(self._nodes)
