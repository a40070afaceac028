"""A client's faults cost other clients nothing."""

import asyncio
from collections.abc import Callable

import pytest

import proto.PulsarApi_pb2 as pb
from client.pulsar_client import PulsarClient
from proto.parsing.command_bounds import COMMAND_BYTES
from tests.support.peers.frames import frame
from tests.support.peers.raw_peer import RawPeer, lookup_command, partitions_command, topics_command
from tests.support.processes.cluster import broker_connection, cluster, topic_names

NAMES = topic_names("public/default", 50)
TOPICS = {"public/default": NAMES}
MALFORMED = 1_000
BATCH = 25
CLIENTS = 100
LISTINGS = 3
LENGTH_FIELDS_BYTES = 8


async def send_malformed(peer: RawPeer) -> list[pb.CommandError]:
    """Send the namespace ``public`` again and again."""
    errors: list[pb.CommandError] = []
    for start in range(0, MALFORMED, BATCH):
        await peer.send(*(topics_command(start + n, "public") for n in range(BATCH)))
        errors += [(await peer.command()).error for _ in range(BATCH)]
    return errors


async def list_often(client: PulsarClient) -> int:
    """List again and again; every answer must be right."""
    for _ in range(LISTINGS):
        listing = await client.topics_of_namespace("public/default")
        assert list(listing.topics) == NAMES
    return LISTINGS


@pytest.mark.parametrize(
    ("profile", "code", "text"),
    [
        ("pulsar", pb.ServiceNotReady, "Disconnected from server at "),
        ("floodgate", pb.InvalidTopicName, "public; expected tenant/namespace"),
    ],
)
async def test_malformed_namespaces_of_a_client_fail_no_listing_of_other_clients(
    profile: str, code: int, text: str
) -> None:
    # A broker that closes connections over a name
    as_shipped = {"floodgateProfile": "pulsar"}
    async with cluster(TOPICS, profile, broker=as_shipped) as parts:
        culprit = await parts.peer()
        async with asyncio.TaskGroup() as group:
            others = [group.create_task(list_often(parts.client())) for _ in range(CLIENTS)]
            errors = await send_malformed(culprit)
        assert sum(task.result() for task in others) == CLIENTS * LISTINGS
        assert sorted(error.request_id for error in errors) == list(range(MALFORMED))
        assert {error.error for error in errors} == {code}
        assert all(text in error.message for error in errors)


@pytest.mark.parametrize("build", [lookup_command, partitions_command, topics_command])
@pytest.mark.parametrize("spare_bytes", [0, 1, 2, 4, 8, 16])
async def test_a_request_of_the_largest_size_closes_no_shared_broker_connection(
    build: Callable[[int, str], pb.BaseCommand], spare_bytes: int
) -> None:
    async with cluster(TOPICS) as parts:
        peer, other = await parts.peer(), parts.client()
        await other.topics_of_namespace("public/default")
        before = await broker_connection(parts, peer)
        before._pending.next_id = 2**31
        name = "public/" + "x" * (COMMAND_BYTES - spare_bytes - 100)
        largest = COMMAND_BYTES - spare_bytes + LENGTH_FIELDS_BYTES
        name += "x" * (largest - len(frame(build(1, name))))
        await peer.send(build(1, name))
        await peer.command()
        assert not before.closed
        assert await broker_connection(parts, peer) is before
