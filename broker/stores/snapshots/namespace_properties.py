"""The properties of a namespace's topics, as an immutable version beside each snapshot."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import proto.PulsarApi_pb2 as pb
from broker.stores.property_rows import PropertyRows, pair_text
from broker.stores.snapshots.property_columns import FewProperties, PropertyColumns, wanted_pair
from broker.topic_lists.block import offsets_of
from broker.topic_lists.sequence import (
    EMPTY_LISTING,
    NO_NAMES,
    Selection,
    TopicListing,
    TopicSequence,
)
from broker.topic_lists.tree import cut_entries

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    import pyarrow.compute as pc

    from broker.stores.changes import TopicChanges
    from broker.stores.snapshots.snapshot import Mode, NamespaceSnapshot
    from broker.topic_lists.block import Block

NO_COLUMNS = PropertyColumns()
NO_ROWS = PropertyRows.from_mappings({})
PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT
NON_PERSISTENT = pb.CommandGetTopicsOfNamespace.NON_PERSISTENT
SEGMENTS_PER_STEP = 8
"""Segments searched (30 to 100 us each) in a step."""
NAMES_PER_SCAN = 256
"""Names read in a scan in the time of one lookup."""
ROWS_PER_STEP = 512
"""Names picked one by one (about 1 us each) in a step."""
ROWS_PER_BLOCKS = 8_192
"""Names, picked one by one, that are packed into blocks in a step."""
_FEW_OF_A_BLOCK = 32
"""Most names of a block picked one by one; more are taken together, in 0.3 ms."""


class NamespaceProperties:
    """An immutable version of the properties of a namespace's topics.

    Properties of listed topics are columns beside the names, see PropertyColumns; properties of
    system topics and partitioned topics, absent from all lists, have a separate sequence of names.
    """

    __slots__ = ("_few", "_non_persistent", "_other_names", "_others", "_persistent")

    def __init__(
        self,
        persistent: PropertyColumns = NO_COLUMNS,
        non_persistent: PropertyColumns = NO_COLUMNS,
        other_names: TopicSequence = NO_NAMES,
        others: PropertyColumns = NO_COLUMNS,
        few: FewProperties | None = None,
    ) -> None:
        self._few = few
        self._persistent = persistent
        self._non_persistent = non_persistent
        self._other_names = other_names
        self._others = others

    @property
    def nbytes(self) -> int:
        """Memory of all properties of the namespace in bytes."""
        few = self._few.nbytes if self._few is not None else 0
        return few + self._persistent.nbytes + self._non_persistent.nbytes + self._others.nbytes

    def changed(
        self, before: NamespaceSnapshot, after: NamespaceSnapshot, changes: TopicChanges
    ) -> NamespaceProperties:
        """Return the properties after a change of the namespace's topics.

        Args:
            before: The snapshot of this version.
            after: The snapshot with the changes.
            changes: The changes; properties of names missing in ``after`` are dropped.
        """
        if self._few is not None:
            return NamespaceProperties(self._few.columns()).changed(before, after, changes)
        empty = not (self._persistent or self._non_persistent or self._others)
        if empty and changes.properties is None:
            return self
        if empty and (few := FewProperties.of_new(after, changes)) is not None:
            return NamespaceProperties(few=few)
        step = _Step(changes, self._with_promoted(changes))
        persistent = step.located(after.persistent)
        non_persistent = step.located(after.non_persistent)
        other_names = step.other_names(self._other_names, after, (persistent, non_persistent))
        others = step.columns(self._others, self._other_names, step.located(other_names))
        return NamespaceProperties(
            step.columns(self._persistent, before.persistent, persistent),
            step.columns(self._non_persistent, before.non_persistent, non_persistent),
            # Names exist only for their properties: without any, drop the names.
            other_names if others else NO_NAMES,
            others,
        )

    def _with_promoted(self, changes: TopicChanges) -> PropertyRows:
        """Return the properties that a change sets, and those that its new topics inherit.

        A new topic with the name of a partitioned topic inherits the partitioned topic's
        properties.
        """
        rows = changes.properties or NO_ROWS
        if not len(self._other_names):
            return rows
        known = {*rows.names, *changes.removed, *forgotten_by(changes)}
        promoted = {}
        for name in changes.added:
            row = self._other_names.row_of(name) if name not in known else None
            if row is not None:
                promoted[name] = self._others.of(row)
        return rows.followed_by(PropertyRows.from_mappings(promoted)) if promoted else rows

    def of(self, snapshot: NamespaceSnapshot, name: bytes) -> dict[str, str]:
        """Return the properties of a topic or partitioned topic; empty if it has none."""
        if self._few is not None:
            row = snapshot.persistent.row_of(name)
            return self._few.of(row) if row is not None else {}
        for names, columns in (
            (snapshot.persistent, self._persistent),
            (snapshot.non_persistent, self._non_persistent),
            (self._other_names, self._others),
        ):
            row = names.row_of(name)
            if row is not None:
                return columns.of(row)
        return {}

    def select(
        self, snapshot: NamespaceSnapshot, mode: Mode, properties: Mapping[str, str]
    ) -> Generator[None, None, TopicListing]:
        """Return the user topics that have all given properties; pauses between steps."""
        texts = [pair_text(key, value) for key, value in properties.items()]
        wanted = [text for text in texts if text is not None]
        few = self._few
        if len(wanted) < len(texts) or (few is not None and mode == NON_PERSISTENT):
            return EMPTY_LISTING
        if few is not None:
            rows = few.rows_with(wanted)
            return TopicListing((yield from names_at_rows(snapshot.persistent, rows)))
        pairs = list(map(wanted_pair, wanted))
        parts = ((snapshot.non_persistent, self._non_persistent),) * (mode != PERSISTENT)
        parts += ((snapshot.persistent, self._persistent),) * (mode != NON_PERSISTENT)
        selected = []
        for names, columns in parts:
            selected.append((yield from _selected(names, columns, pairs)))
        return TopicListing(*selected)


def _selected(
    names: TopicSequence, columns: PropertyColumns, pairs: Sequence[pc.IndexOptions]
) -> Generator[None, None, TopicSequence]:
    found = []
    for index, (start, segment) in enumerate(columns.segments):
        if index and index % SEGMENTS_PER_STEP == 0:
            yield
        found.append(segment.rows_with(pairs) + start)
    rows = np.concatenate(found) if found else np.zeros(0, np.int64)
    return (yield from names_at_rows(names, rows))


def forgotten_by(changes: TopicChanges) -> list[bytes]:
    """Return the names of the partitioned topics that a change removes."""
    return [name.encode() for name, count in changes.partitioned.items() if not count]


class _Located(NamedTuple):
    """The changed names that a sequence of topics contains: their rows, ascending, and ids.

    Attributes:
        rows: Rows in the sequence.
        ids: Ids, see _Step.
    """

    rows: np.ndarray
    ids: np.ndarray


class _Step:
    """The effect of one change of topics on a namespace's properties.

    Each name of the change has an id: for a name with new properties the row, for any other name a
    higher number. Ids below ``_replaced`` lose their old properties.
    """

    def __init__(self, changes: TopicChanges, rows: PropertyRows) -> None:
        self._rows = rows
        self._ids = {name: row for row, name in enumerate(self._rows.names)}
        self._given = len(self._rows.names)
        forgotten = forgotten_by(changes)
        self._gone = [*changes.removed, *forgotten]
        self._number(forgotten)
        self._replaced = self._given + len(self._ids)
        self._number(changes.removed)
        if changes.added is not self._rows.names:
            self._number(changes.added)

    def _number(self, names: Iterable[bytes]) -> None:
        for name in names:
            self._ids.setdefault(name, self._given + len(self._ids))

    def located(self, names: TopicSequence) -> _Located:
        if len(self._ids) * NAMES_PER_SCAN < len(names):
            places = [(names.row_of(name), number) for name, number in self._ids.items()]
            found = sorted((row, number) for row, number in places if row is not None)
            rows, ids = np.array(found, np.int64).reshape(-1, 2).T
            return _Located(rows, ids)
        numbers = map(self._ids.get, names.names(), repeat(-1))
        ids = np.fromiter(numbers, np.int64, len(names))
        rows = np.flatnonzero(ids >= 0)
        return _Located(rows, ids[rows])

    def other_names(
        self, before: TopicSequence, after: NamespaceSnapshot, listed: Iterable[_Located]
    ) -> TopicSequence:
        """Return the system and partitioned topics that have properties after the change."""
        unlisted = np.zeros(self._given + len(self._ids), bool)
        unlisted[np.fromiter(self._ids.values(), np.int64, len(self._ids))] = True
        for located in listed:
            unlisted[located.ids] = False
        names, given = self._rows.names, unlisted[: self._given]
        added = [
            name
            for name in map(names.__getitem__, np.flatnonzero(given).tolist())
            if name in after.system or name.decode() in after.partitioned
        ]
        if not before and not added:
            return before
        promoted = map(names.__getitem__, np.flatnonzero(~given).tolist())
        return before.apply(added, frozenset(chain(self._gone, promoted)).difference(added))

    def columns(
        self, columns: PropertyColumns, before: TopicSequence, after: _Located
    ) -> PropertyColumns:
        """Return the properties of a sequence of topics after the change.

        ``after`` locates the changed names in the sequence after the change.
        """
        given = after.ids < self._given
        if not columns:
            if not given.any():
                return columns
            columns = PropertyColumns.bare(len(before))
        old = self.located(before)
        gone = (old.ids < self._replaced) | ~np.isin(old.ids, after.ids)
        new = (after.ids < self._replaced) | ~np.isin(after.ids, old.ids)
        sources = np.where(given, after.ids, -1)
        return _edited(columns, old.rows[gone], after.rows[new], sources[new], self._rows.column)


def _edited(
    columns: PropertyColumns,
    gone: np.ndarray,
    rows: np.ndarray,
    sources: np.ndarray,
    column: pa.MapArray,
) -> PropertyColumns:
    """Return the columns after some rows were removed and new rows were inserted.

    ``rows`` are the positions of the inserted rows in the result.
    """
    # Remaining rows keep their order: before the i-th new row come (rows[i] - i) remaining rows,
    # and the removed rows among them.
    staying = rows - np.arange(len(rows))
    points = staying + np.searchsorted(gone - np.arange(len(gone)), staying, side="right")
    return columns.edited(gone, points, sources, column)


def names_at_rows(names: TopicSequence, rows: np.ndarray) -> Generator[None, None, TopicSequence]:
    """Return the names at the given rows of a sequence; pauses between steps.

    For all rows, the result is the given sequence.

    Args:
        names: The sequence indexed by the rows.
        rows: Distinct rows in ascending order.
    """
    if len(rows) == len(names):
        return names
    blocks = list(names.blocks())
    if len(rows) <= len(blocks) * _FEW_OF_A_BLOCK:
        return (yield from _picked(blocks, rows))
    selection = Selection(names)
    for block, chosen in names.blocks_of_rows(rows.data):
        selection.keep_rows(block, chosen)
        yield
    return selection.sequence()


def _picked(blocks: Sequence[Block], rows: np.ndarray) -> Generator[None, None, TopicSequence]:
    ends = np.cumsum([block.totals.count for block in blocks])
    places = np.searchsorted(ends, rows, side="right")
    starts = np.concatenate(([0], ends[:-1]))[places] if len(rows) else rows
    entries: list[bytes] = []
    made: list[Block] = []
    for start in range(0, len(rows), ROWS_PER_STEP):
        part = slice(start, start + ROWS_PER_STEP)
        entries.extend(_entries(blocks, places[part], rows[part] - starts[part]))
        if len(entries) > ROWS_PER_BLOCKS:
            made += _cut(entries)
            entries.clear()
        yield
    return TopicSequence.from_blocks([*made, *_cut(entries)])


def _cut(entries: Sequence[bytes]) -> list[Block]:
    """Pack encoded names into the blocks of a sequence."""
    return cut_entries(b"".join(entries), offsets_of(map(len, entries)))


def _entries(blocks: Sequence[Block], places: np.ndarray, indexes: np.ndarray) -> Iterator[bytes]:
    for place, index in zip(places.tolist(), indexes.tolist(), strict=True):
        block = blocks[place]
        yield block.wire[block.offsets[index] : block.offsets[index + 1]]
