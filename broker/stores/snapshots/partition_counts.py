"""An immutable, compact map from partitioned topics to their numbers of partitions.

Names and counts are stored in order, in leaves of some kilobytes, and a leaf stores the names'
common prefix once: an entry costs about half of its name, a quarter of a dict's memory. A change
replaces the affected leaves and shares all others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from heapq import merge
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    Entries: TypeAlias = Sequence[tuple[bytes, int]]

LEAF_BYTES = 8_192
"""Name bytes of a leaf, or a single longer name: searched in about a microsecond."""
FILLED_BYTES = 6_144
"""Bytes of a leaf built from many names, with capacity for more."""
SMALL_LEAF_BYTES = 4_096
"""Two neighbouring leaves with at most this total are merged."""
ENTRY_BYTES = 4
"""Approximate memory of an entry beside its name."""
MANY_CHANGES = 16
"""From this many changes, rebuilding a leaf is cheaper."""
# Neither byte occurs in UTF-8: a line is a name's suffix, _COUNT and digits.
_COUNT, _END = b"\xfe", b"\xff"


class PartitionCounts(Mapping[str, int]):
    """The number of partitions of each partitioned topic of a namespace, by full name.

    Attributes:
        leaves: The leaves, in order.
    """

    __slots__ = ("_size", "leaves")

    def __init__(self, leaves: Sequence[Leaf] = (), size: int = 0) -> None:
        self.leaves = leaves
        self._size = size

    @staticmethod
    def of(counts: Mapping[str, int]) -> PartitionCounts:
        """Build the first version of the map; names with count 0 are left out."""
        return PartitionCounts().changed(counts)

    def __repr__(self) -> str:
        return f"<PartitionCounts {self._size} partitioned topics>"

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        for leaf in self.leaves:
            yield from map(bytes.decode, leaf.names)

    def __getitem__(self, name: str) -> int:
        encoded = name.encode()
        place = bisect_right(self.leaves, encoded, key=_FIRST) - 1
        count = self.leaves[place].count_of(encoded) if place >= 0 else None
        if count is None:
            raise KeyError(name)
        return count

    def changed(self, counts: Mapping[str, int]) -> PartitionCounts:
        """Return the next version of the map, with the given counts set; 0 removes a name."""
        if not counts:
            return self
        changes = [(name.encode(), counts[name]) for name in sorted_in_runs(list(counts))]
        leaves, size = list(self.leaves), self._size
        if not leaves:
            leaves = list(_cut([change for change in changes if change[1]]))
            return PartitionCounts(leaves, sum(leaf.size for leaf in leaves))
        # In reverse, so that pending changes keep their position in the list.
        for place, part in reversed(list(_assign(leaves, changes))):
            made = leaves[place].changed(part)
            size += sum(leaf.size for leaf in made) - leaves[place].size
            leaves[place : place + 1] = made
            _join(leaves, place + len(made))
            _join(leaves, place)
        return PartitionCounts(leaves, size)


NO_COUNTS = PartitionCounts()


class Leaf:
    """A leaf of the map: neighboring names and their partition counts, in bytewise order.

    Args:
        prefix: Common prefix of all names.
        lines: Suffixes of the names, with the counts.

    Attributes:
        first: The first name.
        size: Number of entries.
    """

    __slots__ = ("_prefix_bytes", "_text", "first", "size")

    def __init__(self, prefix: bytes, lines: Sequence[bytes]) -> None:
        self.first = prefix + _rest(lines[0])
        self.size = len(lines)
        self._prefix_bytes = len(prefix)
        self._text = _END.join((b"", *lines, b""))

    @staticmethod
    def of(entries: Entries) -> Leaf:
        """Build a leaf from names, in order, and their partition counts."""
        prefix = _common(entries[0][0], entries[-1][0])
        skip = len(prefix)
        return Leaf(prefix, [_line(name[skip:], count) for name, count in entries])

    @property
    def entry_bytes(self) -> int:
        """Size of the leaf in bytes, compared with LEAF_BYTES: full names, plus overhead."""
        return len(self._text) + self.size * self._prefix_bytes

    @property
    def names(self) -> list[bytes]:
        """The leaf's names as UTF-8, decoded again at each access."""
        prefix = self.first[: self._prefix_bytes]
        return [prefix + _rest(line) for line in self._lines()]

    @property
    def entries(self) -> list[tuple[bytes, int]]:
        """The leaf's names as UTF-8 with their partition counts, decoded again at each access."""
        prefix = self.first[: self._prefix_bytes]
        parts = (line.split(_COUNT) for line in self._lines())
        return [(prefix + rest, int(count)) for rest, count in parts]

    def _lines(self) -> list[bytes]:
        return self._text.split(_END)[1:-1]

    def count_of(self, name: bytes) -> int | None:
        """Return a name's partition count; None if the leaf does not contain the name."""
        skip = self._prefix_bytes
        if name[:skip] != self.first[:skip]:
            return None
        entry = b"%b%b%b" % (_END, name[skip:], _COUNT)
        place = self._text.find(entry)
        if place < 0:
            return None
        begin = place + len(entry)
        return int(self._text[begin : self._text.index(_END, begin)])

    def changed(self, changes: Entries) -> Sequence[Leaf]:
        """Return the leaves, possibly none, that replace this leaf after counts changed."""
        prefix = self.first[: self._prefix_bytes]
        if len(changes) > MANY_CHANGES or not all(name.startswith(prefix) for name, _ in changes):
            merged = {**dict(self.entries), **dict(changes)}
            return list(_cut(sorted(entry for entry in merged.items() if entry[1])))
        lines = self._lines()
        for name, count in changes:
            _splice(lines, name[len(prefix) :], count)
        leaf = Leaf(prefix, lines) if lines else None
        if leaf is None or leaf.entry_bytes <= LEAF_BYTES:
            return [leaf] if leaf is not None else []
        return list(_cut(leaf.entries))


_FIRST = attrgetter("first")
_NAME = itemgetter(0)


def _common(one: bytes, other: bytes) -> bytes:
    size = min(len(one), len(other))
    differing = int.from_bytes(one[:size]) ^ int.from_bytes(other[:size])
    return one[: size - (differing.bit_length() + 7) // 8]


def _line(rest: bytes, count: int) -> bytes:
    return b"%b%b%d" % (rest, _COUNT, count)


def _rest(line: bytes) -> bytes:
    return line.partition(_COUNT)[0]


def _splice(lines: list[bytes], rest: bytes, count: int) -> None:
    """Set or insert a name's partition count in the sorted lines of a leaf; 0 removes its line."""
    place = bisect_left(lines, rest, key=_rest)
    there = place < len(lines) and _rest(lines[place]) == rest
    lines[place : place + there] = [_line(rest, count)] if count else []


def _cut(entries: Entries) -> Iterator[Leaf]:
    """Pack names and counts into one leaf, or into leaves of about FILLED_BYTES, equal in size."""
    total = sum(len(name) + ENTRY_BYTES for name, _ in entries)
    share = total / -(-total // FILLED_BYTES) if total > LEAF_BYTES else total
    pending: list[tuple[bytes, int]] = []
    filled = 0
    for entry in entries:
        pending.append(entry)
        filled += len(entry[0]) + ENTRY_BYTES
        if filled >= share:
            yield Leaf.of(pending)
            pending, filled = [], 0
    if pending:
        yield Leaf.of(pending)


def _assign(leaves: Sequence[Leaf], changes: Entries) -> Iterator[tuple[int, Entries]]:
    """Yield the index of each leaf that changes, with its changes; both inputs are sorted."""
    start = 0
    while start < len(changes):
        place = max(0, bisect_right(leaves, changes[start][0], key=_FIRST) - 1)
        end = len(changes)
        if place + 1 < len(leaves):
            end = bisect_left(changes, leaves[place + 1].first, start, key=_NAME)
        yield place, changes[start:end]
        start = end


def _join(leaves: list[Leaf], place: int) -> None:
    """Merge the leaf at an index with the leaf before it, if both exist and are small."""
    if 0 < place < len(leaves):
        one, other = leaves[place - 1 : place + 1]
        if one.entry_bytes + other.entry_bytes <= SMALL_LEAF_BYTES:
            leaves[place - 1 : place + 1] = [Leaf.of([*one.entries, *other.entries])]


T = TypeVar("T")

NAMES_AT_ONCE = 16_384
"""Names sorted, joined or searched in one step of some milliseconds."""


def sorted_in_runs(names: Sequence[T]) -> list[T]:
    """Return names sorted as text; other threads can run between the sorting of parts."""
    if len(names) <= NAMES_AT_ONCE:
        return sorted(names, key=str)
    starts = range(0, len(names), NAMES_AT_ONCE)
    runs = [sorted(names[at : at + NAMES_AT_ONCE], key=str) for at in starts]
    return list(merge(*runs, key=str))
