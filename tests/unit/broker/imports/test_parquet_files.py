"""Parquet files of foreign writers: other types, column orders, several files."""

import re
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.imports import files as topic_files
from broker.imports.importer import ImportFailedError, import_topics
from broker.stores.memory import MemoryStore
from broker.stores.property_rows import PROPERTIES_TYPE
from proto.parquet_versions import TOPICS_VERSION, version_metadata
from tests.support.stores.topic_stores import A, B, base, names, selected, topic

FROM_FILE = [("from", "file")]
LARGE = pa.map_(pa.large_string(), pa.large_string())
NOT_NULL = pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))


def table(*topics: str, properties: pa.MapType | None = None) -> pa.Table:
    """Topics of A, described in a type of properties."""
    rows = pa.table({"namespace": [str(A)] * len(topics), "topic": topics})
    if properties is None:
        return rows
    return rows.append_column("properties", pa.array([FROM_FILE] * len(topics), properties))


async def refusal(path: Path) -> str:
    with pytest.raises(ImportFailedError) as caught:
        await import_topics(MemoryStore(), path)
    return str(caught.value)


@pytest.mark.parametrize("kind", [None, LARGE, NOT_NULL, pa.map_(pa.string(), pa.large_string())])
async def test_files_of_a_folder_may_differ_in_the_type_of_their_properties(tmp_path, kind) -> None:
    pq.write_table(table(base("a"), properties=kind), tmp_path / "0.parquet")
    pq.write_table(table(base("b"), properties=PROPERTIES_TYPE), tmp_path / "1.parquet")
    pq.write_table(table(base("c"), properties=kind), tmp_path / "2.parquet")
    store = MemoryStore()
    await import_topics(store, tmp_path)
    assert await names(store) == [base("a"), base("b"), base("c")]
    described = [topic("b")] if kind is None else [topic("a"), topic("b"), topic("c")]
    assert await selected(store, **{"from": "file"}) == described


@pytest.mark.parametrize("kind", [PROPERTIES_TYPE, pa.struct({"a": pa.int64(), "b": pa.int64()})])
async def test_a_namespace_is_imported_whole_whatever_the_order_of_columns(tmp_path, kind) -> None:
    name = "properties" if kind == PROPERTIES_TYPE else "other"
    value = FROM_FILE if kind == PROPERTIES_TYPE else {"a": 1, "b": 2}
    rows = [base("a"), base("b"), f"persistent://{B}/c"]
    columns = {name: pa.array([value] * 3, kind), "namespace": [str(A), str(A), str(B)]}
    path, store, applied = tmp_path / "t.parquet", MemoryStore(), []
    pq.write_table(pa.table({**columns, "topic": rows}), path, row_group_size=1)
    await import_topics(store, path, applied.append)
    assert applied == [2, 3]


@pytest.mark.parametrize("twice", ["namespace", "topic", "properties"])
async def test_a_duplicate_column_is_refused_by_name(tmp_path: Path, twice: str) -> None:
    rows = table(base("a"), properties=PROPERTIES_TYPE)
    pq.write_table(rows.append_column(twice, rows[twice]), tmp_path / "t.parquet")
    assert await refusal(tmp_path) == f"{tmp_path}/t.parquet has the column {twice} twice"


async def test_a_file_replaced_before_its_rows_are_read_is_refused(tmp_path, monkeypatch) -> None:
    path, groups = tmp_path / "t.parquet", topic_files._row_groups
    pq.write_table(table(base("a")), path)

    def then_replaced(source: Path, file: Path) -> list[object]:
        found = list(groups(source, file))
        file.write_bytes(b"PAR1")
        return found

    monkeypatch.setattr(topic_files, "_row_groups", then_replaced)
    assert f"{path} is not a readable Parquet file" in await refusal(path)


async def test_a_sorted_namespace_is_not_searched_in_later_row_groups(
    tmp_path, monkeypatch
) -> None:
    spaces = [f"tenant/n{number:03d}" for number in range(100)]
    rows = pa.table({"namespace": spaces, "topic": [f"persistent://{one}/x" for one in spaces]})
    pq.write_table(rows, tmp_path / "t.parquet", row_group_size=5)
    asked, may_hold = list[str](), topic_files._RowGroup.may_hold

    def noticed(group: topic_files._RowGroup, namespace: str) -> bool:
        asked.append(namespace)
        return may_hold(group, namespace)

    monkeypatch.setattr(topic_files._RowGroup, "may_hold", noticed)
    result = await import_topics(MemoryStore(), tmp_path)
    assert (result.namespaces, asked) == (100, [])


async def test_hive_folders_name_the_namespaces_of_their_files(tmp_path: Path) -> None:
    for namespace, local in ((A, "a"), (A, "b"), (B, "c")):
        folder = tmp_path / f"namespace={str(namespace).replace('/', '%2F')}"
        folder.mkdir(exist_ok=True)
        full = f"persistent://{namespace}/{local}"
        pq.write_table(pa.table({"topic": [full]}), folder / f"{local}.parquet")
    store = MemoryStore()
    result = await import_topics(store, tmp_path)
    assert (result.topics, result.namespaces) == (3, 2)
    assert await names(store) == [base("a"), base("b")]


async def test_a_hive_folder_overrides_the_column_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / f"namespace={str(A).replace('/', '%2F')}"
    folder.mkdir()
    others = pa.table({"namespace": [str(B)] * 2, "topic": [base("a"), base("b")]})
    pq.write_table(others, folder / "0.parquet")
    store = MemoryStore()
    await import_topics(store, tmp_path)
    assert await names(store) == [base("a"), base("b")]


async def test_a_hive_folder_may_name_the_topic_and_a_missing_namespace(tmp_path: Path) -> None:
    folder = tmp_path / "namespace=__HIVE_DEFAULT_PARTITION__" / f"topic={quote(base('a'), '')}"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"partitions": [0]}), folder / "0.parquet")
    assert "row 1: lacks its topic or its namespace" in await refusal(tmp_path)
    folder.parent.rename(tmp_path / f"namespace={quote(str(A), '')}")
    assert (await import_topics(MemoryStore(), tmp_path)).topics == 1


async def test_a_file_of_a_newer_schema_version_is_refused(tmp_path: Path) -> None:
    newer = table(base("a")).replace_schema_metadata(version_metadata(TOPICS_VERSION + 1))
    pq.write_table(newer, tmp_path / "0.parquet")
    assert re.search(r"/0\.parquet has version b'\d+' of its schema, and", await refusal(tmp_path))


async def test_a_topic_in_the_folder_of_another_namespace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "namespace=t%2Fother").mkdir()
    pq.write_table(pa.table({"topic": [base("a")]}), tmp_path / "namespace=t%2Fother" / "0.parquet")
    assert "is not a full topic name in namespace 't/other'" in await refusal(tmp_path)
