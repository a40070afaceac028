"""Errors quote a peer's input as an excerpt: at most some hundred bytes."""

import pytest

import proto.PulsarApi_pb2 as pb
from proto.parsing.command_bounds import COMMAND_BYTES
from tests.support.peers.raw_peer import lookup_command, partitions_command, topics_command
from tests.support.processes.cluster import cluster

Type = pb.BaseCommand
ROLES = pytest.mark.parametrize("role", ["broker", "proxy"])
LONG = "\U000e0001" * (COMMAND_BYTES // 4 - 50)
"""A maximal command, with ten bytes a character once escaped."""
MOST_BYTES = 1_000
WATCH = pb.BaseCommand(
    type=Type.WATCH_TOPIC_LIST,
    watchTopicList=pb.CommandWatchTopicList(
        request_id=1, watcher_id=1, namespace=LONG, topics_pattern=".*"
    ),
)


@ROLES
@pytest.mark.parametrize(
    "command",
    [
        topics_command(1, LONG),
        topics_command(1, f"a/{LONG}"),
        lookup_command(1, f"persistent://{LONG}"),
        partitions_command(1, f"persistent://{LONG}"),
        lookup_command(1, f"a/b/c/d/{LONG}"),
    ],
    ids=["listing", "listing of a tenant", "lookup", "partitions", "lookup of five parts"],
)
async def test_a_malformed_name_is_answered_with_an_excerpt(role, command) -> None:
    async with cluster() as parts:
        peer = await parts.peer(role)
        await peer.send(command)
        assert len(await peer.frame()) <= MOST_BYTES


async def test_a_malformed_namespace_of_a_watch_is_answered_with_an_excerpt() -> None:
    async with cluster() as parts:
        peer = await parts.peer("broker")
        await peer.send(WATCH)
        assert len(await peer.frame()) <= MOST_BYTES


async def test_profile_pulsar_logs_only_an_excerpt_of_a_malformed_name(caplog) -> None:
    caplog.set_level("INFO")
    async with cluster(profile="pulsar") as parts:
        peer = await parts.peer("broker")
        await peer.send(topics_command(1, f"a/{LONG * 20}"))
        assert await peer.rest() == b""
    assert max(len(record.getMessage()) for record in caplog.records) <= 2_000
