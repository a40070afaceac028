"""Comparison and change of large sets of topic names, in steps of about a millisecond.

For changes of thousands of names: unchanged leaves are kept, all others are rebuilt, and the tree
above the leaves is built once.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain
from typing import TYPE_CHECKING

from broker.watches.names.nodes import NAMES, Leaf, leaf_of
from broker.watches.names.sorted_names import FILLED_NAMES, NameChanges, SortedNames, YoungLooks
from proto.topic_hash import in_java_order, java_order

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

_ADDED_A_STEP = 2_000
"""Names put into leaves in a step, about 1 us each."""
_KEPT_LEAVES_A_STEP = 1_000
"""Leaves inspected and kept in a step, about 1 us each."""
_NAMES_A_STEP = 1_000
"""Names compared in a step, about 0.5 us each."""
_ENTRY_BYTES = 4


def merged(
    names: SortedNames, added: Sequence[bytes], removed: Sequence[bytes]
) -> Generator[None, None, SortedNames]:
    """Return a set of names after many names were added and removed.

    Added and removed names are disjoint, and sorted as Java's String.compareTo.
    """
    leaves: list[Leaf] = []
    come, gone, kept, looks = 0, 0, 0, YoungLooks()
    for leaf, bound in _bounded(names):
        next_come = _up_to(added, come, bound)
        next_gone = _up_to(removed, gone, bound)
        if (next_come, next_gone) == (come, gone):
            leaves.append(leaf)
            kept += 1
            if kept % _KEPT_LEAVES_A_STEP == 0:
                yield
            continue
        for run in _runs(leaf[NAMES], added[come:next_come], removed[gone:next_gone]):
            leaves += _cut(run)
            looks.made(len(leaves))
            yield
        come, gone = next_come, next_gone
    for run in _runs((), added[come:], ()):
        leaves += _cut(run)
        looks.made(len(leaves))
        yield
    return (yield from SortedNames.from_leaves(leaves))


def _bounded(names: SortedNames) -> Iterator[tuple[Leaf, bytes]]:
    """Yield each leaf of a set, with a sort key greater than all of the leaf's names."""
    before: Leaf | None = None
    for leaf in names.nodes():
        if before is not None:
            yield before, java_order(leaf[NAMES][0])
        before = leaf
    if before is not None:
        yield before, java_order(before[NAMES][-1]) + b"\0"


def _up_to(names: Sequence[bytes], start: int, bound: bytes) -> int:
    """Return the index of the first name, from ``start`` on, not sorting before ``bound``."""
    if start == len(names) or java_order(names[start]) >= bound:
        return start
    return bisect_left(names, bound, start, key=java_order)


def _runs(
    names: Sequence[bytes], added: Sequence[bytes], removed: Sequence[bytes]
) -> Iterator[Sequence[bytes]]:
    """Yield the names of a leaf after a change, sorted, in parts of some thousand names."""
    gone, taken = frozenset(removed), 0
    for start in range(0, max(len(added), 1), _ADDED_A_STEP):
        end = len(names)
        if start + _ADDED_A_STEP < len(added):
            bound = java_order(added[start + _ADDED_A_STEP])
            end = bisect_left(names, bound, taken, key=java_order)
        come = added[start : start + _ADDED_A_STEP]
        # The set keeps its own object of an existing added name.
        yield in_java_order(set(names[taken:end]).union(come).difference(gone))
        taken = end


def _cut(names: Sequence[bytes]) -> Iterator[Leaf]:
    count = -(-len(names) // FILLED_NAMES)
    for index in range(count):
        start, end = (len(names) * part // count for part in (index, index + 1))
        yield leaf_of(tuple(names[start:end]))


def changes_between(
    before: SortedNames, after: SortedNames, most_bytes: int
) -> Generator[None, None, tuple[NameChanges, bool]]:
    """Return the names added or removed between two versions of a set, up to a size limit.

    Args:
        before: The earlier version.
        after: The later version.
        most_bytes: Limit on the encoded size of the names; the first is always included.

    Returns:
        The changes, and True if they lead to the later version.
    """
    old_leaves, new_leaves = before.leaves_beside(after)
    added: list[bytes] = []
    removed: list[bytes] = []
    taken_bytes = 0
    for name, came in _compared(_names_in(old_leaves), _names_in(new_leaves)):
        if name is None:
            yield
            continue
        taken_bytes += len(name) + _ENTRY_BYTES
        if taken_bytes > most_bytes and (added or removed):
            return NameChanges(added, removed), False
        (added if came else removed).append(name)
    return NameChanges(added, removed), True


def _names_in(leaves: Iterable[Leaf]) -> Iterator[bytes]:
    return chain.from_iterable(leaf[NAMES] for leaf in leaves)


def differences(
    before: Iterator[bytes], after: Iterator[bytes]
) -> Generator[None, None, NameChanges]:
    """Return the names added and removed between two lists in order of Java's String.compareTo."""
    added: list[bytes] = []
    removed: list[bytes] = []
    for name, came in _compared(before, after):
        if name is None:
            yield
        else:
            (added if came else removed).append(name)
    return NameChanges(added, removed)


def _compared(
    before: Iterator[bytes], after: Iterator[bytes]
) -> Iterator[tuple[bytes | None, bool]]:
    """Yield (name, True if added) for each name that only one of two sorted lists contains.

    Yields None instead of a name now and then, to allow a pause.
    """
    old, new, steps = next(before, None), next(after, None), 0
    while old is not None or new is not None:
        if old == new:
            old, new = next(before, None), next(after, None)
        elif new is None or (old is not None and java_order(old) < java_order(new)):
            yield old, False
            old = next(before, None)
        else:
            yield new, True
            new = next(after, None)
        steps += 1
        if steps % _NAMES_A_STEP == 0:
            yield None, False


def alike(one: SortedNames, other: SortedNames) -> Generator[None, None, bool]:
    """Return True if two sets contain the same names; fast if the sets share their tree."""
    if one.identity == other.identity:
        return True
    if one.fingerprint != other.fingerprint:
        return False
    changes = yield from differences(one.names(), other.names())
    return not (changes.added or changes.removed)
