"""Topic list watches over real connections: first the set, then every change, in order."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from broker.stores.changes import Change
from proto.names import NamespaceName
from proto.topic_hash import topics_hash
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


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_watch_is_answered_with_the_topics_that_match_its_pattern(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await parts.peer("broker")
        await peer.send(watch())
        answer = (await peer.command()).watchTopicListSuccess
        assert (answer.request_id, answer.watcher_id) == (1, 1)
        assert list(answer.topic) == ALPHA
        assert answer.topics_hash == topics_hash(ALPHA)


@pytest.mark.parametrize("profile", PROFILES)
async def test_created_and_deleted_topics_are_sent_with_the_resulting_hash(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer, client = await watching(parts), Client(ALPHA)
        await change(parts, added=["persistent://public/gold/alpha-x"])
        await change(parts, removed=[ALPHA[1]])
        client.apply(await peer.command())
        client.apply(await peer.command())
        assert client.names == {ALPHA[0], ALPHA[2], "persistent://public/gold/alpha-x"}


@pytest.mark.parametrize("profile", PROFILES)
async def test_topics_that_do_not_match_the_pattern_cause_no_update(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await watching(parts)
        others = ["gamma", "__change_events", "alpha-system/__change_events"]
        await change(parts, added=[f"persistent://public/gold/{name}" for name in others])
        await change(parts, added=["non-persistent://public/gold/alpha-n"])
        await change(parts, added=["persistent://public/gold/alpha-y"])
        update = (await peer.command()).watchTopicUpdate
        assert list(update.new_topics) == ["persistent://public/gold/alpha-y"]


async def test_a_change_of_several_topics_is_sent_as_a_single_update() -> None:
    async with cluster(TOPICS) as parts:
        peer = await watching(parts)
        await change(parts, added=topic_names("public/gold/alpha", 5), removed=[ALPHA[0]])
        update = (await peer.command()).watchTopicUpdate
        assert (len(update.new_topics), list(update.deleted_topics)) == (5, [ALPHA[0]])


async def test_profile_pulsar_sends_an_update_for_each_topic() -> None:
    async with cluster(TOPICS, profile="pulsar") as parts:
        peer, client = await watching(parts), Client(ALPHA)
        await change(
            parts, added=[f"persistent://public/gold/alpha-p-partition-{n}" for n in "012"]
        )
        for _ in range(3):
            update = await peer.command()
            assert len(update.watchTopicUpdate.new_topics) == 1
            client.apply(update)


async def test_a_watch_with_the_current_hash_is_answered_without_names() -> None:
    async with cluster(TOPICS) as parts:
        peer = await parts.peer("broker")
        await peer.send(watch(known_hash=topics_hash(ALPHA)), watch(watcher_id=2, known_hash="00"))
        answers = [(await peer.command()).watchTopicListSuccess for _ in range(2)]
        answers.sort(key=lambda answer: answer.watcher_id)
        assert [list(answer.topic) for answer in answers] == [[], ALPHA]
        assert {answer.topics_hash for answer in answers} == {topics_hash(ALPHA)}


async def test_profile_pulsar_answers_a_reused_watcher_id_with_the_first_watch() -> None:
    async with cluster(TOPICS, profile="pulsar") as parts:
        peer = await watching(parts)
        await peer.send(watch("public/gold/beta.*", request_id=2))
        answer = (await peer.command()).watchTopicListSuccess
        assert (answer.request_id, list(answer.topic)) == (2, ALPHA)


async def test_a_reused_watcher_id_is_refused_and_the_first_watch_continues() -> None:
    elsewhere = watch(request_id=3)
    elsewhere.watchTopicList.namespace = "public/default"
    async with cluster(TOPICS) as parts:
        peer = await watching(parts)
        await peer.send(watch("public/gold/beta.*", request_id=2), elsewhere, watch(request_id=4))
        answers = [await peer.command() for _ in range(3)]
        assert [one.error.request_id for one in answers[:2]] == [2, 3]
        assert all(one.error.error == pb.NotAllowedError for one in answers[:2])
        assert all("in public/gold: close that" in one.error.message for one in answers[:2])
        assert list(answers[2].watchTopicListSuccess.topic) == ALPHA


async def test_a_repeated_watch_request_is_answered_with_two_full_listings() -> None:
    async with cluster(TOPICS) as parts:
        peer = await parts.peer("broker")
        await peer.send(watch(request_id=1), watch(request_id=2))
        answers = [(await peer.command()).watchTopicListSuccess for _ in range(2)]
        assert [(one.request_id, list(one.topic)) for one in answers] == [(1, ALPHA), (2, ALPHA)]


async def test_with_profile_pulsar_a_repeated_request_empties_the_first_answer() -> None:
    async with cluster(TOPICS, profile="pulsar") as parts:
        peer = await parts.peer("broker")
        await peer.send(watch(request_id=1), watch(request_id=2))
        answers = [(await peer.command()).watchTopicListSuccess for _ in range(2)]
        assert [(list(one.topic), one.topics_hash) for one in answers] == [
            ([], "00000000"),
            (ALPHA, topics_hash(ALPHA)),
        ]


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_closed_watch_receives_no_updates(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await watching(parts, watch(), watch(watcher_id=2))
        await peer.send(close(watcher_id=1, request_id=5))
        answer = await peer.command()
        await change(parts, added=["persistent://public/gold/alpha-z"])
        update = (await peer.command()).watchTopicUpdate
        assert answer.success.request_id == 5
        assert update.watcher_id == 2
        assert parts.broker.watches.totals.watchers == 1


async def test_closing_an_unknown_watch_succeeds() -> None:
    async with cluster(TOPICS) as parts:
        peer = await parts.peer("broker")
        await peer.send(close(watcher_id=77, request_id=3))
        assert (await peer.command()).success.request_id == 3


async def test_watchers_of_equal_patterns_share_a_single_set() -> None:
    async with cluster(TOPICS) as parts:
        await watching(parts, watch(), watch("persistent://public/gold/alpha.*", watcher_id=2))
        await watching(parts)
        assert (parts.broker.watches.totals.watchers, parts.broker.watches.registry.sets) == (3, 1)


async def test_a_disconnected_watcher_leaves_no_sets_or_bytes() -> None:
    async with cluster(TOPICS) as parts:
        peer = await watching(parts, watch(), watch(".*", watcher_id=2))
        held = parts.broker.watches.registry.held_bytes
        peer.close()
        await until(lambda: not parts.broker.watches.totals.watchers)
        assert held > 0
        assert (parts.broker.watches.registry.sets, parts.broker.watches.registry.held_bytes) == (
            0,
            0,
        )


async def test_a_missing_namespace_can_be_watched_before_it_is_created() -> None:
    async with cluster({}) as parts:
        peer = await parts.peer("broker")
        await peer.send(watch(".*"))
        answer = (await peer.command()).watchTopicListSuccess
        await change(parts, added=ALPHA)
        update = (await peer.command()).watchTopicUpdate
        assert (list(answer.topic), answer.topics_hash) == ([], "00000000")
        assert list(update.new_topics) == ALPHA


async def test_a_watcher_that_read_nothing_gets_all_missed_changes_in_one_update() -> None:
    async with cluster(TOPICS, both={"floodgateSocketSendBufferBytes": "4096"}) as parts:
        peer, client = await watching(parts, watch(".*")), Client(ALPHA + BETA)
        names = topic_names("public/gold", 3_000, 200)
        for start in range(0, len(names), 10):
            await change(parts, added=names[start : start + 10])
        await change(parts, removed=names[:500])
        left = {*ALPHA, *BETA, *names[500:]}
        (watches,) = parts.broker.watches.registry._watches.values()
        watched = watches.by_id[1].watcher.watched
        await until(lambda: watched.names.hash == topics_hash(left))
        # First the updates before it was full, then the rest in one
        updates = 0
        while client.names != left:
            client.apply(await peer.command())
            updates += 1
        assert updates < 50
        assert parts.broker.watches.totals.reconciling == 1


async def test_updates_follow_the_answer_without_gaps_during_many_changes() -> None:
    async with cluster({"public/gold": topic_names("public/gold", 20_000, 60)}) as parts:
        peer = await parts.peer("broker")
        changing = asyncio.ensure_future(_many_changes(parts))
        await peer.send(watch(".*"))
        answer = await peer.command()
        await changing
        client = Client(answer.watchTopicListSuccess.topic)
        assert answer.watchTopicListSuccess.topics_hash == topics_hash(client.names)
        snapshot = await parts.broker.store.snapshot(GOLD)
        assert snapshot is not None
        while topics_hash(client.names) != snapshot.persistent.hash:
            client.apply(await peer.command())


async def _many_changes(parts: Cluster) -> None:
    for number in range(60):
        await change(parts, added=[f"persistent://public/gold/new-{number}"])
        await asyncio.sleep(0)


async def test_changes_dropped_by_the_feed_are_found_by_a_new_listing() -> None:
    async with cluster({**TOPICS, "public/busy": []}) as parts:
        peer, client = await watching(parts), Client(ALPHA)
        feed = parts.broker.watches._feed
        assert feed is not None
        # So many changes in one turn that this namespace's is forgotten
        await change(parts, added=["persistent://public/gold/alpha-new"])
        busy = NamespaceName.parse("public/busy")
        for number in range(feed._queued.maxlen or 0):
            feed.push(Change(busy, number + 1))
        client.apply(await peer.command())
        assert "persistent://public/gold/alpha-new" in client.names
