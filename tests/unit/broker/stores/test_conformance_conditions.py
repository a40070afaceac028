"""Every store: a change's conditions and the change are one atomic step."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from broker.stores.changes import (
    NamespaceMissingError,
    TopicChangedError,
    TopicChanges,
    TopicExistsError,
    TopicMissingError,
    TopicState,
)
from broker.stores.property_rows import PropertyRows
from tests.support.stores.topic_stores import (
    A,
    base,
    changes,
    names,
    selected,
    topic,
    with_properties,
)

if TYPE_CHECKING:
    from broker.stores.store import MetadataStore


async def test_only_a_single_concurrent_creation_of_a_name_succeeds(store: MetadataStore) -> None:
    creation = replace(changes(topic("a")), absent=[base("a")])
    done = await asyncio.gather(
        *(store.apply(A, creation) for _ in range(8)), return_exceptions=True
    )
    assert [one for one in done if isinstance(one, int)] == [1]
    refused = [one for one in done if not isinstance(one, int)]
    told = f"{base('a')} already exists"
    assert {(type(one), str(one)) for one in refused} == {(TopicExistsError, told)}
    assert (await store.snapshot(A)).version == 1


@pytest.mark.parametrize("kind", ["topic", "partitioned", "system"])
async def test_a_change_is_refused_when_a_name_required_absent_exists(
    kind, store: MetadataStore
) -> None:
    taken = "__change_events" if kind == "system" else "taken"
    await store.apply(A, changes(taken=2) if kind == "partitioned" else changes(topic(taken)))
    with pytest.raises(TopicExistsError, match=f"{base(taken)} already exists"):
        await store.apply(A, replace(changes(topic("x")), absent=[base("y"), base(taken)]))
    snapshot = await store.snapshot(A)
    assert snapshot.version == 1
    assert not snapshot.holds(topic("x"))


async def test_a_change_is_refused_when_a_name_required_present_is_missing(
    store: MetadataStore,
) -> None:
    await store.apply(A, changes(topic("a"), p=1))
    present = replace(changes(topic("b")), present=[base("a"), base("p")])
    assert await store.apply(A, present) == 2
    with pytest.raises(TopicMissingError, match=f"{base('none')} does not exist"):
        await store.apply(A, replace(changes(topic("c")), present=[base("a"), base("none")]))
    assert await names(store) == [base("a"), base("b")]


async def test_a_missing_namespace_is_created_only_by_a_change_that_allows_creation(
    store: MetadataStore,
) -> None:
    with pytest.raises(NamespaceMissingError):
        await store.apply(A, replace(changes(topic("a")), creates_namespace=False))
    with pytest.raises(TopicMissingError):
        await store.apply(A, replace(changes(topic("a")), present=[base("a")]))
    assert await store.namespaces() == []
    assert await store.tenants() == {}
    await store.create_namespace(A)
    assert await store.apply(A, replace(changes(topic("a")), creates_namespace=False)) == 1


async def test_a_refused_change_is_not_in_the_feed(store: MetadataStore) -> None:
    await store.apply(A, changes(topic("a")))
    feed = store.changes()
    with pytest.raises(TopicExistsError):
        await store.apply(A, replace(changes(topic("b")), absent=[base("a")]))
    await store.apply(A, changes(topic("c")))
    feed.close()
    assert [(change.version, list(change.added)) async for change in feed] == [(2, [topic("c")])]


async def test_a_refused_change_does_not_change_properties(store: MetadataStore) -> None:
    await store.apply(A, with_properties({topic("a"): {"k": "v"}}))
    with pytest.raises(TopicExistsError):
        await store.apply(A, replace(with_properties({topic("a"): {"k": "w"}}), absent=[base("a")]))
    assert await selected(store, k="v") == [topic("a")]


async def test_only_a_single_concurrent_deletion_of_a_name_succeeds(store: MetadataStore) -> None:
    await store.apply(A, changes(topic("a")))
    deletion = TopicChanges(removed=[topic("a")], present=[base("a")])
    done = await asyncio.gather(
        *(store.apply(A, deletion) for _ in range(4)), return_exceptions=True
    )
    assert [one for one in done if isinstance(one, int)] == [2]
    assert {type(one) for one in done} == {int, TopicMissingError}


@pytest.mark.parametrize("partitions", [0, 2])
async def test_a_conditional_change_applies_to_a_topic_in_the_expected_state(
    partitions, store: MetadataStore
) -> None:
    made = with_properties({topic("t"): {"a": "1"}})
    made = replace(made, partitioned={base("t"): partitions} if partitions else {})
    await store.apply(A, made)
    seen = TopicState(base("t"), partitions, {"a": "1"})
    await store.apply(A, replace(changes(topic("new")), unchanged=seen))
    assert base("new") in await names(store)


@pytest.mark.parametrize(
    ("partitions", "properties"), [(3, {"a": "1"}), (2, {}), (2, {"a": "1", "b": ""}), (0, {})]
)
async def test_a_conditional_change_of_a_changed_topic_is_refused_with_the_actual_state(
    partitions: int, properties: dict[str, str], store: MetadataStore
) -> None:
    described = PropertyRows.from_mappings({topic("t"): {"a": "1"}})
    await store.apply(A, TopicChanges(partitioned={base("t"): 2}, properties=described))
    seen = TopicState(base("t"), partitions, properties)
    with pytest.raises(TopicChangedError) as caught:
        await store.apply(A, replace(changes(topic("new")), unchanged=seen))
    assert caught.value.found == TopicState(base("t"), 2, {"a": "1"})
    assert (await store.snapshot(A)).version == 1
    assert await names(store) == []
