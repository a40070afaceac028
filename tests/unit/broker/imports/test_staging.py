"""Rows waiting for their namespace's remaining rows, and lots of complete namespaces."""

import pyarrow as pa
import pytest

from broker.imports import staging
from broker.imports.staging import Lot, StagedRows


def rows(*places: str) -> pa.Table:
    """Rows ``namespace:topic``."""
    parts = [place.split(":") for place in places]
    return pa.table({"namespace": [one for one, _ in parts], "topic": [two for _, two in parts]})


def shown(lot: Lot) -> dict[str, list[str]]:
    topics = lot.table["topic"].to_pylist()
    bounds = zip(lot.names, lot.starts, lot.starts[1:], strict=False)
    return {name: topics[start:end] for name, start, end in bounds}


def test_scattered_rows_of_a_namespace_are_grouped_in_their_order() -> None:
    staged = StagedRows()
    staged.add(rows("a:3", "b:1", "a:1", "c:1"))
    staged.add(rows("c:0", "a:2", "a:0"))
    assert staged.names == ["a", "b", "c"]
    assert [shown(lot) for lot in staged.lots(["a", "c"])] == [
        {"a": ["3", "1", "2", "0"], "c": ["1", "0"]}
    ]
    assert staged.names == ["b"]


def test_a_namespace_may_be_staged_again_after_its_lot_was_taken() -> None:
    staged = StagedRows()
    staged.add(rows("a:1", "b:1", "c:1"))
    assert [shown(lot) for lot in staged.lots(["b"])] == [{"b": ["1"]}]
    staged.add(rows("b:2", "a:2"))
    assert [shown(lot) for lot in staged.lots(staged.names)] == [
        {"a": ["1", "2"], "c": ["1"], "b": ["2"]}
    ]
    assert staged.names == []


def test_namespaces_are_grouped_into_lots_of_about_the_row_limit(monkeypatch) -> None:
    monkeypatch.setattr(staging, "ROWS_PER_LOT", 4)
    staged = StagedRows()
    staged.add(rows("a:1", "b:1", "b:2", "c:1", "c:2", "d:1", "d:2", "d:3", "d:4", "d:5", "e:1"))
    lots = [lot.names for lot in staged.lots(staged.names)]
    assert lots == [["a", "b"], ["c"], ["d"], ["e"]]


def test_rows_of_taken_lots_are_released() -> None:
    staged = StagedRows()
    staged.add(rows("a:1", "b:1"))
    list(staged.lots(["a"]))
    assert len(staged._parts) == 1
    list(staged.lots(["b"]))
    assert staged._parts == []


@pytest.mark.parametrize("first", [True, False])
def test_tables_with_and_without_properties_can_be_staged_together(*, first: bool) -> None:
    pairs = pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string()))
    tables = [rows("a:1"), rows("a:2").append_column("properties", pairs)]
    staged = StagedRows()
    for table in tables if first else reversed(tables):
        staged.add(table)
    (lot,) = staged.lots(["a"])
    found = lot.table["properties"].to_pylist()
    assert sorted(found, key=bool) == [None, [("k", "v")]]
