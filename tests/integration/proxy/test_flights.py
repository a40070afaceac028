"""Identical listings in flight share a broker request and its bytes."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from broker.stores.changes import TopicChanges
from limiter.memory.dual_limiter import LimitType
from proto.names import NamespaceName
from tests.support.peers.raw_peer import topics_command
from tests.support.processes.cluster import cluster, topic_names, until
from tests.support.stores.blocked_store import BlockedStore

BIG = NamespaceName.parse("public/big")
AS_MANY_AS_ASKED = {"floodgateMaxInFlightResponseBytesPerConnection": "0"}
NAMES = topic_names("public/big", 2_000, 800)
TOPICS = {"public/big": NAMES}
NAME_BYTES = 2_000 * 800
SLOW = {"floodgateSocketSendBufferBytes": "4096"}
DIRECT = LimitType.DIRECT_MEMORY
ALL = pb.CommandGetTopicsOfNamespace.ALL


async def test_fifty_clients_share_a_single_broker_request_and_its_permits() -> None:
    async with cluster(TOPICS, proxy=SLOW) as parts:
        store = BlockedStore(parts.broker)
        peers = [await parts.peer() for _ in range(50)]
        for number, peer in enumerate(peers):
            await peer.send(topics_command(number, "public/big"))
        await until(lambda: parts.proxy.lookups.pending_requests == 50)
        store.go_on.set()
        heads = await asyncio.gather(*(peer.read(4) for peer in peers))
        charged = parts.proxy.limiter.acquired_permits(DIRECT)
        assert store.asked == ["public/big"]
        assert NAME_BYTES < charged < 1.1 * NAME_BYTES
        assert len(set(heads)) == 1


async def test_shared_permits_are_released_once_the_last_answer_is_sent() -> None:
    async with cluster(TOPICS, proxy=SLOW) as parts:
        store = BlockedStore(parts.broker)
        first, last = await parts.peer(), await parts.peer()
        for peer in (first, last):
            await peer.send(topics_command(1, "public/big"))
        await until(lambda: parts.proxy.lookups.pending_requests == 2)
        store.go_on.set()
        await first.frame()
        after_first = parts.proxy.limiter.acquired_permits(DIRECT)
        await last.frame()
        assert after_first > NAME_BYTES
        await until(lambda: parts.proxy.limiter.acquired_permits(DIRECT) == 0)


async def test_a_shared_listing_is_answered_although_its_first_client_disconnects() -> None:
    async with cluster(TOPICS) as parts:
        store = BlockedStore(parts.broker)
        clients = [parts.client() for _ in range(50)]
        async with asyncio.TaskGroup() as group:
            asking = [group.create_task(one.topics_of_namespace("public/big")) for one in clients]
            await until(lambda: parts.proxy.lookups.pending_requests == 50)
            asking[0].cancel()
            await clients[0].close()
            await until(lambda: parts.proxy.lookups.pending_requests == 49)
            store.go_on.set()
        assert [list(task.result().topics) for task in asking[1:]] == [NAMES] * 49
        assert store.asked == ["public/big"]


async def test_a_shared_listing_ends_with_its_last_client_and_is_not_reused() -> None:
    async with cluster(TOPICS) as parts:
        store = BlockedStore(parts.broker)
        peer, client = await parts.peer(), parts.client()
        await peer.send(topics_command(1, "public/big"))
        await until(lambda: store.asked)
        peer.close()
        await until(lambda: not parts.proxy.connections)
        store.go_on.set()
        listing = await client.topics_of_namespace("public/big")
        assert list(listing.topics) == NAMES
        assert len(store.asked) == 2


async def test_a_change_of_a_namespace_shows_in_the_next_listing() -> None:
    async with cluster(TOPICS) as parts:
        client = parts.client()
        before = await client.topics_of_namespace("public/big")
        await parts.broker.store.apply(BIG, TopicChanges([b"persistent://public/big/new"]))
        after = await client.topics_of_namespace("public/big")
        assert list(after.topics) == ["persistent://public/big/new", *NAMES]
        assert after.topics_hash != before.topics_hash


@pytest.mark.parametrize(
    "other",
    [
        {"mode": ALL},
        {"pattern": "public/big/.*"},
        {"pattern": ""},
        {"topics_hash": ""},
        {"topics_hash": "00000000"},
        {"properties": {"a": "b"}},
        {"namespace": "public/other"},
    ],
    ids=str,
)
async def test_requests_that_differ_do_not_share_an_answer(other: dict[str, object]) -> None:
    async with cluster({**TOPICS, "public/other": topic_names("public/other", 1)}) as parts:
        store = BlockedStore(parts.broker)
        async with asyncio.TaskGroup() as group:
            for asked in ({}, other):
                group.create_task(
                    parts.client().topics_of_namespace(**{"namespace": "public/big", **asked})
                )
            await until(lambda: parts.proxy.lookups.pending_requests == 2)
            await until(lambda: len(store.asked) == 2)
            store.go_on.set()
        assert len(store.asked) == 2


async def test_profile_pulsar_requests_a_listing_from_the_broker_for_every_client() -> None:
    async with cluster(TOPICS, "pulsar") as parts:
        store = BlockedStore(parts.broker, blocked=False)
        await parts.client().topics_of_namespace("public/big")
        store.go_on.clear()
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(parts.client().topics_of_namespace("public/big"))
            await until(lambda: len(store.asked) == 6)
            store.go_on.set()
        assert len(store.asked) == 6


async def test_pipelined_identical_listings_of_a_client_share_a_broker_request() -> None:
    async with cluster(TOPICS, both=AS_MANY_AS_ASKED) as parts:
        store = BlockedStore(parts.broker)
        peer = await parts.peer()
        await peer.send(*(topics_command(number, "public/big") for number in range(5)))
        await until(lambda: parts.proxy.lookups.pending_requests == 5)
        store.go_on.set()
        answers = [(await peer.command()).getTopicsOfNamespaceResponse for _ in range(5)]
        assert [answer.request_id for answer in answers] == [0, 1, 2, 3, 4]
        assert all(list(answer.topics) == NAMES for answer in answers)
        assert store.asked == ["public/big"]
