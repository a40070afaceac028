"""Watches ending at any moment leave nothing behind and delay no other watch."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.peers.held_broker import BlockedFilter, held_at
from tests.support.processes.cluster import cluster, until
from tests.support.watches.wire_watches import (
    ALPHA,
    BETA,
    PROFILES,
    TOPICS,
    Client,
    change,
    close,
    making,
    nothing_is_left,
    watch,
    watching,
)

PLACES = ["store", "filter", "heap", "direct"]
CLOSED_EARLY = "Closed watcher before creation was complete"


# -- the peer vanishes ----------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("place", PLACES)
async def test_a_disconnect_while_a_watch_is_created_leaves_nothing_behind(profile, place) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        tasks = asyncio.all_tasks()
        async with held_at(parts.broker, place):
            peer = await parts.peer("broker")
            await making(parts, peer, watch(), watch(request_id=2), watch("public/gold/b.*", 3, 2))
            peer.close()
            await until(lambda: not parts.broker.connections)
            # While the other watches still wait
            await until(lambda: nothing_is_left(parts))
            await until(lambda: asyncio.all_tasks() == tasks)
            assert parts.broker.lookups.pending_requests == 0


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("place", ["heap", "direct"])
async def test_a_disconnect_between_retries_of_a_watch_leaves_nothing_behind(
    profile, place
) -> None:
    clock = ManualClock()
    async with cluster(TOPICS, profile=profile, clock=clock) as parts:
        tasks = asyncio.all_tasks()
        async with held_at(parts.broker, place):
            peer = await parts.peer("broker")
            await making(parts, peer)
            clock.advance(25.0)
            await until(lambda: parts.broker.watches.totals.retries)
            peer.close()
            await until(lambda: nothing_is_left(parts))
            await until(lambda: asyncio.all_tasks() == tasks)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_disconnect_while_an_update_waits_leaves_nothing_behind(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        tasks = asyncio.all_tasks()
        peer = await watching(parts)
        async with held_at(parts.broker, "direct"):
            await change(parts, added=["persistent://public/gold/alpha-x"])
            await change(parts, removed=[ALPHA[0]])
            await settle()
            peer.close()
            await until(lambda: nothing_is_left(parts))
            await until(lambda: asyncio.all_tasks() == tasks)


@pytest.mark.parametrize("place", PLACES)
async def test_a_second_watcher_is_answered_after_the_first_disconnects(place: str) -> None:
    async with cluster(TOPICS) as parts:
        first, second = await parts.peer("broker"), await parts.peer("broker")
        async with held_at(parts.broker, place):
            await making(parts, first)
            await making(parts, second)
            first.close()
            await until(lambda: parts.broker.watches.totals.watchers == 1)
        assert list((await second.command()).watchTopicListSuccess.topic) == ALPHA
        await change(parts, added=["persistent://public/gold/alpha-x"])
        client = Client(ALPHA)
        client.apply(await second.command())


async def test_a_set_is_not_kept_if_its_only_watcher_disconnects_during_creation() -> None:
    async with cluster(TOPICS) as parts:
        other = await watching(parts, watch("public/gold/beta.*"))
        held = parts.broker.watches.registry.held_bytes
        blocked, peer = BlockedFilter(parts.broker), await parts.peer("broker")
        await making(parts, peer)
        peer.close()
        await until(lambda: parts.broker.watches.totals.watchers == 1)
        blocked.go_on.set()
        await settle()
        registry = parts.broker.watches.registry
        assert (registry.sets, registry.held_bytes) == (1, held)
        await change(parts, added=["persistent://public/gold/beta-x"])
        Client(BETA).apply(await other.command())


# -- closed by its client -------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("place", PLACES)
async def test_closing_a_watch_during_its_creation_answers_all_its_requests(profile, place) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await parts.peer("broker")
        async with held_at(parts.broker, place):
            await making(parts, peer, watch(), watch(request_id=2))
            await peer.send(close(request_id=3))
            answers = [await peer.command() for _ in range(3)]
            java = "java.lang.IllegalStateException: " if profile == "pulsar" else ""
            assert [(one.error.request_id, one.error.message) for one in answers[:2]] == [
                (1, java + CLOSED_EARLY),
                (2, java + CLOSED_EARLY),
            ]
            assert {one.error.error for one in answers[:2]} == {pb.MetadataError}
            assert answers[2].success.request_id == 3
            await until(lambda: not parts.broker.watches.totals.watchers)
            assert parts.broker.lookups.pending_requests == 0
        # No other command comes, and the id is free again
        await peer.send(watch(request_id=4))
        assert (await peer.command()).watchTopicListSuccess.request_id == 4


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_closed_watcher_id_can_be_reused_for_another_pattern(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await watching(parts)
        await peer.send(close(), watch("public/gold/beta.*", request_id=2))
        answers = [await peer.command() for _ in range(2)]
        assert answers[0].type == pb.BaseCommand.SUCCESS
        assert list(answers[1].watchTopicListSuccess.topic) == BETA


@pytest.mark.parametrize("profile", PROFILES)
async def test_closing_a_watch_discards_its_waiting_update(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await watching(parts)
        async with held_at(parts.broker, "direct"):
            await change(parts, added=["persistent://public/gold/alpha-x"])
            await settle()
            await peer.send(close(request_id=2))
            assert (await peer.command()).success.request_id == 2
        await peer.send(close(request_id=3))
        assert (await peer.command()).success.request_id == 3
        assert nothing_is_left(parts)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_set_is_removed_with_its_last_watcher_while_other_sets_stay(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        requests = (watch(), watch(watcher_id=2), watch("public/gold/beta.*", watcher_id=3))
        peer, sets = await watching(parts, *requests), []
        for watcher_id in (1, 2):
            await peer.send(close(watcher_id))
            await peer.command()
            sets.append(parts.broker.watches.registry.sets)
        assert sets == [2, 1]


async def test_all_watches_of_a_closed_connection_end_in_one_turn() -> None:
    async with cluster(TOPICS) as parts:
        requests = [watch(".*", number, number) for number in range(50)]
        peer = await watching(parts, *requests)
        assert parts.broker.watches.totals.watchers == 50
        cnx = parts.cnx(peer, "broker")
        cnx.abort()
        await until(lambda: not parts.broker.connections)
        assert nothing_is_left(parts)
        assert not parts.broker.watches.registry._watches
