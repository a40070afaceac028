"""SIGTERM's drain: pending requests are answered, new clients refused, and it ends."""

import asyncio

import aiohttp
import pytest

import proto.PulsarApi_pb2 as pb
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.raw_peer import RawPeer, topics_command
from tests.support.processes.cluster import Cluster, cluster, topic_names, until
from tests.support.stores.blocked_store import BlockedStore

NAMES = topic_names("public/default", 2_000, 800)
TOPICS = {"public/default": NAMES}
# A namespace without topics would be answered at once.
SMALL = {
    f"public/{name}": topic_names(f"public/{name}", 1)
    for name in ("late", *(f"ns-{n}" for n in range(5)))
}
PROFILES = ["pulsar", "floodgate"]
ROLES = ["broker", "proxy"]


def drain(parts: Cluster, role: str) -> asyncio.Task[None]:
    leave = parts.part(role).__aexit__(None, None, None)
    return asyncio.get_running_loop().create_task(leave)


async def drained(parts: Cluster, role: str, peer: RawPeer) -> asyncio.Task[None]:
    """Start the drain and wait until the peer's requests are no longer read."""
    cnx = parts.cnx(peer, role)
    task = drain(parts, role)
    await until(lambda: not cnx.taking_frames)
    return task


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_drain_answers_requests_in_flight_before_it_closes(role, profile) -> None:
    async with cluster(TOPICS, profile) as parts:
        store = BlockedStore(parts.broker)
        peer = await parts.peer(role)
        await peer.send(topics_command(1, "public/default"))
        await until(lambda: store.asked)
        draining = await drained(parts, role, peer)
        store.go_on.set()
        answer = (await peer.command()).getTopicsOfNamespaceResponse
        assert list(answer.topics) == NAMES
        assert await peer.rest() == b""
        await draining


@pytest.mark.parametrize("role", ROLES)
async def test_a_drain_refuses_new_connections_and_starts_no_new_requests(role: str) -> None:
    async with cluster(TOPICS) as parts:
        store = BlockedStore(parts.broker)
        peer = await parts.peer(role)
        await peer.send(topics_command(1, "public/default"))
        await until(lambda: store.asked)
        cnx = parts.cnx(peer, role)
        draining, chunks = await drained(parts, role, peer), cnx.chunks_received
        await peer.send(topics_command(2, "public/other"))
        await until(lambda: cnx.chunks_received > chunks)
        with pytest.raises(ConnectionRefusedError):
            await RawPeer.connect(parts.part(role).service_url)
        store.go_on.set()
        first = (await peer.command()).getTopicsOfNamespaceResponse
        assert first.request_id == 1
        assert await peer.rest() == b""
        assert store.asked == ["public/default"]
        await draining


@pytest.mark.parametrize("role", ROLES)
async def test_no_client_starts_a_request_while_a_drain_waits_for_answers(role: str) -> None:
    async with cluster({**TOPICS, **SMALL}) as parts:
        store = BlockedStore(parts.broker)
        peers = [await parts.peer(role) for _ in range(5)]
        cnxs = [parts.cnx(peer, role) for peer in peers]
        for number, peer in enumerate(peers):
            await peer.send(topics_command(number, f"public/ns-{number}"))
        await until(lambda: len(store.asked) == 5)
        draining = drain(parts, role)
        await until(lambda: any(not cnx.taking_frames for cnx in cnxs))
        chunks = [cnx.chunks_received for cnx in cnxs]
        for peer in peers:
            await peer.send(topics_command(9, "public/late"))
        await until(lambda: all(c.chunks_received > n for c, n in zip(cnxs, chunks, strict=True)))
        store.go_on.set()
        await draining
        assert "public/late" not in store.asked
        answers = [(await peer.command()).getTopicsOfNamespaceResponse for peer in peers]
        assert [answer.request_id for answer in answers] == list(range(5))


@pytest.mark.parametrize("role", ROLES)
async def test_a_draining_process_answers_503_to_readiness_probes(role: str) -> None:
    async with cluster(TOPICS) as parts, aiohttp.ClientSession() as session:
        ready = f"{parts.part(role).web_service_url}/admin/v2/brokers/ready"
        async with session.get(ready) as response:
            before = response.status
        store = BlockedStore(parts.broker)
        peer = await parts.peer(role)
        await peer.send(topics_command(1, "public/default"))
        await until(lambda: store.asked)
        draining = await drained(parts, role, peer)
        async with session.get(ready) as response:
            during = response.status
        store.go_on.set()
        await peer.rest()
        assert (before, during) == (200, 503)
        await draining


@pytest.mark.parametrize("role", ROLES)
async def test_a_drain_ends_after_its_timeout_despite_a_peer_that_does_not_read(role: str) -> None:
    clock = ManualClock()
    small = {"floodgateSocketSendBufferBytes": "4096", "floodgateSlowPeerGraceMs": "0"}
    async with cluster(TOPICS, clock=clock, **{role: small}) as parts:
        peer = await parts.peer(role)
        await peer.send(topics_command(1, "public/default"))
        await peer.read(1)
        await until(lambda: parts.part(role).lookups.pending_requests == 0)
        draining = await drained(parts, role, peer)
        clock.advance(59.9 if role == "proxy" else 4.9)
        for _ in range(100):
            await asyncio.sleep(0)
        in_time = draining.done()
        clock.advance(0.2)
        await draining
        assert not in_time
        assert len(await peer.rest()) < len(NAMES) * 800


@pytest.mark.parametrize("role", ROLES)
async def test_a_drain_closes_idle_connections(role: str) -> None:
    async with cluster(TOPICS) as parts:
        peers = [await parts.peer(role) for _ in range(20)]
        await parts.part(role).__aexit__(None, None, None)
        assert [await peer.rest() for peer in peers] == [b""] * 20


async def test_clients_of_a_proxy_get_service_not_ready_from_a_drained_broker() -> None:
    async with cluster(TOPICS) as parts:
        peer = await parts.peer()
        await peer.send(topics_command(1, "public/default"))
        await peer.command()
        await parts.broker.__aexit__(None, None, None)
        await peer.send(topics_command(2, "public/default"))
        assert (await peer.command()).error.error == pb.ServiceNotReady
