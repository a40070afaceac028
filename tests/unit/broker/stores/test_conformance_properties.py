"""Every store: properties are kept with topics, and topics are found by properties."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from string import printable
from typing import TYPE_CHECKING

import pytest

from broker.stores.changes import TopicChanges
from broker.stores.property_rows import PropertyRows
from broker.topics.properties import MAX_PROPERTY_BYTES, check_properties
from broker.topics.rules import MAX_PARTITIONS, partition_names
from proto.names import TopicName
from tests.support.stores.topic_stores import (
    ALL,
    NON_PERSISTENT,
    A,
    base,
    changes,
    selected,
    topic,
    with_properties,
)

if TYPE_CHECKING:
    from broker.stores.store import MetadataStore

ODD_TEXTS = ["' OR '1'='1", "x'; DROP TABLE properties; --", "a\0b", "$1 ?1 %s", "\U0001f600", ""]
MANY = 1_500
"""More changes than the feed reports singly: databases store them in bulk."""


async def test_each_mode_selects_its_own_domain(store: MetadataStore) -> None:
    other = topic("n", domain="non-persistent")
    hidden = topic("__change_events")
    rows = {name: {"k": "v"} for name in (topic("p"), other, hidden)}
    await store.apply(A, with_properties(rows))
    assert await selected(store, k="v") == [topic("p")]
    assert await selected(store, NON_PERSISTENT, k="v") == [other]
    assert await selected(store, ALL, k="v") == [other, topic("p")]


async def test_selected_names_are_in_javas_order(store: MetadataStore) -> None:
    ordered = [topic(name) for name in ("a", "\u00e9", "\U0001f600", "\uff5e")]
    await store.apply(A, with_properties({name: {"k": "v"} for name in reversed(ordered)}))
    assert await selected(store, k="v") == ordered


async def test_the_largest_allowed_properties_are_stored_for_a_partition(
    store: MetadataStore,
) -> None:
    # As large as a partitioned topic's properties may be, and nearly incompressible
    room = MAX_PROPERTY_BYTES - len(base("p")) - len("k")
    largest = {"k": "".join(Random(1).choices(printable, k=room))}
    check_properties(base("p"), largest)
    partition = partition_names(TopicName.parse(base("p")), range(MAX_PARTITIONS))[-1]
    await store.apply(A, with_properties({partition: largest}))
    assert await store.properties(A, partition.decode()) == largest


async def test_the_properties_of_a_topic_are_read_back(store: MetadataStore) -> None:
    await store.apply(A, with_properties({topic("a"): {"k": "v", "b": ""}, topic("b"): {}}))
    assert await store.properties(A, base("a")) == {"b": "", "k": "v"}
    assert await store.properties(A, base("b")) == {}
    assert await store.properties(A, base("none")) == {}


async def test_a_partitioned_topic_has_properties_but_is_never_selected(
    store: MetadataStore,
) -> None:
    made = changes(topic("p-partition-0"), p=1)
    rows = {topic("p"): {"k": "v"}, topic("p-partition-0"): {"part": "0"}}
    await store.apply(A, replace(made, properties=PropertyRows.from_mappings(rows)))
    assert await store.properties(A, base("p")) == {"k": "v"}
    assert await selected(store, k="v") == []
    assert await selected(store, part="0") == [topic("p-partition-0")]


async def test_a_topic_with_the_name_of_a_partitioned_topic_is_selected(
    store: MetadataStore,
) -> None:
    await store.apply(A, replace(with_properties({topic("p"): {"k": "v"}}), partitioned={}))
    await store.apply(A, changes(p=1))
    assert await selected(store, k="v") == [topic("p")]


async def test_a_removed_topic_or_partition_count_loses_its_properties(
    store: MetadataStore,
) -> None:
    rows = {topic(name): {"k": "v"} for name in ("a", "b", "p")}
    made = changes(topic("a"), topic("b"), p=1)
    await store.apply(A, replace(made, properties=PropertyRows.from_mappings(rows)))
    await store.apply(A, changes(removed=(topic("a"),), p=0))
    await store.apply(A, changes(topic("a"), p=1))
    assert await store.properties(A, base("a")) == {}
    assert await store.properties(A, base("p")) == {}
    assert await selected(store, k="v") == [topic("b")]


async def test_properties_of_missing_topics_are_not_stored(store: MetadataStore) -> None:
    await store.apply(A, changes(topic("there")))
    rows = PropertyRows.from_mappings(
        {topic(name): {"k": name} for name in ("there", "gone", "none")}
    )
    await store.apply(A, TopicChanges([topic("gone")], removed=[topic("gone")], properties=rows))
    await store.apply(A, changes(topic("none"), topic("gone")))
    assert await store.properties(A, base("there")) == {"k": "there"}
    assert await store.properties(A, base("none")) == {}
    assert await store.properties(A, base("gone")) == {}
    assert await selected(store, k="none") == await selected(store, k="gone") == []


async def test_properties_change_without_a_change_of_names(store: MetadataStore) -> None:
    await store.apply(A, with_properties({topic("a"): {"k": "v"}}))
    feed = store.changes()
    rows = PropertyRows.from_mappings({topic("a"): {"l": "w"}})
    version = await store.apply(A, TopicChanges(properties=rows, present=[base("a")]))
    feed.close()
    told = [(one.version, one.added, one.removed, one.complete) async for one in feed]
    assert [(v, [*added], [*removed], whole) for v, added, removed, whole in told] == [
        (version, [], [], True)
    ]
    assert await store.properties(A, base("a")) == {"l": "w"}
    assert await selected(store, k="v") == []


@pytest.mark.parametrize("text", ODD_TEXTS)
async def test_property_texts_are_never_interpreted_as_sql(text: str, store: MetadataStore) -> None:
    name = topic(f"odd {text}")
    await store.apply(A, with_properties({name: {text: text}, topic("b"): {"k": "v"}}))
    assert await selected(store, **{text: text}) == [name]
    assert await selected(store, **{text: "v"}) == []
    assert await selected(store, k=text) == []
    assert await store.properties(A, name.decode()) == {text: text}
    assert await selected(store, k="v") == [topic("b")]


async def test_a_lone_surrogate_matches_no_property(store: MetadataStore) -> None:
    await store.apply(A, with_properties({topic("a"): {"k": "v"}}))
    assert await selected(store, k="\ud83d") == []


async def test_properties_of_many_topics_are_added_replaced_and_removed(
    store: MetadataStore,
) -> None:
    many = [topic(f"t{n:04d}") for n in range(MANY)]
    rows = {name: {"third": str(n % 3), "all": "x"} for n, name in enumerate(many)}
    await store.apply(A, with_properties(rows))
    await store.apply(A, with_properties({name: {"all": "y"} for name in many[:300]}))
    await store.apply(A, TopicChanges(removed=many[600:]))
    assert await selected(store, third="0", all="x") == many[300:600:3]
    assert await selected(store, all="y") == many[:300]
    assert await selected(store, third="1") == many[301:600:3]


async def test_a_selection_may_have_many_conditions(store: MetadataStore) -> None:
    keys = {f"k{n}": str(n) for n in range(50)}
    await store.apply(A, with_properties({topic("a"): keys, topic("b"): {"k1": "1"}}))
    assert await selected(store, **keys) == [topic("a")]
    assert await selected(store, **{**keys, "k49": "0"}) == []
