"""Imports only add: every store's imports over existing topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.imports.importer import import_topics
from broker.stores.changes import TopicChanges
from broker.stores.conditions import MANY_NAMES, NAMES_PER_LOOKUP
from broker.stores.property_rows import PROPERTIES_TYPE
from tests.support.stores.topic_stores import A, base, names, selected, topic, with_properties

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from broker.stores.store import MetadataStore
    from tests.unit.broker.stores.conftest import OpenStore


def file_of(path: Path, rows: Mapping[str, Mapping[str, str]]) -> Path:
    """Return a Parquet file with topics of A and their properties."""
    properties = pa.array([list(row.items()) for row in rows.values()], PROPERTIES_TYPE)
    columns = {"namespace": [str(A)] * len(rows), "topic": [base(name) for name in rows]}
    pq.write_table(pa.table({**columns, "properties": properties}), path)
    return path


async def test_an_import_never_removes_partitions(tmp_path: Path, store: MetadataStore) -> None:
    there = [topic(f"{name}-partition-{n}") for name in ("t", "u") for n in range(10)]
    counts = {base("t"): 10, base("u"): 10}
    listed = ["t-partition-0", "t-partition-2", "u-partition-11", "v-partition-1"]
    file = file_of(tmp_path / "t.parquet", {name: {} for name in listed})
    await store.apply(A, TopicChanges(there, partitioned=counts))
    await import_topics(store, file)
    grown = {base("t"): 10, base("u"): 12, base("v"): 2}
    assert dict((await store.snapshot(A)).partitioned) == grown


@pytest.mark.parametrize("more", [0, MANY_NAMES + 1])
async def test_an_import_does_not_change_the_properties_of_existing_topics(
    tmp_path, more, store: MetadataStore
) -> None:
    others = {f"o{n}": {"from": "file"} for n in range(more)}
    there = {topic("set"): {"from": "run time"}, topic("removed"): {}, topic("o1"): {}}
    rows = {"set": {}, "removed": {"from": "file"}, "new": {"from": "file"}} | others
    await store.apply(A, with_properties(there))
    before = await names(store)
    await import_topics(store, file_of(tmp_path / "t.parquet", rows))
    assert await store.properties(A, base("set")) == {"from": "run time"}
    assert await store.properties(A, base("removed")) == {}
    assert await store.properties(A, base("new")) == {"from": "file"}
    assert len(await selected(store, **{"from": "file"})) == 1 + max(0, more - 1)
    assert await names(store) == sorted({*before, *map(base, rows)})


async def test_an_import_into_a_large_namespace_adds_only_new_topics(
    tmp_path, store: MetadataStore
) -> None:
    rows = {name: {"from": "file"} for name in ("t00007", "new", "p")}
    many = [topic(f"t{n:05d}") for n in range(3 * NAMES_PER_LOOKUP + 1)]
    await store.apply(A, TopicChanges(many, partitioned={base("p"): 1}))
    await import_topics(store, file_of(tmp_path / "t.parquet", rows))
    assert await selected(store, **{"from": "file"}) == [topic("new")]
    assert len(await names(store)) == len(many) + 1


async def test_an_import_does_not_change_the_properties_of_a_partitioned_topic(
    tmp_path: Path, store: MetadataStore
) -> None:
    described = with_properties({topic("p-partition-0"): {}, topic("p"): {"from": "run time"}})
    made = TopicChanges([topic("p-partition-0")], (), {base("p"): 1}, described.properties)
    rows = {name: {"from": "file"} for name in ("p", "p-partition-0", "p-partition-1")}
    await store.apply(A, made)
    await import_topics(store, file_of(tmp_path / "t.parquet", rows))
    assert await store.properties(A, base("p")) == {"from": "run time"}
    assert await selected(store, **{"from": "file"}) == [topic("p-partition-1")]


@pytest.mark.parametrize("described", [False, True])
async def test_an_imported_partition_inherits_the_properties_of_its_topic(
    tmp_path: Path, described: bool, store: MetadataStore
) -> None:
    there = {topic("p-partition-0"): {"env": "prod"}, topic("p"): {"env": "prod", "a": "b"}}
    made = TopicChanges(
        [topic("p-partition-0")], (), {base("p"): 3}, with_properties(there).properties
    )
    rows = {"p-partition-1": {"env": "file"}} if described else {}
    rows |= {name: {} for name in ("p-partition-2", "p-partition-3", "q-partition-0")}
    await store.apply(A, made)
    await import_topics(store, file_of(tmp_path / "t.parquet", rows))
    assert await selected(store, env="prod", a="b") == [
        topic("p-partition-2"),
        topic("p-partition-3"),
    ]
    assert await selected(store, env="file") == [topic("p-partition-1")][: int(described)]
    assert await store.properties(A, base("q-partition-0")) == {}


@pytest.mark.parametrize("more", [0, 3 * NAMES_PER_LOOKUP])
@pytest.mark.parametrize("at_once", [False, True])
async def test_an_import_does_not_turn_a_topic_into_a_partitioned_topic(
    tmp_path: Path, more: int, at_once: bool, store: MetadataStore
) -> None:
    rows = {name: {} for name in ("x-partition-0", "y-partition-1")}
    there = [topic("x"), *(topic(f"t{n}") for n in range(more))]
    if at_once:
        rows["x"] = {}
    else:
        await store.apply(A, TopicChanges(there))
    await import_topics(store, file_of(tmp_path / "t.parquet", rows))
    assert dict((await store.snapshot(A)).partitioned) == {base("y"): 2}
    assert {base("x"), *map(base, rows)} <= set(await names(store))


async def test_an_import_is_remembered_by_its_content(open_store: OpenStore) -> None:
    async with open_store() as store:
        assert not await store.has_imported("abc")
        await store.remember_import("abc")
        await store.remember_import("abc")
        assert await store.has_imported("abc")
        assert not await store.has_imported("ab")
        survives = type(store).__name__ != "MemoryStore"
    async with open_store() as store:
        assert await store.has_imported("abc") is survives
