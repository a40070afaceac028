"""A buffer of imported rows, released as soon as all rows of their namespaces have arrived.

Rows stay in their original columns, whatever the number of namespaces: until its rows are taken, a
namespace only needs a number and a count.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROWS_PER_LOT = 8_192
"""The approximate number of rows of a lot; a namespace with more rows is a separate lot."""


class Lot(NamedTuple):
    """A batch of rows that contains all rows of its namespaces.

    Attributes:
        names: The namespaces.
        table: The rows of the first namespace, then of the next, in the order of the file.
        starts: The first row of each namespace, and the end of the last.
    """

    names: Sequence[str]
    table: pa.Table
    starts: Sequence[int]


class StagedRows:
    """A mutable buffer of rows whose namespaces may have further rows later in the file."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._parts: list[_Part] = []
        self._next_number = 0

    @property
    def names(self) -> Sequence[str]:
        """The namespaces with rows in the buffer, in the order of their first rows."""
        return list(self._counts)

    def add(self, table: pa.Table) -> None:
        """Add a table's rows to the buffer; the column ``namespace`` has each row's namespace."""
        column = table["namespace"].combine_chunks().dictionary_encode()
        codes = column.indices.to_numpy(zero_copy_only=False)
        names: list[str] = column.dictionary.to_pylist()
        counts = np.bincount(codes, minlength=len(names)).tolist()
        for name, count in zip(names, counts, strict=True):
            self._counts[name] = self._counts.get(name, 0) + count
        numbers = np.array([self._number(name) for name in names], np.int64)[codes]
        if len(numbers):
            self._parts.append(_Part.of(table.drop_columns("namespace"), numbers))

    def _number(self, name: str) -> int:
        number = self._numbers.setdefault(name, self._next_number)
        self._next_number += number == self._next_number
        return number

    def lots(self, names: Sequence[str]) -> Iterator[Lot]:
        """Remove all rows of the given namespaces; yield them in batches of whole namespaces.

        A batch has about ROWS_PER_LOT rows.

        Args:
            names: Namespaces in the order of ``names``.
        """
        some: list[str] = []
        rows = 0
        for name in names:
            count = self._counts[name]
            if some and rows + count > ROWS_PER_LOT:
                yield self._lot(some)
                some, rows = [], 0
            some.append(name)
            rows += count
        if some:
            yield self._lot(some)

    def _lot(self, names: Sequence[str]) -> Lot:
        wanted = np.array([self._numbers.pop(name) for name in names], np.int64)
        counts = [self._counts.pop(name) for name in names]
        pieces = [piece for part in self._parts if (piece := part.take(wanted)) is not None]
        self._parts = [part for part in self._parts if part.left]
        # Files with and without properties may be mixed: missing properties are null.
        table = pa.concat_tables([rows for rows, _ in pieces], promote_options="default")
        if len(pieces) > 1 and len(names) > 1:
            order = np.argsort(np.concatenate([numbers for _, numbers in pieces]), kind="stable")
            table = table.take(pa.array(order))
        return Lot(names, table, [0, *itertools.accumulate(counts)])


class _Part:
    """Rows added to the buffer together, sorted by the numbers of their namespaces.

    Attributes:
        left: The number of rows that were not taken yet.
    """

    def __init__(self, table: pa.Table, numbers: np.ndarray) -> None:
        self._table = table
        self._numbers = numbers
        self.left = len(numbers)

    @staticmethod
    def of(table: pa.Table, numbers: np.ndarray) -> _Part:
        """Sort rows by the numbers of their namespaces, unless they are sorted already."""
        if np.all(numbers[:-1] <= numbers[1:]):
            return _Part(table, numbers)
        order = np.argsort(numbers, kind="stable")
        return _Part(table.take(pa.array(order)), numbers[order])

    def take(self, wanted: np.ndarray) -> tuple[pa.Table, np.ndarray] | None:
        """Remove and return the rows of given namespaces, with each row's namespace number.

        Return None without such rows.
        """
        starts = np.searchsorted(self._numbers, wanted)
        ends = np.searchsorted(self._numbers, wanted, side="right")
        begin, end, count = int(starts[0]), int(ends[-1]), int((ends - starts).sum())
        if not count:
            return None
        self.left -= count
        table, numbers = self._table.slice(begin, end - begin), self._numbers[begin:end]
        if count < end - begin:
            rows = np.flatnonzero(np.isin(numbers, wanted))
            table, numbers = table.take(pa.array(rows)), numbers[rows]
        return table, numbers
