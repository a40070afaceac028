"""Non-reading peers: their memory, their victims, and their end.

Limits and namespace are the recorded overload's; the clock stands still unless moved, so that
seconds are exact.
"""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

import pytest

import proto.PulsarApi_pb2 as pb
from limiter.flow.causes import CloseReason, PauseCause
from limiter.flow.outbound_buffer import WriteBufferMarks
from limiter.memory.dual_limiter import LimitType
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.mid_topics import COMMAND_BYTES, HEAP_BYTES, mid_names
from tests.support.peers.frames import ping, pong
from tests.support.peers.raw_peer import RawPeer, topics_command
from tests.support.processes.cluster import Cluster, cluster, until

ROLES = ["broker", "proxy"]
HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
MEGABYTE = 1024 * 1024
LIMITS = {
    "heap_max_bytes": MEGABYTE,
    "direct_max_bytes": MEGABYTE,
    "heap_timeout_seconds": 3.0,
    "direct_timeout_seconds": 3.0,
}
SPACES = ("public/mid", "public/mid-2", "public/mid-3")
TOPICS = {space: mid_names(space) for space in SPACES}
PIPELINED = 64
SMALL_BUFFER = {"floodgateSocketSendBufferBytes": "65536"}
PAUSING = "pulsarChannelPauseReceivingRequestsIfUnwritable"


def overload(
    profile: str, clock: ManualClock, role: str = "broker", keys: Mapping[str, str] | None = None
) -> AbstractAsyncContextManager[Cluster]:
    """Run servers, one with the recording's limits."""
    mine = {**SMALL_BUFFER, **(keys or {})}
    if role == "broker":
        return cluster(TOPICS, profile, broker=mine, clock=clock, broker_limits=LIMITS)
    return cluster(TOPICS, profile, proxy=mine, clock=clock, proxy_limits=LIMITS)


async def stuck_peer(parts: Cluster, role: str, space: str = SPACES[0]) -> RawPeer:
    """Send 64 requests from a peer; return when the memory they need is held."""
    limiter = parts.part(role).limiter
    peer = await parts.peer(role)
    cnx = parts.cnx(peer, role)
    await peer.send(*(topics_command(number, space) for number in range(PIPELINED)))
    await until(
        lambda: limiter.pinned_by(cnx)[DIRECT] or limiter.available_permits(DIRECT) < COMMAND_BYTES,
        "the peer holds no direct memory",
    )
    await until_quiet()
    return peer


async def pass_seconds(clock: ManualClock, seconds: float) -> None:
    """Move the clock in steps and run the loop in between."""
    for _ in range(round(seconds * 10)):
        clock.advance(0.1)
        await settle()


async def is_reset(peer: RawPeer) -> bool:
    """Whether a peer that reads on gets the reset immediately."""
    try:
        while await asyncio.get_running_loop().sock_recv(peer._socket, MEGABYTE):
            pass
    except ConnectionResetError:
        return True
    return False


async def until_quiet() -> None:
    """Wait until the sockets have delivered everything."""
    for _ in range(200):
        await asyncio.sleep(0)


def direct(parts: Cluster, role: str) -> int:
    return parts.part(role).limiter.acquired_permits(DIRECT)


async def test_with_profile_pulsar_64_unread_listings_hold_the_recorded_memory() -> None:
    async with overload("pulsar", ManualClock()) as parts:
        limiter = parts.broker.limiter
        await stuck_peer(parts, "broker")
        await until(lambda: limiter.queue_size(DIRECT) == 2)
        # Two commands, two estimates, two waiters for direct memory, the rest for heap
        assert limiter.acquired_permits(DIRECT) == 2 * COMMAND_BYTES == 757_826
        assert limiter.acquired_permits(HEAP) == 2 * HEAP_BYTES == 997_780
        assert limiter.queue_size(HEAP) == PIPELINED - 4


@pytest.mark.parametrize(("pausing", "closed"), [("false", True), ("true", False)])
async def test_with_profile_pulsar_keep_alive_closes_a_stuck_peer_unless_it_is_paused(
    pausing: str, *, closed: bool
) -> None:
    clock = ManualClock()
    async with overload("pulsar", clock, keys={PAUSING: pausing}) as parts:
        peer = await stuck_peer(parts, "broker")
        cnx = parts.cnx(peer, "broker")
        # The recording has it closed 60 s after it connected
        clock.advance(59.9)
        await settle()
        assert not cnx.closed
        for _ in range(54):
            clock.advance(10)
            await settle()
        assert cnx.closed is closed
        assert (direct(parts, "broker") == 0) is closed


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
@pytest.mark.parametrize("pausing", ["false", "true"])
@pytest.mark.parametrize("leaves", ["FIN", "RST"])
async def test_a_stuck_peer_that_disconnects_releases_its_permits_within_half_a_second(
    profile: str, pausing: str, leaves: str
) -> None:
    clock = ManualClock()
    async with overload(profile, clock, keys={PAUSING: pausing}) as parts:
        peer = await stuck_peer(parts, "broker")
        cnx = parts.cnx(peer, "broker")
        if leaves == "FIN":
            peer._socket.shutdown(socket.SHUT_WR)
        else:
            peer.close()
        await pass_seconds(clock, 0.4)
        await until(lambda: cnx.closed)
        assert direct(parts, "broker") == parts.broker.limiter.acquired_permits(HEAP) == 0
        assert parts.broker.limiter.queue_size(HEAP) == 0


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("buffers", ["shared", "private"])
async def test_a_waiter_gets_the_permits_of_silent_peers_after_their_grace_period(
    role: str, buffers: str
) -> None:
    # Two lists fill the limit, and the permit's own timeout is as long as the grace
    clock = ManualClock()
    async with overload("floodgate", clock, role, {"floodgateResponseBuffers": buffers}) as parts:
        part = parts.part(role)
        stuck = [await stuck_peer(parts, role, space) for space in SPACES[1:]]
        ends = [parts.cnx(peer, role) for peer in stuck]
        assert direct(parts, role) >= 2 * COMMAND_BYTES
        healthy = await parts.peer(role, receive_buffer_bytes=1_000_000)
        cnx = parts.cnx(healthy, role)
        await healthy.send(topics_command(1, SPACES[0]))
        answer = asyncio.ensure_future(healthy.answer())
        await pass_seconds(clock, 2.9)
        assert not answer.done()
        assert part.flow.totals.closed[CloseReason.CONTENTION] == 0
        before = cnx.sender.written_bytes  # The keep-alive checks whether the peer reads.
        # The kernels run on real time: their traffic is progress, too.
        for _ in range(30):
            if cnx.sender.written_bytes == before:
                await pass_seconds(clock, 0.1)
                await until_quiet()
        await until(answer.done, f"{part.limiter.statistics()} {part.connections}")
        assert (await answer).type == pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
        assert part.flow.totals.closed[CloseReason.CONTENTION] >= 1
        closed = [peer for peer, one in zip(stuck, ends, strict=True) if one.closed]
        assert closed
        for peer in closed:
            assert await is_reset(peer)


@pytest.mark.parametrize("role", ROLES)
async def test_a_new_connection_is_probed_with_a_ping_while_silent_peers_are_closed(role) -> None:
    clock = ManualClock()
    async with overload("floodgate", clock, role) as parts:
        flow = parts.part(role).flow
        for space in SPACES[1:]:
            await stuck_peer(parts, role, space)
        healthy = await parts.peer(role, receive_buffer_bytes=1_000_000)
        await healthy.send(topics_command(1, SPACES[0]))
        for _ in range(60):
            if not flow.totals.closed[CloseReason.CONTENTION]:
                await pass_seconds(clock, 0.1)
                await until_quiet()
        fresh = await parts.peer(role)
        cnx, newcomers = parts.cnx(fresh, role), flow.slow_peers._unproven
        assert newcomers.waits(cnx)
        await pass_seconds(clock, 0.2)
        command = await fresh.command()
        assert command.type == pb.BaseCommand.PING
        assert newcomers.waits(cnx)
        await fresh.send(pong())
        await until(lambda: not newcomers.waits(cnx))


@pytest.mark.parametrize("role", ROLES)
async def test_a_silent_peer_is_not_closed_early_without_permit_waiters(role: str) -> None:
    clock = ManualClock()
    async with overload("floodgate", clock, role) as parts:
        peer = await stuck_peer(parts, role)
        cnx = parts.cnx(peer, role)
        await pass_seconds(clock, 20)
        assert not cnx.closed


@pytest.mark.parametrize("role", ROLES)
async def test_a_peer_that_reads_nothing_is_closed_after_a_minute_without_waiters(role) -> None:
    # Without keep-alive, so that only the rule under test ends it
    clock = ManualClock()
    keys = {"keepAliveIntervalSeconds": "0"}
    async with overload("floodgate", clock, role, keys) as parts:
        peer = await stuck_peer(parts, role)
        cnx = parts.cnx(peer, role)
        await pass_seconds(clock, 59)
        assert not cnx.closed
        # The kernels may still exchange a few bytes in real time.
        await until(lambda: clock.advance(0.5) or cnx.closed, "it was never closed")
        assert parts.part(role).flow.totals.closed[CloseReason.UNWRITABLE] == 1


@pytest.mark.parametrize("role", ROLES)
async def test_a_peer_that_reads_slowly_is_not_closed(role: str) -> None:
    # Two slow peers hold all, and a third waits beyond their grace
    clock = ManualClock()
    async with overload("floodgate", clock, role) as parts:
        slow = [await stuck_peer(parts, role, space) for space in SPACES[1:]]
        waiting = await parts.peer(role)
        await waiting.send(topics_command(1, SPACES[0]))
        cnxs = [parts.cnx(peer, role) for peer in slow]
        for _ in range(10):
            for peer in slow:
                await peer.read(20_000)
            await pass_seconds(clock, 1)
        assert [cnx.closed for cnx in cnxs] == [False, False]


async def test_a_ping_overtakes_the_requests_of_a_paused_peer() -> None:
    # Paused, with parked requests
    async with overload("floodgate", ManualClock()) as parts:
        peer = await stuck_peer(parts, "broker")
        cnx = parts.cnx(peer, "broker")
        assert cnx.gate.is_closed_for(PauseCause.OUTBOUND_BUFFER_FULL)
        parked, seen = len(cnx.intake), cnx.intake.frames_seen
        assert parked > 0
        await peer.send(ping(), ping())
        await until(lambda: cnx.intake.frames_seen == seen + 2)
        # The PINGs were not parked, and a single PONG answers both
        assert len(cnx.intake) == parked
        assert cnx._pong_is_queued


async def test_changed_water_marks_apply_to_open_and_new_connections() -> None:
    async with overload("floodgate", ManualClock()) as parts:
        peer = await stuck_peer(parts, "broker")
        unwritable = parts.cnx(peer, "broker")
        other = parts.cnx(await parts.peer("broker"), "broker")
        parts.broker.change_water_marks(WriteBufferMarks(MEGABYTE, MEGABYTE))
        later = parts.cnx(await parts.peer("broker"), "broker")
        assert not unwritable.outbound.writable
        for cnx in (other, later):
            cnx.enqueue([bytes(500_000)], 500_000)
            assert cnx.outbound.writable
