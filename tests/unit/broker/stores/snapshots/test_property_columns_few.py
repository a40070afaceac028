"""Properties of few topics as a text: the same answers as columns give."""

import numpy as np
import pytest

from broker.stores.changes import TopicChanges
from broker.stores.property_rows import PropertyRows, row_texts
from broker.stores.snapshots import property_columns
from broker.stores.snapshots.property_columns import FewProperties
from broker.stores.snapshots.snapshot import NamespaceSnapshot

ROWS = [{"k": "v", "l": "w"}, {}, {"k": "v"}]
NAMES = [b"persistent://t/n/b", b"persistent://t/n/c", b"persistent://t/n/a"]


def change(names: list[bytes], rows: list[dict[str, str]] = ROWS) -> TopicChanges:
    column = PropertyRows.from_mappings({b"%d" % n: row for n, row in enumerate(rows)}).column
    return TopicChanges(names, properties=PropertyRows(names, column, row_texts(column)))


def few(made: TopicChanges, before: NamespaceSnapshot | None = None) -> FewProperties | None:
    return FewProperties.of_new((before or NamespaceSnapshot()).changed(made), made)


def test_rows_are_in_the_order_of_the_listing() -> None:
    made = few(change(NAMES))
    assert made is not None
    assert [made.of(row) for row in range(3)] == [{"k": "v"}, {"k": "v", "l": "w"}, {}]
    assert made.rows_with([b"1:k:v"]).tolist() == [0, 1]
    assert made.rows_with([b"1:l:w", b"1:k:v"]).tolist() == [1]
    assert made.rows_with([b"1:k:w"]).dtype == np.int64
    assert made.nbytes == len(b"1:k:v\xff1:k:v\xfe1:l:w\xff")


def test_columns_built_from_few_properties_have_equal_rows() -> None:
    made = few(change(NAMES))
    assert made is not None
    columns = made.columns()
    assert [columns.of(row) for row in range(3)] == [made.of(row) for row in range(3)]


@pytest.mark.parametrize(
    "names",
    [
        [*NAMES[:2], NAMES[0]],
        [*NAMES[:2], b"non-persistent://t/n/x"],
        [*NAMES[:2], b"persistent://t/n/__change_events"],
    ],
    ids=["twice", "another domain", "system topic"],
)
def test_names_that_differ_from_the_listing_use_columns(names: list[bytes]) -> None:
    assert few(change(names)) is None


def test_a_namespace_with_earlier_topics_uses_columns() -> None:
    before = NamespaceSnapshot().changed(TopicChanges([b"persistent://t/n/z"]))
    assert few(change(NAMES), before) is None


def test_more_topics_than_a_few_use_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(property_columns, "FEW_ROWS", 2)
    assert few(change(NAMES)) is None
