"""Conformance tests of topic stores."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.stores.changes import MAX_TOLD_NAMES, NamespaceNotEmptyError
from broker.stores.conditions import MANY_NAMES
from proto.names import NamespaceName, TopicName
from proto.topic_hash import topics_hash
from tests.support.clocks.settle import started
from tests.support.stores.topic_stores import (
    ALL,
    MODES,
    NON_PERSISTENT,
    PERSISTENT,
    A,
    B,
    base,
    changes,
    names,
    selected,
    topic,
    with_properties,
)

if TYPE_CHECKING:
    from broker.stores.store import MetadataStore
    from tests.unit.broker.stores.conftest import OpenStore


async def test_a_namespace_that_does_not_exist_has_no_snapshot(store: MetadataStore) -> None:
    assert await store.snapshot(A) is None
    assert await store.namespaces() == []


async def test_a_created_namespace_is_empty_and_created_once(store: MetadataStore) -> None:
    first, second = await store.create_namespace(A), await store.create_namespace(A)
    assert (first, second) == (True, False)
    snapshot = await store.snapshot(A)
    assert snapshot is not None
    assert snapshot.version == 0
    assert await names(store) == []
    assert await store.snapshot(B) is None


async def test_namespaces_are_listed_in_order(store: MetadataStore) -> None:
    await store.apply(B, changes(topic("x", B)))
    await store.create_namespace(A)
    assert await store.namespaces() == [A, B]


async def test_each_change_increments_the_version_of_its_namespace(store: MetadataStore) -> None:
    await store.create_namespace(A)
    versions = [await store.apply(A, changes(topic(f"t{n}"))) for n in range(3)]
    other = await store.apply(B, changes(topic("x", B)))
    assert versions == [1, 2, 3]
    assert other == 1
    assert (await store.snapshot(A)).version == 3


async def test_a_change_adds_and_removes_names_together(store: MetadataStore) -> None:
    await store.apply(A, changes(topic("b"), topic("a"), topic("c")))
    await store.apply(A, changes(topic("d"), removed=(topic("a"), topic("not-there"))))
    expected = [topic(name).decode() for name in "bcd"]
    assert await names(store) == expected
    assert (await store.snapshot(A)).listing(PERSISTENT).hash == topics_hash(expected)


async def test_adding_an_existing_name_changes_no_name(store: MetadataStore) -> None:
    await store.apply(A, changes(topic("a")))
    version = await store.apply(A, changes(topic("a"), topic("a")))
    assert await names(store) == [topic("a").decode()]
    assert version == 2


@pytest.mark.parametrize("name", ["plain", "__change_events"])
async def test_a_name_both_added_and_removed_is_absent(name: str, store: MetadataStore) -> None:
    await store.apply(A, changes(topic(name), removed=(topic(name),)))
    snapshot = await store.snapshot(A)
    assert not snapshot.contains(TopicName.parse(topic(name).decode()))


async def test_readers_see_only_the_old_or_the_new_version(store: MetadataStore) -> None:
    many = [topic(f"t{n:04d}") for n in range(2_000)]
    done = asyncio.Event()
    seen: set[int] = set()

    async def poll() -> None:
        while not done.is_set():
            seen.add(len(await names(store)))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(poll())
        await asyncio.sleep(0)
        await store.apply(A, changes(*many))
        await store.apply(A, changes(removed=tuple(many[:1_000])))
        await asyncio.sleep(0)
        done.set()
    assert seen <= {0, 2_000, 1_000}


async def test_an_old_snapshot_stays_valid_after_a_change(store: MetadataStore) -> None:
    await store.apply(A, changes(*(topic(f"t{n:04d}") for n in range(3_000))))
    old = await store.snapshot(A)
    before = list(old.listing(ALL).names())
    await store.apply(A, changes(topic("new"), removed=(topic("t0001"),)))
    assert list(old.listing(ALL).names()) == before
    assert old.version == 1
    assert await names(store) != before


async def test_concurrent_changes_are_all_applied(store: MetadataStore) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(store.apply(A, changes(topic(f"t{n}")))) for n in range(8)]
    assert sorted(task.result() for task in tasks) == list(range(1, 9))
    assert await names(store) == [topic(f"t{n}").decode() for n in range(8)]


async def test_a_change_of_a_cancelled_caller_is_applied_whole_or_not_at_all(
    store: MetadataStore,
) -> None:
    await store.apply(A, changes(topic("first")))
    feed = store.changes()
    leaving = asyncio.get_running_loop().create_task(store.apply(A, changes(topic("left"))))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    version = await store.apply(A, changes(topic("second")))
    feed.close()
    told = [(change.version, list(change.added)) async for change in feed]
    listed = await names(store)
    applied = topic("left").decode() in listed
    assert version == (3 if applied else 2)
    assert told[-1] == (version, [topic("second")])
    assert len(told) == (2 if applied else 1)
    assert len(listed) == version


async def test_the_feed_reports_every_change_in_order(store: MetadataStore) -> None:
    await store.apply(A, changes(topic("before")))
    feed = store.changes()
    await store.apply(A, changes(topic("x")))
    await store.apply(B, changes(topic("y", B)))
    await store.apply(A, changes(removed=(topic("x"),)))
    feed.close()
    told = [
        (change.namespace, change.version, list(change.added), list(change.removed))
        async for change in feed
    ]
    assert told == [
        (A, 2, [topic("x")], []),
        (B, 1, [topic("y", B)], []),
        (A, 3, [], [topic("x")]),
    ]


async def test_closing_the_store_ends_its_feeds(open_store: OpenStore) -> None:
    async with open_store() as store:
        feed = store.changes()
        reader = asyncio.get_running_loop().create_task(anext(feed, None))
        await asyncio.sleep(0)
    assert await reader is None


async def test_system_topics_exist_but_are_not_listed(store: MetadataStore) -> None:
    hidden = [topic("__change_events"), topic("__change_events-partition-0")]
    await store.apply(A, changes(topic("user"), *hidden))
    snapshot = await store.snapshot(A)
    for mode in MODES:
        assert not set(hidden) & {name.encode() for name in snapshot.listing(mode).names()}
    assert snapshot.contains(TopicName.parse(hidden[0].decode()))
    await store.apply(A, changes(removed=tuple(hidden)))
    assert not (await store.snapshot(A)).contains(TopicName.parse(hidden[0].decode()))


async def test_each_mode_lists_its_own_domain(store: MetadataStore) -> None:
    other = topic("n", domain="non-persistent")
    await store.apply(A, changes(topic("p"), other))
    assert await names(store, mode=PERSISTENT) == [topic("p").decode()]
    assert await names(store, mode=NON_PERSISTENT) == [other.decode()]
    assert await names(store, mode=ALL) == [other.decode(), topic("p").decode()]


async def test_partition_counts_are_set_changed_and_removed(store: MetadataStore) -> None:
    await store.apply(A, changes(one=1, three=3))
    await store.apply(A, changes(three=5, one=0))
    snapshot = await store.snapshot(A)
    assert dict(snapshot.partitioned) == {topic("three").decode(): 5}
    assert snapshot.contains(TopicName.parse(topic("three").decode()))
    assert not snapshot.contains(TopicName.parse(topic("one").decode()))


async def test_topics_are_selected_by_all_wanted_properties(store: MetadataStore) -> None:
    await store.apply(
        A,
        with_properties(
            {
                topic("b"): {"team": "x", "stage": "prod"},
                topic("a"): {"team": "x"},
                topic("c"): {"team": "y", "stage": "prod"},
                topic("d"): {"team": "x", "stage": "test"},
                topic("none"): {},
                topic("__change_events"): {"team": "x"},
                topic("n", domain="non-persistent"): {"team": "x"},
            }
        ),
    )
    assert await selected(store, team="x") == [topic("a"), topic("b"), topic("d")]
    assert await selected(store, team="x", stage="prod") == [topic("b")]
    assert await selected(store, team="y", stage="test") == []
    assert await selected(store, team="z") == []
    assert await selected(store, unknown="x") == []
    everything = [topic(name) for name in ("a", "b", "c", "d", "none")]
    assert await selected(store) == everything


async def test_a_removed_topic_is_no_longer_selected(store: MetadataStore) -> None:
    await store.apply(A, with_properties({topic("a"): {"k": "v"}, topic("b"): {"k": "v"}}))
    await store.apply(A, changes(removed=(topic("a"),)))
    assert await selected(store, k="v") == [topic("b")]


async def test_new_properties_replace_all_properties_of_a_topic(store: MetadataStore) -> None:
    await store.apply(A, with_properties({topic("a"): {"k": "v", "old": "1"}}))
    await store.apply(A, with_properties({topic("a"): {"k": "w"}}))
    assert await selected(store, k="w") == [topic("a")]
    assert await selected(store, k="v") == []
    assert await selected(store, old="1") == []


async def test_a_selection_in_a_missing_namespace_is_empty(store: MetadataStore) -> None:
    assert await selected(store, k="v") == []
    assert await selected(store) == []


async def test_the_known_size_equals_the_estimate_of_the_listing(store: MetadataStore) -> None:
    await store.apply(A, changes(topic("p"), topic("n", domain="non-persistent")))
    snapshot = await store.snapshot(A)
    for mode in MODES:
        known = store.estimated_bytes(A, mode)
        assert known == snapshot.listing(mode).estimated_bytes


async def test_an_immediate_listing_is_the_newest_listing(store: MetadataStore) -> None:
    for name in ("a", "b"):
        await store.apply(A, changes(topic(name)))
        snapshot = await store.snapshot(A)
        for mode in MODES:
            listing = store.listing_at_once(A, mode)
            assert listing is snapshot.listing(mode)


async def test_an_unknown_namespace_has_no_topics_in_an_immediate_listing(
    store: MetadataStore,
) -> None:
    listing = store.listing_at_once(A, MODES[0])
    assert listing is None or len(listing) == 0


async def test_a_store_may_be_closed_twice(store: MetadataStore) -> None:
    await store.close()


@pytest.mark.parametrize("open_store", ["sqlite", "postgresql"], indirect=True)
async def test_all_data_of_a_namespace_survives_reopening(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.create_namespace(NamespaceName.parse("tenant/empty"))
        await store.apply(A, changes(topic("a"), topic("__change_events"), part=3))
        await store.apply(A, with_properties({topic("b"): {"k": "v"}}))
        before = await store.snapshot(A)
    async with open_store() as store:
        after = await store.snapshot(A)
        assert after.version == before.version == 2
        assert after.listing(PERSISTENT).hash == before.listing(PERSISTENT).hash
        assert after.system == before.system
        assert dict(after.partitioned) == {base("part"): 3}
        assert list((await store.select(A, PERSISTENT, {"k": "v"})).names()) == [base("b")]
        assert await store.properties(A, base("b")) == {"k": "v"}
        assert [str(name) for name in await store.namespaces()] == ["tenant/a", "tenant/empty"]
        assert await store.apply(A, changes(topic("c"))) == 3


async def test_the_feed_reports_only_names_really_added_or_removed(store: MetadataStore) -> None:
    await store.apply(A, changes(topic("a"), topic("b"), topic("__change_events")))
    feed = store.changes()
    gone = (topic("b"), topic("none"), topic("both"), topic("b"))
    new = [topic(name) for name in ("d", "a", "c", "d", "both", "__change_events")]
    await store.apply(A, changes(*new, removed=gone))
    await store.apply(A, changes(topic("a"), removed=(topic("none"),)))
    feed.close()
    told = [(list(one.added), list(one.removed), one.complete) async for one in feed]
    assert told == [([topic("d"), topic("c")], [topic("b")], True), ([], [], True)]


async def test_the_feed_reports_a_change_of_many_names_without_the_names(
    store: MetadataStore,
) -> None:
    feed = store.changes()
    most = [topic(f"t{number:04d}") for number in range(MAX_TOLD_NAMES)]
    await store.apply(A, changes(*most))
    await store.apply(A, changes(topic("new"), removed=tuple(most)))
    feed.close()
    told = [(one.version, len(one.added), len(one.removed), one.complete) async for one in feed]
    assert told == [(1, MAX_TOLD_NAMES, 0, True), (2, 0, 0, False)]


async def test_a_namespace_created_simultaneously_with_its_first_topics_exists_once(
    store: MetadataStore,
) -> None:
    done = await asyncio.gather(
        *(store.apply(A, changes(topic(name))) for name in "ab"),
        *(store.create_namespace(A) for _ in range(3)),
    )
    assert sorted(done[:2]) == [1, 2]
    assert sum(done[2:]) <= 1
    assert await store.namespaces() == [A]


async def test_large_and_small_changes_are_applied_in_order(store: MetadataStore) -> None:
    many = [topic(f"t{number:04d}") for number in range(MANY_NAMES + 1)]
    first = await started(store.apply(A, changes(*many)))
    done = await asyncio.gather(
        first,
        store.apply(A, changes(topic("small"), removed=tuple(many[:1]))),
        store.create_namespace(A),
        store.delete_namespace(A),
        return_exceptions=True,
    )
    assert done[:2] == [1, 2]
    assert done[2] is False
    assert isinstance(done[3], NamespaceNotEmptyError)
    snapshot = await store.snapshot(A)
    assert snapshot.version == 2
    assert len(snapshot.persistent) == len(many)
    assert not snapshot.holds(many[0])
