"""One greedy client that never reads, and twenty that only want their list."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from limiter.memory.dual_limiter import LimitType
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.peers.raw_peer import RawPeer, topics_command
from tests.support.processes.cluster import Cluster, cluster, topic_names, until

NAMESPACE = "public/default"
TOPICS = {NAMESPACE: topic_names(NAMESPACE, 200, name_bytes=500)}
HEALTHY = 20
LISTS_EACH = 3
PIPELINED = 300
LIMITS = {"heap_max_bytes": 4_000_000, "direct_max_bytes": 4_000_000}
# The limiter is under test, so nothing before it may block the abuser.
LITTLE_BUFFER = {
    "floodgateSocketSendBufferBytes": "4096",
    "floodgateMaxInFlightResponseBytesPerConnection": "0",
}
HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY


async def abuse(parts: Cluster, role: str) -> RawPeer:
    """Let a peer request three hundred different lists unread.

    Returns when it holds its maximum.
    """
    peer = await parts.peer(role)
    requests = (
        topics_command(number, NAMESPACE, topics_pattern=f"public/default/.*|{number}")
        for number in range(PIPELINED)
    )
    await peer.send(*requests)
    limiter = parts.part(role).limiter
    await until(lambda: limiter.queue_size(DIRECT) + limiter.queue_size(HEAP) > 0, "it all fits")
    await until(lambda: pinned(parts, role, peer) > 0, "it pins nothing")
    most = 0
    while most < pinned(parts, role, peer):
        most = pinned(parts, role, peer)
        for _ in range(1_000):
            await asyncio.sleep(0)
    return peer


def pinned(parts: Cluster, role: str, peer: RawPeer) -> int:
    """Return a peer's held direct bytes."""
    return parts.part(role).limiter.pinned_by(parts.cnx(peer, role))[DIRECT]


def waits(parts: Cluster, role: str, peer: RawPeer) -> bool:
    """Return whether a peer waits for memory, alone or sharing."""
    cnx, limiter = parts.cnx(peer, role), parts.part(role).limiter
    accounts = [one for kind in LimitType for one in limiter.semaphore(kind).accounts()]
    own = [account for account in accounts if account.owner is cnx]
    return any(one.waiters or any(holder.waiters for holder in one.shared) for one in own)


async def list_in_turn(parts: Cluster, role: str) -> list[int]:
    """List a few times in sequence and return the kinds of the answers."""
    peer = await parts.peer(role, receive_buffer_bytes=200_000)
    answers = []
    for number in range(LISTS_EACH):
        await peer.send(topics_command(number, NAMESPACE))
        answers.append((await peer.command()).type)
    return answers


@pytest.mark.parametrize("buffers", ["private", "shared"])
@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_a_client_that_never_reads_delays_no_other_client(role: str, buffers: str) -> None:
    # Time stands still, so no timeout frees memory
    keys = {**LITTLE_BUFFER, "floodgateResponseBuffers": buffers}
    limits = {role: keys, f"{role}_limits": LIMITS}
    async with cluster(TOPICS, **limits) as parts:
        abuser = await abuse(parts, role)
        answers = await asyncio.gather(*[list_in_turn(parts, role) for _ in range(HEALTHY)])
        answered = pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
        assert answers == [[answered] * LISTS_EACH] * HEALTHY
        assert pinned(parts, role, abuser) <= LIMITS["direct_max_bytes"] // 2


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_with_profile_pulsar_a_silent_client_starves_other_clients(role: str) -> None:
    clock = ManualClock()
    limits = {role: LITTLE_BUFFER, f"{role}_limits": LIMITS}
    async with cluster(TOPICS, "pulsar", clock=clock, **limits) as parts:
        await abuse(parts, role)
        peer = await parts.peer(role, receive_buffer_bytes=200_000)
        await peer.send(topics_command(1, NAMESPACE))
        await until(lambda: waits(parts, role, peer))
        waiting = asyncio.ensure_future(peer.command())
        while not waiting.done():
            clock.advance(25.1)
            await settle()
        answer = await waiting
        assert answer.error.error == pb.TooManyRequests
