"""Properties of the few topics of a small namespace, as one text.

Columns are efficient from hundreds of rows on. Most of a hundred thousand imported namespaces have
ten topics; their properties are a text until the first change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from broker.stores.property_rows import PAIR_END, PROPERTIES_TYPE, pair_of_text
from broker.stores.snapshots.property_columns import PropertyColumns
from proto.topic_hash import java_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.stores.changes import TopicChanges
    from broker.stores.snapshots.snapshot import NamespaceSnapshot

FEW_ROWS = 128
"""Most topics with properties kept as text."""
_ROW_END = b"\xff"
"""Occurs in no UTF-8."""


class FewProperties:
    """Properties of the rows of one TopicSequence. Immutable.

    Args:
        rows: The pairs of each row, see PropertyRows.texts.
    """

    __slots__ = ("_text",)

    def __init__(self, rows: Sequence[bytes]) -> None:
        self._text = _ROW_END.join(rows)

    @staticmethod
    def of_new(after: NamespaceSnapshot, changes: TopicChanges) -> FewProperties | None:
        """Return the properties of a namespace's first persistent topics; None if there are many.

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
        """Bytes of the text."""
        return len(self._text)

    def of(self, row: int) -> dict[str, str]:
        """Return the properties of a row."""
        return dict(map(pair_of_text, _pairs(self._text.split(_ROW_END)[row])))

    def rows_with(self, pairs: Sequence[bytes]) -> np.ndarray:
        """Return the rows with all given pairs, ascending."""
        wanted = frozenset(pairs)
        rows = enumerate(self._text.split(_ROW_END))
        return np.array([row for row, text in rows if wanted.issubset(_pairs(text))], np.int64)

    def columns(self) -> PropertyColumns:
        """Convert to editable columns."""
        rows = [list(map(pair_of_text, _pairs(text))) for text in self._text.split(_ROW_END)]
        places, nothing = np.arange(len(rows)), np.zeros(len(rows), np.int64)
        column = pa.array(rows, PROPERTIES_TYPE)
        return PropertyColumns().edited(np.zeros(0, np.int64), nothing, places, column)


def _pairs(row: bytes) -> Sequence[bytes]:
    return row.split(PAIR_END) if row else ()
