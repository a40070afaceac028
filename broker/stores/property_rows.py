"""Properties of topics on their way to a store: an Arrow map<string,string> beside the names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PROPERTIES_TYPE = pa.map_(pa.string(), pa.string())
PAIR_END = b"\xfe"
"""Separates the pairs of a row's text; occurs in no UTF-8."""
_ROWS_AT_ONCE = 4_096
# The first Arrow arrays made of lists and of numpy arrays import modules: too slow for an iteration
# of the event loop.
_FIRST = (pa.array([b""]), pa.array(np.zeros(1)))


class PropertyRows:
    """Topics' names and properties: row i of the Arrow column belongs to the i-th name.

    For a repeated name the last row counts; for a repeated key in a row, the last value.

    Attributes:
        names: UTF-8 names, in any order.
        column: The properties, a map<string,string>.
        texts: The texts of each row's pairs joined by PAIR_END, if available.
    """

    def __init__(
        self, names: Sequence[bytes], column: pa.MapArray, texts: Sequence[bytes] | None = None
    ) -> None:
        self.names = names
        self.column = column
        self.texts = texts

    @staticmethod
    def from_mappings(rows: Mapping[bytes, Mapping[str, str]]) -> PropertyRows:
        """Make rows of the properties of a few topics, given as dicts by name."""
        return PropertyRows.from_rows(list(rows), list(rows.values()))

    @staticmethod
    def from_rows(names: Sequence[bytes], rows: Sequence[Mapping[str, str]]) -> PropertyRows:
        """Make rows of names and the properties of each, given as dicts."""
        return PropertyRows(names, pa.array([list(row.items()) for row in rows], PROPERTIES_TYPE))

    @staticmethod
    def same_for_all(names: Sequence[bytes], properties: Mapping[str, str]) -> PropertyRows:
        """Return rows in which each of the topic names has the same properties."""
        one = pa.array([list(properties.items())], PROPERTIES_TYPE)
        return PropertyRows(names, one.take(pa.array(np.zeros(len(names), np.int64))))

    @property
    def pairs(self) -> int:
        """Total number of properties of all topics.

        The column may be a slice of a longer column.
        """
        offsets = self.column.offsets
        return int(offsets[-1].as_py() - offsets[0].as_py())

    def of(self, row: int) -> dict[str, str]:
        """Return the properties of the topic in a row."""
        return _valid(self.column[row].as_py())

    def filter(self, kept: Sequence[bool]) -> PropertyRows:
        """Return only the rows whose value in ``kept`` is true."""
        names = [name for name, keeps in zip(self.names, kept, strict=True) if keeps]
        return PropertyRows(names, self.column.filter(pa.array(kept, pa.bool_())))

    def followed_by(self, others: PropertyRows) -> PropertyRows:
        """Return these rows followed by the rows of ``others``."""
        column = others.column.cast(self.column.type)
        return PropertyRows([*self.names, *others.names], pa.concat_arrays([self.column, column]))

    def triples(self) -> Iterator[tuple[bytes, str, str]]:
        """Yield each property as name, key and value.

        For a repeated name, only the last row counts.
        """
        last = {name: row for row, name in enumerate(self.names)}
        for row, properties in enumerate(self.rows()):
            name = self.names[row]
            if last[name] == row:
                yield from ((name, key, value) for key, value in properties.items())

    def rows(self) -> Iterator[Mapping[str, str]]:
        """Yield the properties of each topic, row by row."""
        for start in range(0, len(self.names), _ROWS_AT_ONCE):
            yield from map(_valid, self.column.slice(start, _ROWS_AT_ONCE).to_pylist())


def _valid(pairs: Sequence[tuple[str, str | None]] | None) -> dict[str, str]:
    return {key: value for key, value in dict(pairs or ()).items() if value is not None}


def pair_text(key: str, value: str) -> bytes | None:
    """Return a property's key and value as one byte string; None if they are not valid Unicode.

    The key's length comes first, so that key and value cannot be confused.
    """
    try:
        encoded = key.encode()
        return b"%d:%b:%b" % (len(encoded), encoded, value.encode())
    except UnicodeEncodeError:  # A lone surrogate, absent from stored properties.
        return None


def pair_of_text(text: bytes) -> tuple[str, str]:
    """Return the key and value of a property from its byte string, made by ``pair_text``."""
    length, rest = text.split(b":", 1)
    size = int(length)
    return rest[:size].decode(), rest[size + 1 :].decode()


def pair_texts(column: pa.MapArray) -> tuple[np.ndarray, pa.BinaryArray]:
    """Return the number of properties of each row, and all properties as byte strings, row by row.

    The encoding is that of ``pair_text``.
    """
    column = _without_nulls(column)
    offsets = column.offsets.to_numpy().astype(np.int64)
    keys = column.keys.slice(offsets[0], offsets[-1] - offsets[0]).cast(pa.string())
    items = column.items.slice(offsets[0], offsets[-1] - offsets[0]).cast(pa.string())
    rows = np.repeat(np.arange(len(column)), np.diff(offsets))
    kept = _last_of_each_key(rows, keys) & ~items.is_null().to_numpy(zero_copy_only=False)
    if not kept.all():
        mask = pa.array(kept)
        rows, keys, items = rows[kept], keys.filter(mask), items.filter(mask)
    lengths = pc.binary_length(keys).cast(pa.string())
    texts = pc.binary_join_element_wise(lengths, keys, items, ":")
    return np.bincount(rows, minlength=len(column)), texts.cast(pa.binary())


def row_texts(column: pa.MapArray) -> list[bytes]:
    """Return the properties of each row as one byte string, joined by PAIR_END."""
    counts, pairs = pair_texts(column)
    ends = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    rows = pa.ListArray.from_arrays(pa.array(ends), pairs)
    texts: list[bytes] = pc.binary_join(rows, pa.scalar(PAIR_END)).to_pylist()
    return texts


def _without_nulls(column: pa.MapArray) -> pa.MapArray:
    if not column.null_count:
        return column
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    there = column.filter(pa.array(valid))
    counts = np.zeros(len(column), np.int64)
    counts[valid] = np.diff(there.offsets.to_numpy())
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32) + there.offsets[0].as_py()
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), there.keys, there.items)


def _last_of_each_key(rows: np.ndarray, keys: pa.Array) -> np.ndarray:
    """Return a mask that is true for the last value of each key in a row."""
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    both = rows * (int(codes.max(initial=0)) + 1) + codes
    # Not np.unique: freeing millions of small blocks makes glibc's mallinfo2 take 0.3 s.
    ordered = np.sort(both)
    if (ordered[1:] != ordered[:-1]).all():
        return np.ones(len(both), bool)
    kept = np.zeros(len(both), bool)
    # np.unique reports the first of equal entries: in reversed order, the last.
    kept[len(both) - 1 - np.unique(both[::-1], return_index=True)[1]] = True
    return kept
