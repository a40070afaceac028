"""The schemas of topics, in every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.stores.store import StoredSchema
from tests.support.stores.topic_stores import A, B

if TYPE_CHECKING:
    from broker.stores.store import MetadataStore
    from tests.unit.broker.stores.conftest import OpenStore

TOPIC, OTHER = f"{A}/t/with/slashes", f"{A}/t\N{SNOWMAN}"
FIRST = StoredSchema(0, "AVRO", b'"int"\x00\xff', {"k": "v\x00", "": ""}, 1_700_000_000_000)
GONE = StoredSchema(1, "NONE", b"", {}, 5, deleted=True)


async def test_schema_versions_are_read_back_unchanged_in_order(store: MetadataStore) -> None:
    added = [await store.add_schema(TOPIC, one) for one in (FIRST, GONE)]
    assert added == [True, True]
    assert list(await store.schemas_of(TOPIC)) == [FIRST, GONE]
    assert list(await store.schemas_of(OTHER)) == []


async def test_a_schema_version_is_added_only_once(store: MetadataStore) -> None:
    await store.add_schema(TOPIC, FIRST)
    added = await store.add_schema(TOPIC, StoredSchema(0, "STRING", b""))
    assert not added
    assert list(await store.schemas_of(TOPIC)) == [FIRST]


async def test_deleting_schemas_affects_a_single_topic(store: MetadataStore) -> None:
    await store.add_schema(TOPIC, FIRST)
    await store.add_schema(OTHER, FIRST)
    await store.delete_schemas(TOPIC)
    assert list(await store.schemas_of(TOPIC)) == []
    assert list(await store.schemas_of(OTHER)) == [FIRST]
    assert await store.add_schema(TOPIC, FIRST)


async def test_schemas_are_deleted_with_their_namespace(store: MetadataStore) -> None:
    for namespace in (A, B):
        await store.create_namespace(namespace)
        await store.add_schema(f"{namespace}/t", FIRST)
    await store.delete_namespace(A)
    assert list(await store.schemas_of(f"{A}/t")) == []
    assert list(await store.schemas_of(f"{B}/t")) == [FIRST]


async def test_schemas_survive_reopening_in_persistent_stores(open_store: OpenStore) -> None:
    async with open_store() as store:
        survives = repr(store).startswith(("<Sqlite", "<Postgresql"))
        await store.add_schema(TOPIC, FIRST)
    async with open_store() as store:
        found = list(await store.schemas_of(TOPIC))
    assert found == ([FIRST] if survives else [])
