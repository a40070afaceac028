"""Topic properties as columns beside the names: one dictionary-encoded column a key.

Never a dict per topic: a million topics with two properties each cost a few bytes a topic.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from proto.topic_blocks import TopicSequence
from proto.topic_hash import in_java_order, joined_crc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class PropertyRows:
    """Properties of some topics: row i belongs to the i-th name.

    Attributes:
        names: UTF-8 names, in any order.
        columns: For each property key the values, null where a topic lacks it.
    """

    def __init__(self, names: Sequence[bytes], columns: Mapping[str, pa.Array]) -> None:
        self.names = names
        self.columns = columns

    @staticmethod
    def from_map_column(names: Sequence[bytes], column: pa.MapArray) -> PropertyRows:
        """Turn Arrow's map<string,string> column into one column a key."""
        keys, items = column.keys.dictionary_encode(), column.items
        offsets = column.offsets.to_numpy()
        rows = np.repeat(np.arange(len(column)), np.diff(offsets))
        codes = keys.indices.to_numpy(zero_copy_only=False)
        return PropertyRows(
            names,
            {
                key: _column(
                    len(column), rows[codes == code], items.filter(pa.array(codes == code))
                )
                for code, key in enumerate(keys.dictionary.to_pylist())
            },
        )

    def of(self, row: int) -> dict[str, str]:
        """Return one topic's properties."""
        found = {key: column[row].as_py() for key, column in self.columns.items()}
        return {key: value for key, value in found.items() if value is not None}


def _column(size: int, rows: np.ndarray, values: pa.Array) -> pa.Array:
    """Spread values over ``size`` rows, null elsewhere."""
    encoded = values.dictionary_encode()
    indices = np.zeros(size, np.int32)
    missing = np.ones(size, bool)
    indices[rows] = encoded.indices.to_numpy(zero_copy_only=False)
    missing[rows] = False
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=missing), encoded.dictionary)


class PropertyColumns:
    """Properties of a namespace's topics, in the names' order. Immutable.

    Args:
        rows: The properties, in any order.
        names: A sequence that may hold just these names; then its memory is shared.
    """

    def __init__(
        self, rows: PropertyRows | None = None, names: TopicSequence | None = None
    ) -> None:
        self._names = TopicSequence()
        self._columns: dict[str, pa.Array] = {}
        if rows is not None and rows.columns:
            order = _java_order(rows.names)
            self._names = _sequence([rows.names[row] for row in order], names)
            taken = pa.array(order, pa.int64())
            self._columns = {key: column.take(taken) for key, column in rows.columns.items()}

    def changed(
        self, rows: PropertyRows | None, removed: Sequence[bytes], names: TopicSequence
    ) -> PropertyColumns:
        """Return the columns with rows added, replaced and removed; ``names`` as above."""
        if rows is None and not removed:
            return self
        if not len(self._names):
            return PropertyColumns(rows, names)
        gone = {*removed, *(rows.names if rows is not None else ())}
        before = list(self._names.names())
        keep = pa.array([name not in gone for name in before])
        kept = {key: column.filter(keep) for key, column in self._columns.items()}
        upper = PropertyRows([name for name in before if name not in gone], kept)
        return PropertyColumns(_stack(upper, rows), names)

    def select(self, properties: Mapping[str, str]) -> list[bytes]:
        """Return the names that have every one of some properties, in order."""
        mask: pa.Array | None = None
        for key, value in properties.items():
            column = self._columns.get(key)
            if column is None:
                return []
            equal = pc.fill_null(pc.equal(column.cast(pa.string()), value), fill_value=False)
            mask = equal if mask is None else pc.and_(mask, equal)
        kept = mask.to_pylist() if mask is not None else []
        return list(compress(self._names.names(), kept))


def _java_order(names: Sequence[bytes]) -> list[int]:
    """Return the row numbers of names in Java's order; of a name given twice the last row."""
    rows = {name: row for row, name in enumerate(names)}
    return [rows[name] for name in in_java_order(rows)]


def _sequence(ordered: Sequence[bytes], shared: TopicSequence | None) -> TopicSequence:
    """Return the names as a sequence; the shared one if it holds just them."""
    if shared is not None and shared.totals.count == len(ordered):
        crc, joined_bytes = joined_crc(ordered)
        if (shared.totals.crc, shared.totals.joined_bytes) == (crc, joined_bytes):
            return shared
    return TopicSequence.from_sorted(ordered)


def _stack(upper: PropertyRows, lower: PropertyRows | None) -> PropertyRows:
    """Put two sets of rows below each other; a key that one lacks is null there."""
    if lower is None:
        return upper
    keys = {**upper.columns, **lower.columns}
    columns = {
        key: pa.concat_arrays([_plain(upper, key), _plain(lower, key)]).dictionary_encode()
        for key in keys
    }
    return PropertyRows([*upper.names, *lower.names], columns)


def _plain(rows: PropertyRows, key: str) -> pa.Array:
    column = rows.columns.get(key)
    return pa.nulls(len(rows.names), pa.string()) if column is None else column.cast(pa.string())
