"""Upstream's own cases of topic list watches, and a broker's additions."""

import asyncio
import gc

import pytest

import proto.PulsarApi_pb2 as pb
from broker.stores.changes import Change, StoreError, TopicChanges
from broker.watches import watcher as topic_list_watcher
from proto.names import NamespaceName
from proto.topic_hash import topics_hash
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.peers.held_broker import held_at
from tests.support.processes.cluster import Cluster, cluster, topic_names, until
from tests.support.watches.wire_watches import (
    ALPHA,
    BETA,
    GOLD,
    PROFILES,
    TOPICS,
    Client,
    change,
    close,
    watch,
    watching,
)

SHORT_WAITS = {"heap_timeout_seconds": 0.5, "direct_timeout_seconds": 0.5}


def name(text: str) -> str:
    return f"persistent://public/gold/alpha-{text}"


async def change_untold(parts: Cluster, *steps: dict[str, list[str]]) -> None:
    """Change the store while its feed is away; later it reports only a gap."""
    feeds = parts.broker.store._feeds  # type: ignore[attr-defined]
    feeds.publish = lambda _: None
    for step in steps:
        await change(parts, **step)
    del feeds.publish
    version = await parts.broker.store.version(GOLD)
    feeds.publish(Change(GOLD, version, complete=False))


async def followed(parts: Cluster, count: int) -> None:
    """Return when the broker has applied all changes, each taking some turns of the loop.

    Args:
        parts: With a single watched namespace.
        count: Number of its names after the changes.
    """
    (namespace,) = parts.broker.watches.registry._namespaces.values()
    await until(lambda: len(namespace.sets.everything) == count)
    await settle()


# -- upstream's cases -----------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_an_answered_watch_holds_no_lookup_permit_and_no_response_bytes(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        await watching(parts)
        await settle()
        broker = parts.broker
        assert (broker.lookups.pending_requests, broker.watches.totals.watchers) == (0, 1)
        assert broker.flow.totals.response_bytes == 0


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("place", ["heap", "direct"])
async def test_a_watch_retries_after_memory_timeouts_until_it_is_answered(profile, place) -> None:
    clock = ManualClock()
    async with cluster(TOPICS, profile=profile, clock=clock, broker_limits=SHORT_WAITS) as parts:
        peer = await parts.peer("broker")
        async with held_at(parts.broker, place):
            await peer.send(watch(request_id=7, watcher_id=13))
            # Two seconds of timeouts of half a second
            for _ in range(40):
                await settle()
                clock.advance(0.1)
            await until(lambda: parts.broker.watches.totals.retries >= 2)
        for _ in range(40):
            await settle()
            clock.advance(0.1)
        success = (await peer.command()).watchTopicListSuccess
        assert (success.request_id, success.watcher_id, list(success.topic)) == (7, 13, ALPHA)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_watch_whose_listing_fails_is_refused_and_not_registered(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await parts.peer("broker")

        async def broken(_: NamespaceName) -> None:
            raise StoreError("the store is down")

        parts.broker.store.snapshot = broken  # type: ignore[method-assign,assignment]
        await peer.send(watch(request_id=7))
        error = (await peer.command()).error
        assert (error.request_id, error.error) == (7, pb.MetadataError)
        assert "the store is down" in error.message
        assert parts.broker.watches.totals.watchers == 0
        assert parts.broker.lookups.pending_requests == 0


@pytest.mark.parametrize("profile", PROFILES)
async def test_closing_a_watch_removes_its_watcher_and_set(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await watching(parts)
        await peer.send(close())
        assert (await peer.command()).type == pb.BaseCommand.SUCCESS
        registry = parts.broker.watches.registry
        assert (registry.sets, parts.broker.watches.totals.watchers) == (0, 0)


@pytest.mark.parametrize("profile", PROFILES)
async def test_updates_stay_in_order_when_an_update_waits_for_memory(profile: str) -> None:
    clock = ManualClock()
    async with cluster(TOPICS, profile=profile, clock=clock, broker_limits=SHORT_WAITS) as parts:
        peer, client = await watching(parts), Client(ALPHA)
        async with held_at(parts.broker, "direct"):
            await change(parts, added=[name("x")])
            await settle()
            await change(parts, removed=[name("x")])
            await change(parts, added=[name("y")])
            for _ in range(20):
                await settle()
                clock.advance(0.1)
            assert parts.broker.watches.totals.retries >= 1
        for _ in range(20):
            await settle()
            clock.advance(0.1)
        # Every hash is the current set's
        updates = 3 if profile == "pulsar" else 2
        for _ in range(updates):
            client.apply(await peer.command())
        assert client.names == {*ALPHA, name("y")}


async def test_with_profile_pulsar_an_overflowed_watch_is_relisted_without_an_update(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Ten updates may wait
    monkeypatch.setattr(topic_list_watcher, "MAX_QUEUED_UPDATES", 10)
    async with cluster(TOPICS, profile="pulsar") as parts:
        peer, client = await watching(parts), Client(ALPHA)
        names = [name(f"{number:02d}") for number in range(99)]
        async with held_at(parts.broker, "direct"):
            for one in names:
                await change(parts, added=[one])
            await followed(parts, len(ALPHA + BETA + names))
        await settle()
        relistings = parts.broker.watches.totals.relistings
        await peer.send(watch(request_id=2))
        told = 0
        while (answer := await peer.command()).type == pb.BaseCommand.WATCH_TOPIC_UPDATE:
            told += 1
        assert (told < 20, relistings >= 1) == (True, True)
        assert set(answer.watchTopicListSuccess.topic) == {*ALPHA, *names}
        assert client.names == set(ALPHA)


async def test_changes_during_a_waiting_update_are_sent_in_a_single_update() -> None:
    async with cluster(TOPICS) as parts:
        peer, client = await watching(parts), Client(ALPHA)
        names = [name(f"{number:02d}") for number in range(99)]
        async with held_at(parts.broker, "direct"):
            await change(parts, added=names[:1])
            await settle()
            for one in names[1:]:
                await change(parts, added=[one])
            await followed(parts, len(ALPHA + BETA + names))
        # The first was under way
        client.apply(await peer.command())
        client.apply(await peer.command())
        assert client.names == {*ALPHA, *names}


async def test_with_profile_pulsar_a_failed_relisting_logs_no_error_and_keeps_the_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_list_watcher, "MAX_QUEUED_UPDATES", 2)
    async with cluster(TOPICS, profile="pulsar") as parts:
        peer = await watching(parts)
        async with held_at(parts.broker, "direct"):

            async def broken(_: NamespaceName) -> None:
                raise StoreError("the store is down")

            parts.broker.store.snapshot = broken  # type: ignore[method-assign,assignment]
            for number in range(4):
                await change(parts, added=[name(f"new-{number}")])
                await settle()
        await settle()
        gc.collect()
        # No error is logged, and the watch goes on
        assert parts.broker.watches.totals.relistings == 1
        assert (await peer.command()).type == pb.BaseCommand.WATCH_TOPIC_UPDATE


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("after", [["2", "4", "5"], ["6", "7"], []], ids=["some", "new", "none"])
async def test_changes_during_a_store_outage_are_sent_in_a_single_update(profile, after) -> None:
    before = [name(text) for text in "123"]
    async with cluster({"public/gold": before}, profile=profile) as parts:
        peer, now = await watching(parts), [name(text) for text in after]
        came, went = sorted({*now} - {*before}), sorted({*before} - {*now})
        await change_untold(parts, {"added": came}, {"removed": went})
        update = (await peer.command()).watchTopicUpdate
        assert (sorted(update.new_topics), sorted(update.deleted_topics)) == (came, went)
        assert update.topics_hash == topics_hash(now)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_store_outage_without_net_changes_sends_no_update(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await watching(parts)
        await change_untold(parts, {"added": [name("x")]}, {"removed": [name("x")]})
        await until(lambda: parts.broker.watches.totals.relistings)
        await change(parts, added=[name("y")])
        assert list((await peer.command()).watchTopicUpdate.new_topics) == [name("y")]


# -- additions ------------------------------------------------------------------------------------


async def test_no_update_exceeds_max_message_size() -> None:
    keys = {"maxMessageSize": "20000"}
    async with cluster(TOPICS, both=keys) as parts:
        peer, client = await watching(parts), Client(ALPHA)
        names = topic_names("public/gold/alpha", 2_000, 60)
        # More names than a change of the feed tells
        await change(parts, added=names)
        while len(client.names) < 2_003:
            frame = await peer.frame()
            assert len(frame) <= 20_000
            client.apply(pb.BaseCommand.FromString(frame[4:]))


async def test_a_slow_watcher_does_not_delay_other_watchers() -> None:
    async with cluster(TOPICS, both={"floodgateSocketSendBufferBytes": "4096"}) as parts:
        slow, fast = await watching(parts, watch(".*")), await watching(parts, watch(".*"))
        client = Client([*TOPICS["public/gold"]])
        names = topic_names("public/gold", 600, 200)
        # The first peer does not read
        for start in range(0, len(names), 10):
            await change(parts, added=names[start : start + 10])
            while not client.names.issuperset(names[start : start + 10]):
                client.apply(await fast.command())
        assert parts.broker.watches.totals.lagging == 1
        late = Client([*TOPICS["public/gold"]])
        while late.names != client.names:
            late.apply(await slow.command())


async def test_a_watch_created_during_changes_misses_no_change() -> None:
    names = topic_names("public/gold/alpha", 4_000)
    async with cluster({"public/gold": names}) as parts:
        peers = [await parts.peer("broker") for _ in range(4)]
        changing = asyncio.ensure_future(_come_and_go(parts, names))
        # Each begins at another moment, two with the same pattern
        for number, peer in enumerate(peers):
            await peer.send(watch(f"public/gold/alpha/.*{number // 2}.*"))
            for _ in range(7):
                await asyncio.sleep(0)
        await changing
        snapshot = await parts.broker.store.snapshot(GOLD)
        assert snapshot is not None
        everything = [one.decode() for one in snapshot.persistent.names()]
        for number, peer in enumerate(peers):
            kept = {one for one in everything if f"{number // 2}" in one.split("alpha/")[-1]}
            client = Client((await peer.command()).watchTopicListSuccess.topic)
            while client.names != kept:
                client.apply(await peer.command())


async def _come_and_go(parts: Cluster, names: list[str]) -> None:
    for start in range(0, 1_000, 20):
        await change(parts, removed=names[start : start + 10])
        await asyncio.sleep(0)
        await change(parts, added=names[start : start + 5])
        await asyncio.sleep(0)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_watch_survives_deletion_and_recreation_of_its_namespace(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer, client = await watching(parts), Client(ALPHA)
        await change(parts, removed=TOPICS["public/gold"])
        assert await parts.broker.store.delete_namespace(GOLD)
        await parts.broker.store.apply(GOLD, TopicChanges([name("x").encode()]))
        while client.names != {name("x")}:
            client.apply(await peer.command())


async def test_watches_of_a_stopped_broker_leave_no_task() -> None:
    tasks = asyncio.all_tasks()
    async with cluster(TOPICS) as parts:
        await watching(parts, watch(), watch(".*", watcher_id=2))
    await settle()
    assert asyncio.all_tasks() == tasks
