"""Changes of many namespaces in one call: results and reports of every store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.stores.changes import TopicChanges
from broker.stores.conditions import MANY_NAMES
from broker.stores.property_rows import PropertyRows, row_texts
from proto.names import NamespaceName
from tests.support.clocks.settle import started
from tests.support.stores.topic_stores import A, B, base, changes, names, selected, topic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.stores.changes import NamespaceChanges
    from broker.stores.store import MetadataStore

MANY = [NamespaceName("tenant", f"n{number:03d}") for number in range(300)]


def addition(*added: bytes, **counts: int) -> TopicChanges:
    return TopicChanges(added, (), {base(one): n for one, n in counts.items()}, adds_only=True)


def described(namespace: NamespaceName, rows: Mapping[str, Mapping[str, str]]) -> NamespaceChanges:
    """Return topics with properties, as imported."""
    topics = [topic(name, namespace) for name in rows]
    column = PropertyRows.from_mappings(dict(zip(topics, rows.values(), strict=True))).column
    properties = PropertyRows(topics, column, row_texts(column))
    return namespace, TopicChanges(topics, (), {}, properties, adds_only=True)


async def test_many_namespaces_are_created_with_their_topics_counts_and_properties(
    store: MetadataStore,
) -> None:
    some = [(one, TopicChanges([topic("x", one)], adds_only=True)) for one in MANY]
    parted = (A, addition(topic("p-partition-0"), topic("p-partition-1"), topic("q"), p=2, q=4))
    await store.apply_all([*some, parted, described(B, {"b": {"k": "v"}, "a": {}})])
    assert await store.namespaces() == [A, B, *MANY]
    assert list(await store.tenants()) == ["tenant"]
    assert [await names(store, one) for one in MANY] == [[f"persistent://{one}/x"] for one in MANY]
    snapshot = await store.snapshot(A)
    assert (snapshot.version, dict(snapshot.partitioned)) == (1, {base("p"): 2})
    assert await store.policies(MANY[0]) is not None
    assert await store.properties(B, topic("b", B).decode()) == {"k": "v"}


async def test_a_batch_extends_existing_namespaces_and_creates_missing_namespaces(
    store: MetadataStore,
) -> None:
    await store.apply(A, changes(topic("a")))
    await store.apply_all([(A, addition(topic("a"), topic("c"))), (B, addition(topic("b", B)))])
    assert await names(store) == [base("a"), base("c")]
    assert await names(store, B) == [topic("b", B).decode()]
    assert [await store.version(one) for one in (A, B)] == [2, 1]


async def test_the_feed_reports_each_namespace_of_a_batch_separately(store: MetadataStore) -> None:
    many = [topic(f"t{number}") for number in range(MANY_NAMES + 1)]
    feed = store.changes()
    # A search ran before the property existed.
    assert await store.snapshot(B) is None
    large = NamespaceName("tenant", "large")
    some = [(one, TopicChanges([topic("x", one), topic("x", one)])) for one in MANY[:3]]
    await store.apply_all([(large, addition(*many)), (B, addition(topic("b", B))), *some])
    feed.close()
    told = {one.namespace: (one.version, one.complete, one.added) async for one in feed}
    assert told.pop(large) == (1, False, ())
    assert told == {
        one: (1, True, [topic("b" if one == B else "x", one)]) for one in (B, *MANY[:3])
    }


async def test_a_namespace_recreated_in_a_batch_continues_its_versions(
    store: MetadataStore,
) -> None:
    await store.apply(A, changes(topic("a")))
    await store.apply(A, changes(removed=(topic("a"),)))
    await store.delete_namespace(A)
    await store.apply_all([(A, addition(topic("b"))), (B, addition(topic("b", B)))])
    assert await store.version(A) > 3


async def test_concurrent_batches_and_changes_are_all_applied_in_order(
    store: MetadataStore,
) -> None:
    feed = store.changes()
    together = await started(
        store.apply_all([(one, addition(topic("x", one))) for one in (*MANY, A)])
    )
    await asyncio.gather(
        together,
        store.apply(A, changes(topic("y"))),
        store.apply_all([(A, addition(topic("z"))), (MANY[0], addition(topic("z", MANY[0])))]),
    )
    feed.close()
    assert await names(store) == [base("x"), base("y"), base("z")]
    assert len(await names(store, MANY[0])) == 2
    versions: dict[NamespaceName, list[int]] = {}
    async for one in feed:
        versions.setdefault(one.namespace, []).append(one.version)
    assert (versions[A], versions[MANY[0]]) == ([1, 2, 3], [1, 2])


async def test_topics_added_with_properties_are_selected_by_their_properties(
    store: MetadataStore,
) -> None:
    rows = {"c": {"team": "red", "tier": "1"}, "a": {"team": "red"}, "b": {}}
    await store.apply_all([described(A, rows)])
    assert await selected(store, team="red") == [topic("a"), topic("c")]
    assert await selected(store, team="red", tier="1") == [topic("c")]
    assert await selected(store, team="blue") == []
    assert await store.properties(A, base("c")) == rows["c"]
    assert await store.properties(A, base("none")) == {}
    await store.apply(A, changes(topic("d"), removed=(topic("a"),)))
    assert await selected(store, team="red") == [topic("c")]
    assert await store.properties(A, base("c")) == rows["c"]
