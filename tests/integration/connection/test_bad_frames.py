"""A peer that breaks the protocol is closed; other clients are served, nothing is lost."""

import struct

import pytest

import proto.PulsarApi_pb2 as pb
from proto.parsing.varint import encode_varint
from tests.support.peers.frames import frame, ping
from tests.support.peers.raw_peer import (
    connect_command,
    lookup_command,
    partitions_command,
    topics_command,
)
from tests.support.processes.cluster import cluster, topic_names, until

NAMES = topic_names("public/default", 20)
TOPICS = {"public/default": NAMES}
ROLES = ["broker", "proxy"]
PROFILES = ["pulsar", "floodgate"]
LIMIT = 5_242_880 + 10_236
SUCCESS = pb.BaseCommand(type=pb.BaseCommand.SUCCESS, success=pb.CommandSuccess(request_id=1))
NOT_UTF8 = frame(topics_command(1, "ab/cd")).replace(b"ab/cd", b"\xff\xfe/cd")


def bodiless(kind: int) -> bytes:
    return frame(pb.BaseCommand(type=kind))


BROKEN = {
    "length above the limit": struct.pack(">I", LIMIT + 1),
    "largest length": b"\xff\xff\xff\xff",
    "no room for a command": struct.pack(">I", 0),
    "three bytes": struct.pack(">I", 3) + b"abc",
    "command longer than its frame": struct.pack(">II", 8, 5) + b"abcd",
    "not protobuf": struct.pack(">II", 12, 8) + b"\xff" * 8,
    "no type": struct.pack(">II", 4, 0),
    "unknown type": struct.pack(">II", 7, 3) + b"\x08\xff\x01",
    "an answer": frame(SUCCESS),
    "not UTF-8": NOT_UTF8,
    "LOOKUP without body": bodiless(pb.BaseCommand.LOOKUP),
    "PARTITIONED_METADATA without body": bodiless(pb.BaseCommand.PARTITIONED_METADATA),
    "GET_TOPICS without body": bodiless(pb.BaseCommand.GET_TOPICS_OF_NAMESPACE),
    "second CONNECT": frame(connect_command()),
    "lacks a required field": frame(
        pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=pb.CommandLookupTopic(topic="any"))
    ),
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
async def test_a_broken_frame_closes_its_own_connection_only(role: str, broken: bytes) -> None:
    async with cluster(TOPICS) as parts:
        bystander = parts.client(role)
        await bystander.topics_of_namespace("public/default")
        culprit = await parts.peer(role)
        await culprit.send_bytes(broken)
        assert await culprit.rest() == b""
        listing = await bystander.topics_of_namespace("public/default")
        assert list(listing.topics) == NAMES


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("sent", [1, 3, 4, 7, 8, 20])
async def test_a_frame_cut_off_by_a_disconnect_disturbs_no_client(role: str, sent: int) -> None:
    async with cluster(TOPICS) as parts:
        culprit = await parts.peer(role)
        cnx = parts.cnx(culprit, role)
        await culprit.send_bytes(frame(topics_command(1, "public/default"))[:sent])
        culprit.close()
        await until(lambda: cnx.closed)
        listing = await parts.client(role).topics_of_namespace("public/default")
        assert list(listing.topics) == NAMES


@pytest.mark.parametrize("role", ROLES)
async def test_profile_pulsar_accepts_a_command_of_the_largest_frame_size(role: str) -> None:
    async with cluster(TOPICS, "pulsar") as parts:
        peer = await parts.peer(role)
        largest = ping()
        padding = LIMIT - 4 - len(frame(largest)) - 100
        largest.ping.MergeFromString(b"\xfa\x07" + encode_varint(padding) + b"x" * padding)
        missing = LIMIT + 4 - len(frame(largest))
        rest = missing - 3
        largest.ping.MergeFromString(b"\xf2\x07" + encode_varint(rest) + b"y" * rest)
        assert len(frame(largest)) == LIMIT + 4
        await peer.send(largest)
        assert (await peer.command()).type == pb.BaseCommand.PONG


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "command",
    [
        lookup_command(1, NAMES[0]),
        partitions_command(1, NAMES[0]),
        topics_command(1, "public/default"),
        SUCCESS,
    ],
    ids=lambda command: pb.BaseCommand.Type.Name(command.type),
)
async def test_a_command_before_connect_disconnects(role: str, command: pb.BaseCommand) -> None:
    async with cluster(TOPICS) as parts:
        stranger = await parts.stranger(role)
        await stranger.send(command)
        assert await stranger.rest() == b""


@pytest.mark.parametrize("role", ROLES)
async def test_before_connect_ping_is_answered_and_pong_ignored(role: str) -> None:
    async with cluster(TOPICS) as parts:
        stranger = await parts.stranger(role)
        pong = pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong())
        await stranger.send(pong, ping(), connect_command())
        assert (await stranger.command()).type == pb.BaseCommand.PONG
        assert (await stranger.command()).type == pb.BaseCommand.CONNECTED


async def test_the_proxy_closes_a_connection_with_a_protocol_version_below_10() -> None:
    async with cluster(TOPICS) as parts:
        stranger = await parts.stranger("proxy")
        await stranger.send(connect_command(protocol_version=9))
        assert await stranger.rest() == b""


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("role", ROLES)
async def test_a_connection_closed_during_its_requests_leaves_nothing_pending(
    role: str, profile: str
) -> None:
    async with cluster({"public/default": topic_names("public/default", 5_000)}, profile) as parts:
        peer = await parts.peer(role)
        cnx = parts.cnx(peer, role)
        requests = b"".join(frame(topics_command(n, "public/default")) for n in range(5))
        await peer.send_bytes(requests + BROKEN["not protobuf"])
        await until(lambda: cnx.closed)
        assert parts.part(role).lookups.pending_requests == 0
        assert parts.part(role).totals.pending_bytes == 0
