"""Watcher ids: equal ids on two connections, and repeated requests for an id."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from broker.stores.changes import StoreError
from tests.support.processes.cluster import Cluster, cluster
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


@pytest.mark.parametrize("profile", PROFILES)
async def test_equal_watcher_ids_on_two_connections_are_separate_watches(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        one = await watching(parts)
        other = await watching(parts, watch("public/gold/beta.*"))
        await one.send(close(request_id=2))
        await one.command()
        await change(parts, added=["persistent://public/gold/beta-x"])
        Client(BETA).apply(await other.command())
        assert parts.broker.watches.totals.watchers == 1


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_repeated_watch_request_gets_the_same_error_as_the_first(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await parts.peer("broker")
        blocked = _FailingStore(parts)
        await making(parts, peer, watch(), watch(request_id=2))
        blocked.go_on.set()
        answers = [(await peer.command()).error for _ in range(2)]
        assert [one.request_id for one in answers] == [1, 2]
        assert [one.error for one in answers] == [pb.MetadataError] * 2
        assert all("the store is down" in one.message for one in answers)
        assert nothing_is_left(parts)
        blocked.fails = False
        await peer.send(watch(request_id=3))
        assert list((await peer.command()).watchTopicListSuccess.topic) == ALPHA


@pytest.mark.parametrize("profile", PROFILES)
async def test_two_pipelined_requests_for_a_watch_that_cannot_fit_are_both_refused(
    profile: str,
) -> None:
    limits = {"heap_max_bytes": 100}
    async with cluster(TOPICS, profile=profile, broker_limits=limits) as parts:
        peer = await parts.peer("broker")
        # No wait can make it fit
        await peer.send(watch(), watch(request_id=2))
        answers = [(await peer.command()).error for _ in range(2)]
        assert [one.request_id for one in answers] == [1, 2]
        assert answers[0].error == answers[1].error
        assert nothing_is_left(parts)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_close_right_after_a_watch_request_ends_the_watch(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await parts.peer("broker")
        await peer.send(watch(), watch(request_id=2), close(request_id=3), watch(".*", 4))
        answers = [await peer.command() for _ in range(4)]
        assert [one.error.request_id for one in answers[:2]] == [1, 2]
        assert answers[2].success.request_id == 3
        assert len(answers[3].watchTopicListSuccess.topic) == len(ALPHA + BETA)
        assert parts.broker.watches.totals.watchers == 1


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_watch_continues_after_a_failed_refresh(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await watching(parts)
        blocked = _FailingStore(parts)
        blocked.go_on.set()
        await peer.send(watch(request_id=2))
        answer = await peer.command()
        # Only as shipped is the namespace listed for it
        if profile == "pulsar":
            assert (answer.error.request_id, answer.error.error) == (2, pb.MetadataError)
        else:
            assert list(answer.watchTopicListSuccess.topic) == ALPHA
        await change(parts, added=["persistent://public/gold/alpha-x"])
        Client(ALPHA).apply(await peer.command())


class _FailingStore:
    """Holds the store's readers; then fails."""

    def __init__(self, parts: Cluster) -> None:
        self.go_on = asyncio.Event()
        self.fails = True
        original = parts.broker.store.snapshot

        async def snapshot(namespace: object) -> object:
            await self.go_on.wait()
            if self.fails:
                raise StoreError("the store is down")
            return await original(namespace)  # type: ignore[arg-type]

        parts.broker.store.snapshot = snapshot  # type: ignore[method-assign,assignment]
