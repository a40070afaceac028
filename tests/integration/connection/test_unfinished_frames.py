"""Unfinished frames have a process-wide bound and cost healthy publishers nothing."""

import logging
import struct

import pytest

import proto.PulsarApi_pb2 as pb
from client.client import Client
from server.limits.clients import ClientLimits
from server.limits.connections import Limit
from tests.support.peers.frames import frame, ping
from tests.support.peers.raw_peer import RawPeer, connect_command
from tests.support.processes.cluster import cluster, until

ROLES = pytest.mark.parametrize("role", ["broker", "proxy"])
TOPIC = "persistent://public/default/healthy"
MEGABYTE = 1024 * 1024
KEPT = 60_000
ATTACKERS, BOUND_MB = 12, 8
LARGE = bytes(range(256)) * (5 * 1024 * 4 - 8)
"""A maximal message, except metadata."""


def all_but_the_end(size_bytes: int) -> bytes:
    """Return a PING frame with a payload and a missing last byte."""
    body = frame(ping())[4:]
    return struct.pack(">I", size_bytes) + body + bytes(size_bytes - len(body) - 1)


@ROLES
async def test_the_oldest_unfinished_frames_above_the_limit_close_and_publishing_continues(
    role: str, caplog: pytest.LogCaptureFixture
) -> None:
    keys = {"floodgateMaxUnfinishedFramesMB": str(BOUND_MB)}
    async with cluster(both=keys) as parts:
        limits = parts.part(role).flow.limits
        async with Client(parts.part(role).service_url) as client:
            producer = await client.create_producer(TOPIC)
            consumer = await client.subscribe(TOPIC, "s")
            # One after the other, so that the first is the oldest
            peers = []
            for number in range(ATTACKERS):
                peer = await parts.peer(role)
                await peer.send_bytes(all_but_the_end(MEGABYTE))
                peers.append(peer)
                kept = min(number + 1, BOUND_MB) * (MEGABYTE - 1)
                await until(lambda kept=kept: limits.unfinished.kept_bytes == kept)
            await producer.send(LARGE)
            assert (await consumer.receive()).data() == LARGE
            assert limits.unfinished.kept_bytes <= BOUND_MB * MEGABYTE
        closed = limits.refusals.counts[Limit.UNFINISHED_FRAMES]
        assert ATTACKERS - BOUND_MB <= closed < ATTACKERS
        for peer in peers[:closed]:
            assert await peer.rest() == b""
        # and an open connection may end its frame
        await peers[-1].send_bytes(b"\x00")
        assert (await peers[-1].command()).type == ping().PONG
        told = [one for one in caplog.records if "floodgateMaxUnfinishedFramesMB" in one.message]
        assert len(told) == closed
        assert all(one.levelno == logging.WARNING for one in told)
        for peer in peers:
            peer.close()
        await until(lambda: limits.unfinished.kept_bytes == 0)


@ROLES
async def test_profile_pulsar_does_not_limit_unfinished_frames(role: str) -> None:
    async with cluster(profile="pulsar") as parts:
        unfinished = parts.part(role).flow.limits.unfinished
        await (await parts.peer(role)).send_bytes(all_but_the_end(MEGABYTE))
        await until(lambda: unfinished.kept_bytes == MEGABYTE - 1)
        assert unfinished.max_bytes == 0


@ROLES
@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_connections_before_connect_share_a_byte_limit(role: str, profile: str) -> None:
    async with cluster(profile=profile) as parts:
        limits = parts.part(role).flow.limits
        limits.first.max_bytes = 10 * KEPT
        peers = [await RawPeer.connect(parts.part(role).service_url) for _ in range(15)]
        for number, peer in enumerate(peers):
            await peer.send_bytes(all_but_the_end(KEPT + 1))
            kept = min(number + 1, 10) * KEPT
            await until(lambda kept=kept: limits.first.kept_bytes == kept)
        for peer in peers[:5]:
            assert await peer.rest() == b""
        assert limits.refusals.counts[Limit.UNFINISHED_FRAMES] == 5
        # Identified clients stop counting, and clients identified before never counted.
        await parts.peer(role)
        other = await RawPeer.connect(parts.part(role).service_url)
        hello = frame(connect_command())
        hello = struct.pack(">I", len(hello) - 4 + 2_000) + hello[4:] + bytes(1_999)
        await other.send_bytes(hello)
        await until(lambda: limits.refusals.counts[Limit.UNFINISHED_FRAMES] == 6)
        await other.send_bytes(b"\0" + frame(ping()))
        assert [(await other.command()).type for _ in range(2)] == [
            pb.BaseCommand.CONNECTED,
            pb.BaseCommand.PONG,
        ]
        await until(lambda: limits.first.kept_bytes == 9 * KEPT)
        for peer in (*peers, other):
            peer.close()
        await until(lambda: limits.first.kept_bytes == 0)


def test_the_limit_of_connections_before_connect_is_16_mib_by_default() -> None:
    assert ClientLimits().first.max_bytes == 16 * MEGABYTE
