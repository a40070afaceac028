"""Listings come from the store, or from the plug-in, shared by identical requests."""

from __future__ import annotations

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from broker.configuration.config import BrokerConfig
from broker.configuration.plugin_keys import PropertyBounds, TooManyPropertiesError
from broker.listing.lister import TopicLister, open_lister
from broker.plugins.calls import ResourceCalls, ResourcesError
from broker.plugins.plugin import BrokerContext
from broker.property_index import PropertyIndex
from broker.stores.changes import TopicChanges
from broker.stores.memory import MemoryStore
from broker.stores.property_rows import PropertyRows
from broker.topic_lists.sequence import TopicListing
from limiter.clock import LoopClock
from proto.names import NamespaceName
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
from tests.unit.broker.plugins.plug_ins import Scripted

NAMESPACE = NamespaceName.parse("tenant/ns")
OTHER = NamespaceName.parse("tenant/other")
MODE = pb.CommandGetTopicsOfNamespace
A, B = b"persistent://tenant/ns/a", b"persistent://tenant/ns/b"
SOME = {"team": "x"}


class Setup:
    def __init__(self) -> None:
        self.store = MemoryStore()
        self.plug_in = Scripted()
        calls = ResourceCalls(self.plug_in, "m:C", 30.0, ManualClock())
        self.lister = TopicLister(self.store, calls)

    async def filled(self) -> Setup:
        await self.store.apply(NAMESPACE, TopicChanges([A, B]))
        return self

    async def asking(
        self, properties: dict[str, str], namespace: NamespaceName = NAMESPACE, mode: int = 0
    ) -> asyncio.Task[TopicListing]:
        return await started(self.lister.list_topics(namespace, mode, properties))


async def test_a_listing_without_properties_does_not_call_the_plug_in() -> None:
    setup = await Setup().filled()
    listing = await setup.lister.list_topics(NAMESPACE, MODE.PERSISTENT, {})
    missing = await setup.lister.list_topics(OTHER, MODE.ALL)
    assert [name.encode() for name in listing.names()] == [A, B]
    assert len(missing) == 0
    assert setup.plug_in.asked == []


async def test_unused_non_persistent_topics_are_not_listed_where_usage_is_known() -> None:
    setup = await Setup().filled()
    unused, used = b"non-persistent://tenant/ns/a", b"non-persistent://tenant/ns/b"
    await setup.store.apply(NAMESPACE, TopicChanges([unused, used]))
    setup.lister.in_use = lambda _: [used]
    listed = {
        mode: [name.encode() for name in (await setup.lister.list_topics(NAMESPACE, mode)).names()]
        for mode in (MODE.PERSISTENT, MODE.NON_PERSISTENT, MODE.ALL)
    }
    assert listed == {
        MODE.PERSISTENT: [A, B],
        MODE.NON_PERSISTENT: [used],
        MODE.ALL: [used, A, B],
    }


async def test_a_listing_with_properties_comes_from_the_plug_in() -> None:
    setup = await Setup().filled()
    setup.plug_in.answer = [B.decode()]
    listing = await setup.lister.list_topics(NAMESPACE, MODE.PERSISTENT, SOME)
    assert [name.encode() for name in listing.names()] == [B]


async def test_identical_simultaneous_requests_share_a_plug_in_call() -> None:
    setup = await Setup().filled()
    setup.plug_in.go_on.clear()
    same = [await setup.asking({"a": "1", "b": "2"}), await setup.asking({"b": "2", "a": "1"})]
    setup.plug_in.go_on.set()
    first, second = await asyncio.gather(*same)
    assert first is second
    assert len(setup.plug_in.asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"properties": {"a": "1|b=2"}},
        {"properties": {"a": "1"}},
        {"properties": {"a": "2", "b": "1"}},
        {"properties": {"a": "1", "b": "2"}, "mode": 2},
        {"properties": {"a": "1", "b": "2"}, "namespace": OTHER},
    ],
    ids=str,
)
async def test_requests_that_differ_do_not_share_a_plug_in_call(other: dict) -> None:
    setup = await Setup().filled()
    setup.plug_in.go_on.clear()
    await setup.asking({"a": "1", "b": "2"})
    await setup.asking(**other)
    assert len(setup.plug_in.asked) == 2
    setup.plug_in.go_on.set()


async def test_a_request_after_a_change_does_not_join_a_call_from_before_the_change() -> None:
    setup = await Setup().filled()
    setup.plug_in.go_on.clear()
    before = await setup.asking(SOME)
    await setup.store.apply(NAMESPACE, TopicChanges(removed=[A]))
    after = await setup.asking(SOME)
    joined = await setup.asking(SOME)
    assert len(setup.plug_in.asked) == 2
    setup.plug_in.go_on.set()
    await asyncio.gather(before, after, joined)
    assert joined.result() is after.result()
    assert before.result() is not after.result()


async def test_a_change_of_another_namespace_does_not_separate_shared_requests() -> None:
    setup = await Setup().filled()
    setup.plug_in.go_on.clear()
    await setup.asking(SOME)
    await setup.store.apply(OTHER, TopicChanges([b"persistent://tenant/other/a"]))
    await setup.asking(SOME)
    assert len(setup.plug_in.asked) == 1
    setup.plug_in.go_on.set()


async def test_a_cancelled_request_does_not_cancel_the_shared_plug_in_call() -> None:
    setup = await Setup().filled()
    setup.plug_in.go_on.clear()
    first, second = await setup.asking(SOME), await setup.asking(SOME)
    first.cancel()
    await settle()
    setup.plug_in.go_on.set()
    assert len(await second) == 0
    assert setup.plug_in.cancelled == 0


async def test_a_plug_in_failure_is_raised_to_all_waiters_and_not_cached() -> None:
    setup = await Setup().filled()
    setup.plug_in.go_on.clear()
    setup.plug_in.answer = ValueError("broken")
    waiting = [await setup.asking(SOME) for _ in range(3)]
    setup.plug_in.go_on.set()
    told = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(error) for error in told} == {ResourcesError}
    setup.plug_in.answer = []
    assert len(await setup.lister.list_topics(NAMESPACE, 0, SOME)) == 0


async def test_the_size_of_a_plug_in_listing_is_not_known_in_advance() -> None:
    setup = await Setup().filled()
    whole = setup.store.estimated_bytes(NAMESPACE, 0)
    assert setup.lister.known_bytes(NAMESPACE, 0) == whole > 0
    assert setup.lister.known_bytes(NAMESPACE, 0, SOME) is None
    assert TopicLister(setup.store).known_bytes(NAMESPACE, 0, SOME) == whole


def request(*pairs: tuple[str, str]) -> pb.CommandGetTopicsOfNamespace:
    properties = [pb.KeyValue(key=key, value=value) for key, value in pairs]
    return MODE(request_id=1, namespace="tenant/ns", properties=properties)


def test_the_last_value_of_a_duplicate_property_key_counts() -> None:
    assert Setup().lister.properties_of(request(("k", "1"), ("j", "2"), ("k", "3"))) == {
        "k": "3",
        "j": "2",
    }


def test_the_default_plug_in_ignores_properties_and_does_not_filter() -> None:
    lister = TopicLister(MemoryStore())
    assert lister.properties_of(request(("k", "1"))) == {}
    assert not lister.filters


@pytest.mark.parametrize("lister", [Setup().lister, TopicLister(MemoryStore())], ids=["own", "def"])
def test_properties_are_bounded_with_and_without_a_filtering_plug_in(lister: TopicLister) -> None:
    lister.bounds = PropertyBounds(max_properties=2, max_bytes=10)
    lister.properties_of(request(("k", "1"), ("j", "2")))
    for beyond in ([("k", "1")] * 3, [("k", "1234567890")]):
        with pytest.raises(TooManyPropertiesError):
            lister.properties_of(request(*beyond))


async def test_the_configured_plug_in_is_used_and_closed() -> None:
    name = "tests.unit.broker.plugins.plug_ins:Scripted"
    config = BrokerConfig.from_properties({"pulsarResourcesExtendedClassName": name})
    async with open_lister(MemoryStore(), config, LoopClock()) as lister:
        assert lister.filters
        plug_in = lister.calls._resources
        assert plug_in.context.config is config
    assert plug_in.closed


async def test_a_lister_with_the_default_plug_in_does_not_filter() -> None:
    async with open_lister(MemoryStore(), BrokerConfig.from_properties({}), LoopClock()) as lister:
        assert not lister.filters


async def test_the_property_index_filters_in_the_store_without_a_snapshot() -> None:
    store = MemoryStore()
    rows = PropertyRows.from_mappings({A: {"team": "x", "stage": "p"}, B: {"team": "x"}})
    await store.apply(NAMESPACE, TopicChanges([A, B], properties=rows))
    snapshots = 0
    index = PropertyIndex()
    index.initialize(BrokerContext(store, BrokerConfig.from_properties({})))

    async def no_snapshot(_: NamespaceName) -> None:
        nonlocal snapshots
        snapshots += 1

    store.snapshot = no_snapshot
    found = [
        [
            name.encode()
            for name in (await index.list_topics_of_namespace(NAMESPACE, 0, wanted)).names()
        ]
        for wanted in (SOME, {"team": "x", "stage": "p"}, {"team": "y"}, {"host": "x"})
    ]
    assert found == [[A, B], [A], [], []]
    assert snapshots == 0
