"""Parquet as others write it: other types, orders and files beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.importer import import_topics
from broker.stores.memory import MemoryStore
from broker.stores.properties import PROPERTIES_TYPE
from tests.support.topic_stores import A, base, names, selected, topic

if TYPE_CHECKING:
    from pathlib import Path

FROM_FILE = [("from", "file")]
LARGE = pa.map_(pa.large_string(), pa.large_string())
NOT_NULL = pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))


def table(*topics: str, properties: pa.MapType | None = None) -> pa.Table:
    """Topics of A, described in a type of properties."""
    rows = pa.table({"namespace": [str(A)] * len(topics), "topic": topics})
    if properties is None:
        return rows
    return rows.append_column("properties", pa.array([FROM_FILE] * len(topics), properties))


@pytest.mark.parametrize("kind", [None, LARGE, NOT_NULL, pa.map_(pa.string(), pa.large_string())])
async def test_files_of_a_folder_may_differ_in_the_type_of_their_properties(
    tmp_path: Path, kind: pa.MapType | None
) -> None:
    # Given
    pq.write_table(table(base("a"), properties=kind), tmp_path / "0.parquet")
    pq.write_table(table(base("b"), properties=PROPERTIES_TYPE), tmp_path / "1.parquet")
    pq.write_table(table(base("c"), properties=kind), tmp_path / "2.parquet")
    store = MemoryStore()
    # When
    await import_topics(store, tmp_path)
    # Then
    assert await names(store) == [base("a"), base("b"), base("c")]
    described = [topic("b")] if kind is None else [topic("a"), topic("b"), topic("c")]
    assert await selected(store, **{"from": "file"}) == described
