"""The changes that add imported rows: columns first, with few steps of Python for a namespace."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from broker.imports.rows import highest_partitions
from broker.stores.changes import TopicChanges
from broker.stores.property_rows import PropertyRows, row_texts
from proto.names import NamespaceName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.imports.staging import Lot
    from broker.stores.changes import NamespaceChanges


def additions(lot: Lot) -> list[NamespaceChanges]:
    """Return a change for each namespace of a lot that adds the namespace's rows.

    Raises:
        InvalidNameError: The name of a namespace is invalid.
    """
    topics: list[bytes] = lot.table["topic"].cast(pa.binary()).to_pylist()
    partitioned = _partition_counts(lot)
    column = _properties(lot)
    described = _described(lot, column)
    texts = row_texts(column) if column is not None and any(described) else ()
    found: list[NamespaceChanges] = []
    for place, (start, end) in enumerate(itertools.pairwise(lot.starts)):
        names = topics[start:end]
        rows = None
        if column is not None and described[place]:
            some = column.slice(start, end - start)
            rows = PropertyRows.from_map_column(names, some, texts[start:end])
        changes = TopicChanges(names, (), partitioned[place], rows, adds_only=True)
        found.append((NamespaceName.parse(lot.names[place]), changes))
    return found


def _partition_counts(lot: Lot) -> Sequence[dict[str, int]]:
    """Return the partition counts of each namespace's partitioned topics."""
    counts: list[dict[str, int]] = [{} for _ in lot.names]
    places = np.repeat(np.arange(len(lot.names)), np.diff(lot.starts))
    for base, place, highest in highest_partitions(lot.table["topic"], places):
        counts[place][base] = highest + 1
    return counts


def _properties(lot: Lot) -> pa.MapArray | None:
    if "properties" not in lot.table.column_names:
        return None
    return lot.table["properties"].combine_chunks()


def _described(lot: Lot, column: pa.MapArray | None) -> Sequence[bool]:
    """Return for each namespace whether any of its topics has properties."""
    if column is None:
        return ()
    pairs = column.offsets.to_numpy()[np.asarray(lot.starts)]
    described: list[bool] = (np.diff(pairs) > 0).tolist()
    return described
