"""Rules for a peer reading byte by byte: memory and sockets, plain and TLS."""

import struct

import pytest

import proto.PulsarApi_pb2 as pb
from limiter.clock import LoopClock
from limiter.flow.outbound_buffer import ENTRY_OVERHEAD_BYTES, WriteBufferMarks
from proto.frames import encode_command
from proto.parsing.parser import parse_command
from tests.support.clocks.settle import settle
from tests.support.peers.controlled_peer import (
    LINKS,
    PING_FRAME,
    PING_ID,
    SMALL_BUFFER_BYTES,
    ControlledPeer,
    Flow,
    Link,
    batch_ends,
    controlled_peer,
    lookup_frames,
    peer_of,
    until,
)
from tests.support.peers.raw_peer import connect_command, topics_command
from tests.support.processes.cluster import cluster, topic_names

ALL_LINKS = pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
SIZES = [300_000, 10, 70_000, 20_000, 30_000, 500, 200_000, 65_536, 65_537, 500_000, 96, 400_000]
STEPS = (1, 7, 4_096, 100_003)
MARKS = WriteBufferMarks(high_bytes=1_000_000, low_bytes=500_000)
REQUESTS = 128


@ALL_LINKS
async def test_after_each_read_pending_bytes_count_exactly_the_unsent_entries(link) -> None:
    async with controlled_peer(link, Flow(MARKS)) as (connection, peer):
        data = [bytes([number + 1]) * size for number, size in enumerate(SIZES)]
        for number, one in enumerate(data):
            connection.queue(str(number), one)
        ends = [sum(SIZES[: number + 1]) for number in range(len(SIZES))]
        step = 0
        while len(peer.received) < ends[-1]:
            size = min(STEPS[step % len(STEPS)], ends[-1] - len(peer.received))
            await peer.reads(size)
            step += 1
            # Then in order, and no entry before the kernel has, or the peer, its last byte
            gone = len(connection.left)
            assert connection.left == [str(number) for number in range(gone)]
            assert connection.totals.pending_bytes == weight(SIZES[gone:])
            assert gone == 0 or ends[gone - 1] <= len(peer.received) + ahead(link)
            assert connection.outbound.writable is (len(connection.writability) != 1)
            assert connection.gate.open is connection.outbound.writable
        await until(lambda: len(connection.left) == len(SIZES), "the last entry left")
        assert connection.writability == [False, True]
        assert connection.totals.pending_bytes == 0
        assert bytes(peer.received) == b"".join(data)


def weight(sizes: list[int]) -> int:
    return sum(size + ENTRY_OVERHEAD_BYTES for size in sizes)


def ahead(link: Link) -> int:
    """Return an entry's largest lead over the peer: with TLS, a record more."""
    return link.swallowed_bytes + 16_384 * link.tls


@ALL_LINKS
async def test_every_entry_that_the_peer_has_read_completely_is_released(link: Link) -> None:
    async with controlled_peer(link, Flow(MARKS)) as (connection, peer):
        for number, size in enumerate(SIZES):
            connection.queue(str(number), bytes(size))
        for end in sorted(set(batch_ends(SIZES))):
            await peer.reads(end - len(peer.received))
            read = sum(one <= end for one in batch_ends(SIZES))
            await until(lambda read=read: len(connection.left) >= read, f"{read} entries left")


@ALL_LINKS
async def test_entries_beyond_the_kernel_buffer_stay_pending_until_read(link: Link) -> None:
    async with controlled_peer(link, Flow(MARKS)) as (connection, peer):
        for number in range(20):
            connection.queue(str(number), bytes(100_000))
        # When a peer reads a little
        await peer.reads(50_000)
        await settle()
        most = (50_000 + ahead(link)) // 100_000
        assert len(connection.left) <= most
        assert connection.totals.pending_bytes >= (20 - most) * 100_096


@ALL_LINKS
async def test_a_paused_connection_resumes_requests_once_its_answers_are_read(link: Link) -> None:
    async with controlled_peer(link, Flow(MARKS)) as (connection, peer):
        connection.queue("answer", bytes(2_000_000))
        await peer.sends(lookup_frames(1, 2) + PING_FRAME)
        await peer.reads(1_000_000)
        await settle()
        while_paused = list(connection.taken)
        await peer.reads(1_000_000)
        await until(lambda: connection.taken, "a request was taken")
        await until(lambda: len(connection.taken) == 3, "all were taken")
        assert while_paused == []
        assert connection.taken == [1, 2, PING_ID]


@ALL_LINKS
async def test_a_ping_overtakes_parked_lookups_on_a_paused_connection(link: Link) -> None:
    async with controlled_peer(link, Flow(MARKS, parks=True)) as (connection, peer):
        connection.queue("answer", bytes(2_000_000))
        await peer.sends(lookup_frames(1, 2) + PING_FRAME)
        await until(lambda: connection.taken, "the PING was taken")
        while_paused = list(connection.taken)
        await peer.reads(2_000_000)
        await until(lambda: len(connection.taken) == 3, "all were taken")
        assert while_paused == [PING_ID]
        assert connection.taken == [PING_ID, 1, 2]


@ALL_LINKS
@pytest.mark.parametrize("leave", [ControlledPeer.closes, ControlledPeer.resets])
async def test_a_disconnect_releases_all_pending_entries_before_it_is_reported(
    link: Link, leave: object
) -> None:
    async with controlled_peer(link, Flow(MARKS, pauses=False)) as (connection, peer):
        for name in ("a", "b", "c"):
            connection.queue(name, bytes(700_000))
        await peer.reads(100_000)
        held = connection.totals.pending_bytes
        assert callable(leave)
        leave(peer)
        await until(lambda: connection.closed, "the connection is gone")
        assert held == 3 * 700_096
        assert connection.end == (["a", "b", "c"], 0)


@pytest.mark.parametrize("link", [one for one in LINKS if one.sockets], ids=lambda one: one.name)
@pytest.mark.parametrize("leave", [ControlledPeer.closes, ControlledPeer.resets])
async def test_a_disconnect_of_a_paused_peer_is_noticed_within_half_a_second(
    link: Link, leave: object
) -> None:
    flow = Flow(MARKS)
    async with controlled_peer(link, flow) as (connection, peer):
        # Given requests that lie unread behind an answer that the peer does not read
        connection.queue("answer", bytes(2_000_000))
        await peer.sends(lookup_frames(1, 2, 3))
        assert callable(leave)
        leave(peer)
        await settle()
        flow.clock.advance(0.5)
        await until(lambda: connection.closed, "the connection is gone")
        assert connection.end == (["answer"], 0)
        assert connection.taken == []
        assert set(connection.flow_totals.connections.values()) == {0}


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_a_peer_that_reads_late_receives_all_its_pipelined_listings(profile: str) -> None:
    """Upstream: PatternConsumerBackPressureTest case 1, scaled down."""
    # Given a high mark of 1 MiB, a low one of 32 KiB, and answers of 4.2 MB in all
    names = topic_names("public/default", 512, name_bytes=64)
    keys = {
        "pulsarChannelWriteBufferHighWaterMark": "1048576",
        "pulsarChannelWriteBufferLowWaterMark": "32768",
        "pulsarChannelPauseReceivingRequestsIfUnwritable": "true",
        "enableBrokerSideSubscriptionPatternEvaluation": "false",
        "floodgateSocketSendBufferBytes": str(SMALL_BUFFER_BYTES),
    }
    async with (
        cluster({"public/default": names}, profile, broker=keys, clock=LoopClock()) as parts,
        peer_of(parts.broker.service_url) as peer,
    ):
        await peer.sends(encode_command(connect_command()))
        assert (await next_command(peer)).type == pb.BaseCommand.CONNECTED
        ids = range(1, REQUESTS + 1)
        for number in ids:
            await peer.sends(encode_command(topics_command(number, "public/default")))
        await until(lambda: parts.broker.totals.pending_bytes > 1_048_576, "it is unwritable")
        answers = [await next_command(peer) for _ in ids]
        found = [one.getTopicsOfNamespaceResponse for one in answers]
        assert sorted(one.request_id for one in found) == list(ids)
        assert all(list(one.topics) == names for one in found)


async def next_command(peer: ControlledPeer) -> pb.BaseCommand:
    (size,) = struct.unpack(">I", await peer.reads(4))
    return parse_command((await peer.reads(size))[4:])
