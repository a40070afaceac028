"""Topic properties in compact columns beside a TopicSequence: row i has the i-th name's.

Rows are stored in segments. A segment stores the distinct properties of its rows, each once, and
for each row the numbers of the row's properties: two properties cost about 6 bytes a topic, and a
key used by one topic costs only one entry. Names are stored elsewhere. A change replaces the
affected segments and shares all others, at a cost independent of the namespace's size.

Columns are efficient from hundreds of rows on. Most of a hundred thousand imported namespaces have
ten topics; their properties are a text, FewProperties, until the first change.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.stores.property_rows import PAIR_END, PROPERTIES_TYPE, pair_of_text, pair_texts
from proto.topic_hash import java_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.stores.changes import TopicChanges
    from broker.stores.snapshots.snapshot import NamespaceSnapshot

SEGMENT_ROWS = 8_192
"""Rows of a segment; a segment of more than twice as many is split."""
_NO_ROWS = np.zeros(0, np.int64)
_NO_PAIRS = pa.array([], pa.binary())


class Segment:
    """The properties of up to some thousand consecutive rows, in compact arrays. Immutable.

    Row i has the properties numbered ``codes[ends[i - 1]:ends[i]]``, in no order.
    """

    __slots__ = ("_codes", "_ends", "_pairs")

    def __init__(self, counts: np.ndarray, codes: np.ndarray, pairs: pa.BinaryArray) -> None:
        self._ends = _smallest(np.cumsum(counts), len(codes))
        used = np.bincount(codes, minlength=len(pairs)) > 0
        if not used.all():
            codes, pairs = (np.cumsum(used) - 1)[codes], pairs.filter(pa.array(used))
        self._codes = _smallest(codes, len(pairs))
        self._pairs = _out_of_the_pool(pairs)

    @staticmethod
    def from_column(column: pa.MapArray) -> Segment:
        """Build a segment from an Arrow column that has the properties of its rows."""
        return Segment(np.zeros(0, np.int64), _NO_ROWS, _NO_PAIRS).edited(
            _NO_ROWS, np.zeros(len(column), np.int64), column
        )

    @staticmethod
    def bare(rows: int) -> Segment:
        """Return a segment of ``rows`` topics that have no properties."""
        return Segment(np.zeros(rows, np.int64), _NO_ROWS, _NO_PAIRS)

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays of the segment in bytes."""
        return int(self._ends.nbytes + self._codes.nbytes + self._pairs.nbytes)

    @property
    def has_properties(self) -> bool:
        """True if any topic of the segment has properties."""
        return len(self._codes) > 0

    def rows_with(self, pairs: Sequence[pc.IndexOptions]) -> np.ndarray:
        """Return the rows, in ascending order, whose topics have all given properties.

        Each property is encoded by ``wanted_pair``.
        """
        codes = [pc.call_function("index", [self._pairs], pair).as_py() for pair in pairs]
        if min(codes) < 0:
            return _NO_ROWS
        hits = [self._codes == code for code in codes]
        rarest = min(range(len(codes)), key=lambda index: np.count_nonzero(hits[index]))
        places = np.flatnonzero(hits[rarest]).astype(self._ends.dtype)
        rows = self._ends.searchsorted(places, side="right")
        for index, code in enumerate(codes):
            if index != rarest and len(rows):
                rows = rows[self._have(rows, code)]
        return rows

    def _have(self, rows: np.ndarray, code: int) -> np.ndarray:
        ends = self._ends[rows].astype(np.int64)
        starts = np.where(rows > 0, self._ends[rows - 1], 0)
        have = np.zeros(len(rows), bool)
        for offset in range(int((ends - starts).max())):
            at = starts + offset
            have |= (at < ends) & (self._codes[at.clip(0, len(self._codes) - 1)] == code)
        return have

    def of(self, row: int) -> dict[str, str]:
        """Return the properties of the topic in a row."""
        start = int(self._ends[row - 1]) if row else 0
        codes = self._codes[start : int(self._ends[row])]
        return dict(pair_of_text(self._pairs[int(code)].as_py()) for code in codes)

    def edited(self, gone: np.ndarray, points: np.ndarray, column: pa.MapArray) -> Segment:
        """Return the segment after some rows were removed and new rows were inserted.

        Args:
            gone: The rows to remove.
            points: For each new row, ascending, the existing row behind it, up to the row count.
            column: The properties of the new rows.
        """
        keep = np.ones(len(self), bool)
        keep[gone] = False
        counts: np.ndarray = np.diff(self._ends.astype(np.int64), prepend=0)
        codes = self._codes[np.repeat(keep, counts)].astype(np.int64)
        counts = counts[keep]
        if not len(points):
            return Segment(counts, codes, self._pairs)
        new_counts, texts = pair_texts(column)
        pairs, new_codes = _united(self._pairs, texts)
        rows_before = np.concatenate(([0], np.cumsum(keep)))[points]
        codes_before = np.concatenate(([0], np.cumsum(counts)))[rows_before]
        return Segment(
            np.insert(counts, rows_before, new_counts),
            np.insert(codes, np.repeat(codes_before, new_counts), new_codes),
            pairs,
        )

    def cut(self) -> Iterator[Segment]:
        """Yield this segment or, if it has more than twice SEGMENT_ROWS rows, smaller segments."""
        if len(self) <= 2 * SEGMENT_ROWS:
            yield self
            return
        counts: np.ndarray = np.diff(self._ends.astype(np.int64), prepend=0)
        for start in range(0, len(self), SEGMENT_ROWS):
            first = int(self._ends[start - 1]) if start else 0
            part = counts[start : start + SEGMENT_ROWS]
            codes = self._codes[first : first + int(part.sum())].astype(np.int64)
            yield Segment(part, codes, self._pairs)


def _united(pairs: pa.BinaryArray, texts: pa.BinaryArray) -> tuple[pa.BinaryArray, np.ndarray]:
    """Return the distinct properties of two columns, and the number of each text among them.

    The properties of ``pairs`` come first and keep their numbers.
    """
    new = texts.dictionary_encode()
    known = pc.index_in(new.dictionary, pairs)
    missing = known.is_null()
    numbers = np.empty(len(new.dictionary), np.int64)
    absent = missing.to_numpy(zero_copy_only=False)
    numbers[~absent] = known.drop_null().to_numpy()
    numbers[absent] = len(pairs) + np.arange(np.count_nonzero(absent))
    united = pa.concat_arrays([pairs, new.dictionary.filter(missing)])
    return united, numbers[new.indices.to_numpy(zero_copy_only=False)]


def _out_of_the_pool(pairs: pa.BinaryArray) -> pa.BinaryArray:
    """Copy a column to memory outside of Arrow's pool, where few bytes can occupy 64 KiB."""
    _, *parts = pairs.buffers()
    copies = [pa.py_buffer(part.to_pybytes() if part is not None else b"") for part in parts]
    return pa.Array.from_buffers(pairs.type, len(pairs), [None, *copies], 0, pairs.offset)


def _smallest(values: np.ndarray, largest: int) -> np.ndarray:
    """Convert non-negative integers to the smallest type that holds ``largest``."""
    kind = np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.uint32
    return values.astype(kind)


def wanted_pair(text: bytes) -> pc.IndexOptions:
    """Return a property, encoded by ``pair_text``, in the form that Segment.rows_with takes."""
    return pc.IndexOptions(pa.scalar(text, pa.binary()))


class PropertyColumns:
    """The properties of all topics of one TopicSequence, in segments of rows. Immutable.

    Columns without any property have zero rows, and cost no memory.
    """

    __slots__ = ("_segments", "_starts")

    def __init__(self, segments: Sequence[Segment] = ()) -> None:
        self._segments = tuple(segments)
        sizes = [len(segment) for segment in self._segments]
        self._starts: list[int] = np.concatenate(([0], np.cumsum(sizes))).astype(int).tolist()

    @staticmethod
    def bare(rows: int) -> PropertyColumns:
        """Return columns for ``rows`` topics that have no properties yet."""
        starts = range(0, rows, SEGMENT_ROWS)
        return PropertyColumns([Segment.bare(min(SEGMENT_ROWS, rows - at)) for at in starts])

    def __len__(self) -> int:
        return self._starts[-1]

    def __repr__(self) -> str:
        return f"<PropertyColumns {len(self)} rows, {self.nbytes} bytes>"

    @property
    def nbytes(self) -> int:
        """Memory of all segments of the columns in bytes."""
        return sum(segment.nbytes for segment in self._segments)

    @property
    def segments(self) -> Sequence[tuple[int, Segment]]:
        """The segments of the columns, each in a pair after the number of its first row."""
        return tuple(zip(self._starts, self._segments, strict=False))

    def of(self, row: int) -> dict[str, str]:
        """Return the properties of the topic in a row."""
        if row >= len(self):  # No row has properties.
            return {}
        index = bisect_right(self._starts, row) - 1
        return self._segments[index].of(row - self._starts[index])

    def edited(
        self, gone: np.ndarray, points: np.ndarray, sources: np.ndarray, column: pa.MapArray
    ) -> PropertyColumns:
        """Return the columns after some rows were removed and new rows were inserted.

        Args:
            gone: Rows to remove, ascending.
            points: For each new row, ascending, the existing row behind it, up to the row count.
            sources: For each new row the row in ``column``; negative for a row without properties.
            column: Properties.
        """
        segments = list(self._segments or (Segment.bare(0),))
        # Rows inserted behind the last row belong to the last segment.
        ends = [*self._starts[1 : len(segments)], len(self) + 1]
        # In reverse, so that pending edits keep their position in the list.
        for index in reversed(self._touched(gone, points)):
            bounds = (self._starts[index], ends[index])
            lost = slice(*np.searchsorted(gone, bounds).tolist())
            won = slice(*np.searchsorted(points, bounds).tolist())
            local = (gone[lost] - bounds[0], points[won] - bounds[0])
            segments[index : index + 1] = _edited(segments[index], *local, sources[won], column)
        if not any(segment.has_properties for segment in segments):
            return PropertyColumns()
        return PropertyColumns(segments)

    def _touched(self, gone: np.ndarray, points: np.ndarray) -> list[int]:
        places = np.searchsorted(self._starts, np.concatenate((gone, points)), side="right") - 1
        found: list[int] = np.unique(places.clip(0, max(len(self._segments) - 1, 0))).tolist()
        return found


def _edited(
    segment: Segment,
    gone: np.ndarray,
    points: np.ndarray,
    sources: np.ndarray,
    column: pa.MapArray,
) -> Iterator[Segment]:
    """Yield the segments that replace a segment after rows were removed and inserted.

    Without changes, this is the segment itself.
    """
    if not len(gone) and not len(points):
        yield segment
    elif len(gone) == len(segment):
        for start in range(0, len(sources), SEGMENT_ROWS):
            yield Segment.from_column(_taken(column, sources[start : start + SEGMENT_ROWS]))
    else:
        yield from segment.edited(gone, points, _taken(column, sources)).cut()


def _taken(column: pa.MapArray, sources: np.ndarray) -> pa.MapArray:
    return column.take(pa.array(sources, mask=sources < 0))


FEW_ROWS = 128
"""Most topics with properties that are kept as one text."""
_ROW_END = b"\xff"
"""Occurs in no UTF-8."""


class FewProperties:
    """The properties of a namespace's topics as one byte string, for few topics. Immutable.

    Args:
        rows: The pairs of each row, see PropertyRows.texts.
    """

    __slots__ = ("_text",)

    def __init__(self, rows: Sequence[bytes]) -> None:
        self._text = _ROW_END.join(rows)

    @staticmethod
    def of_new(after: NamespaceSnapshot, changes: TopicChanges) -> FewProperties | None:
        """Return the properties of a namespace's first topics, if they are few and all persistent.

        None if they are many, or some are non-persistent.

        Args:
            after: The snapshot with the topics.
            changes: The change adding the topics.
        """
        rows, count = changes.properties, len(after.persistent)
        if rows is None or rows.texts is None or count > FEW_ROWS:
            return None
        # As many distinct names as listed topics: the namespace has no further topics.
        if rows.names is not changes.added or len(rows.names) != count:
            return None
        if after.non_persistent or after.system:
            return None
        described = sorted(zip(map(java_order, rows.names), rows.texts, strict=True))
        return FewProperties([text for _, text in described])

    @property
    def nbytes(self) -> int:
        """Size in bytes of the byte string that holds the properties."""
        return len(self._text)

    def of(self, row: int) -> dict[str, str]:
        """Return the properties of the topic in a row."""
        return dict(map(pair_of_text, _pairs(self._text.split(_ROW_END)[row])))

    def rows_with(self, pairs: Sequence[bytes]) -> np.ndarray:
        """Return the rows, in ascending order, whose topics have all given properties."""
        wanted = frozenset(pairs)
        rows = enumerate(self._text.split(_ROW_END))
        return np.array([row for row, text in rows if wanted.issubset(_pairs(text))], np.int64)

    def columns(self) -> PropertyColumns:
        """Return the same properties as PropertyColumns, which can be edited."""
        rows = [list(map(pair_of_text, _pairs(text))) for text in self._text.split(_ROW_END)]
        places, nothing = np.arange(len(rows)), np.zeros(len(rows), np.int64)
        column = pa.array(rows, PROPERTIES_TYPE)
        return PropertyColumns().edited(np.zeros(0, np.int64), nothing, places, column)


def _pairs(row: bytes) -> Sequence[bytes]:
    return row.split(PAIR_END) if row else ()
