"""The size classes of namespaces: as many as there are, or a few that keep total and largest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_SIZES = 16
"""So many sizes are kept as they are; of more, so many groups have two sizes each at most."""


def size_classes(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return how many namespaces have how many names, the largest first.

    The number of namespaces, that of all names and the largest namespaces are kept in any case.
    """
    ordered = sorted(sizes, reverse=True)
    if len(set(ordered)) > MOST_SIZES:
        largest = ordered.count(ordered[0])
        ordered = ordered[:largest] + sorted(_evened(ordered[largest:]), reverse=True)
    return [(count, size) for size, count in Counter(ordered).items()]


def _evened(ordered: Sequence[int]) -> Iterator[int]:
    """Yield the sizes of groups that have about as many names each, made alike within a group."""
    groups: list[list[int]] = [[] for _ in range(MOST_SIZES)]
    total, before = sum(ordered), 0
    for size in ordered:
        groups[before * MOST_SIZES // total].append(size)
        before += size
    for group in filter(None, groups):
        each, more = divmod(sum(group), len(group))
        yield from (each + (index < more) for index in range(len(group)))
