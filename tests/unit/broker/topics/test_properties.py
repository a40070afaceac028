"""Concurrent changes of a topic keep each other's results."""

import asyncio
from collections.abc import Mapping

import pytest

from broker.errors import RefusedError
from broker.stores.changes import TopicChanges
from broker.stores.conditions import is_large
from broker.stores.memory import MemoryStore
from broker.stores.store import MetadataStore
from broker.topics.properties import TopicProperties
from broker.topics.rules import PARTITIONS_PER_CHANGE, TopicRules, in_changes, partition_names
from broker.topics.service import TopicService
from proto.names import NamespaceName, TopicName
from tests.support.stores.overtaken import before_change

NAMESPACE = NamespaceName.parse("tenant/a")
TOPIC = TopicName.parse("persistent://tenant/a/p")
GROWN = 4
OVERTAKEN = 6


class Broker:
    """A broker's changes of topics; several brokers may share a store."""

    def __init__(self, store: MetadataStore) -> None:
        self.service = TopicService(store, lambda _: TopicRules())
        self.properties = TopicProperties(store)


async def made(partitions: int) -> tuple[MemoryStore, Broker, Broker]:
    """Return a store with a topic, partitioned or not, and two brokers that change the topic."""
    store = MemoryStore()
    one, other = Broker(store), Broker(store)
    await store.create_namespace(NAMESPACE)
    if partitions:
        await one.service.create_partitioned(TOPIC, partitions, {"old": "1"})
    else:
        await one.service.create(TOPIC, {"old": "1"})
    return store, one, other


async def carried(store: MemoryStore) -> list[Mapping[str, str]]:
    """Return the distinct properties of the topic and the partitions."""
    snapshot = await store.snapshot(NAMESPACE)
    names = [str(TOPIC), *(name.decode() for name in snapshot.persistent.names())]
    assert len(names) == 1 + max(1, snapshot.partitioned.get(str(TOPIC), 0))
    found = [await store.properties(NAMESPACE, name) for name in names]
    return [one for place, one in enumerate(found) if one not in found[:place]]


@pytest.mark.parametrize("partitions", [0, 2])
async def test_property_updates_of_two_brokers_are_both_kept(partitions: int) -> None:
    store, one, other = await made(partitions)
    before_change(store, 1, lambda: other.properties.update(TOPIC, {"b": "2", "old": "3"}))
    await one.properties.update(TOPIC, {"a": "1"})
    assert await carried(store) == [{"old": "3", "b": "2", "a": "1"}]


async def test_a_property_removed_by_another_broker_meanwhile_is_not_restored() -> None:
    store, one, other = await made(2)
    before_change(store, 1, lambda: other.properties.remove(TOPIC, "old"))
    await one.properties.update(TOPIC, {"a": "1"})
    assert await carried(store) == [{"a": "1"}]


async def test_partitions_added_during_an_update_have_the_updated_properties() -> None:
    store, one, other = await made(2)
    before_change(store, 1, lambda: other.service.grow(TOPIC, GROWN))
    await one.properties.update(TOPIC, {"a": "1"})
    assert await carried(store) == [{"old": "1", "a": "1"}]


async def test_added_partitions_have_the_properties_updated_meanwhile() -> None:
    store, one, other = await made(2)
    before_change(store, 1, lambda: other.properties.update(TOPIC, {"a": "1"}))
    await one.service.grow(TOPIC, GROWN)
    assert await carried(store) == [{"old": "1", "a": "1"}]


@pytest.mark.parametrize("work", ["create", "grow", "update"])
@pytest.mark.parametrize("change", [2, 3])
async def test_properties_changed_between_parts_of_a_change_reach_all_partitions(
    work: str, change: int
) -> None:
    store, one, other = await made(2)
    many = 2 * PARTITIONS_PER_CHANGE
    if work == "create":
        await one.service.delete_partitioned(TOPIC)
    if work == "update":
        await one.service.grow(TOPIC, many)
    before_change(store, change, lambda: other.properties.update(TOPIC, {"a": "1"}))
    if work == "create":
        await one.service.create_partitioned(TOPIC, many, {"old": "1"})
    elif work == "grow":
        await one.service.grow(TOPIC, many)
    else:
        await one.properties.update(TOPIC, {"b": "2"})
    more = {"b": "2"} if work == "update" else {}
    assert await carried(store) == [{"old": "1", "a": "1"} | more]


async def test_growth_is_refused_when_the_topic_was_recreated_meanwhile() -> None:
    store, one, other = await made(2)

    async def made_anew() -> None:
        await other.service.delete_partitioned(TOPIC)
        await other.service.create_partitioned(TOPIC, 1, {})

    before_change(store, 2, made_anew)
    with pytest.raises(RefusedError, match="is being changed concurrently"):
        await one.service.grow(TOPIC, 2 * PARTITIONS_PER_CHANGE)
    assert await carried(store) == [{}]


def overtake_again_and_again(store: MetadataStore, other: Broker, change: int) -> None:
    """Make a second broker update the topic before every attempt of a change."""
    left = OVERTAKEN

    async def overtake() -> None:
        nonlocal left
        left -= 1
        await other.properties.update(TOPIC, {"left": str(left)})
        if left:
            before_change(store, 1, overtake)

    before_change(store, change, overtake)


@pytest.mark.parametrize("partitions", [0, 2 * PARTITIONS_PER_CHANGE])
async def test_a_repeatedly_overtaken_property_update_is_applied(partitions: int) -> None:
    store, one, other = await made(partitions)
    overtake_again_and_again(store, other, 1)
    await one.properties.update(TOPIC, {"a": "1"})
    assert await carried(store) == [{"old": "1", "left": "0", "a": "1"}]


@pytest.mark.parametrize("change", [1, 2])
async def test_a_repeatedly_overtaken_growth_is_applied(change: int) -> None:
    store, one, other = await made(2)
    overtake_again_and_again(store, other, change)
    await one.service.grow(TOPIC, 2 * PARTITIONS_PER_CHANGE)
    assert (await store.snapshot(NAMESPACE)).partitioned[str(TOPIC)] == 2 * PARTITIONS_PER_CHANGE
    assert await carried(store) == [{"old": "1", "left": "0"}]


async def test_updates_of_different_topics_do_not_wait_for_each_other() -> None:
    # An update that does not end yet
    store, one, _ = await made(2)
    other, ends, waits = TopicName.parse(f"{TOPIC}2"), asyncio.Event(), asyncio.Event()
    await one.service.create(other, {})

    async def wait() -> None:
        waits.set()
        await ends.wait()

    before_change(store, 1, wait)
    first = asyncio.create_task(one.properties.update(TOPIC, {"a": "1"}))
    await waits.wait()
    await one.properties.update(other, {"b": "2"})
    assert not first.done()
    assert await one.properties.of(other) == {"b": "2"}
    ends.set()
    await first


def test_each_part_of_many_partitions_counts_as_a_large_change() -> None:
    parts = in_changes(range(2 * PARTITIONS_PER_CHANGE))
    assert all(is_large(TopicChanges(partition_names(TOPIC, part))) for part in parts)


async def test_simultaneous_updates_by_the_same_broker_are_all_applied() -> None:
    # Given a slow store, such as a database
    store, one, _ = await made(0)
    apply = store.apply

    async def applied_later(namespace: NamespaceName, changes: TopicChanges) -> int:
        await asyncio.sleep(0)
        return await apply(namespace, changes)

    store.apply = applied_later
    # When more updates than there are retries begin simultaneously
    await asyncio.gather(*[one.properties.update(TOPIC, {f"k{n}": "v"}) for n in range(20)])
    assert len(await store.properties(NAMESPACE, str(TOPIC))) == 21
