"""Request ids of every width survive the proxy, in both directions."""

import pytest

import proto.PulsarApi_pb2 as pb
from proto.parsing.varint import encode_varint
from tests.support.peers.raw_peer import lookup_command, partitions_command, topics_command
from tests.support.processes.cluster import broker_connection, cluster, topic_names

NAMES = topic_names("public/default", 100)
TOPICS = {"public/default": NAMES}
NARROWEST_AND_WIDEST = [
    (width, value)
    for width in range(1, 10)
    for value in (2 ** (7 * (width - 1)) if width > 1 else 0, 2 ** (7 * width) - 1)
] + [(10, 2**63), (10, 2**64 - 1)]


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_every_answer_carries_the_clients_request_id(profile: str) -> None:
    async with cluster(TOPICS, profile) as parts:
        peer = await parts.peer()
        for width, request_id in NARROWEST_AND_WIDEST:
            assert len(encode_varint(request_id)) == width
            await peer.send(topics_command(request_id, "public/default"))
            listing = (await peer.command()).getTopicsOfNamespaceResponse
            await peer.send(lookup_command(request_id, NAMES[0]))
            lookup = (await peer.command()).lookupTopicResponse
            await peer.send(partitions_command(request_id, NAMES[0]))
            partitions = (await peer.command()).partitionMetadataResponse
            assert [listing.request_id, lookup.request_id, partitions.request_id] == [
                request_id
            ] * 3
            assert list(listing.topics) == NAMES
            assert lookup.response == pb.CommandLookupTopicResponse.Connect
            assert partitions.response == pb.CommandPartitionedTopicMetadataResponse.Success


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_every_error_carries_the_clients_request_id(profile: str) -> None:
    async with cluster(TOPICS, profile) as parts:
        peer = await parts.peer()
        for _, request_id in NARROWEST_AND_WIDEST:
            await peer.send(topics_command(request_id, "public/default", topics_pattern="["))
            error = (await peer.command()).error
            assert error.request_id == request_id


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
@pytest.mark.parametrize(("width", "own_id"), NARROWEST_AND_WIDEST)
async def test_the_proxys_own_request_ids_may_have_every_width(profile, width, own_id) -> None:
    async with cluster(TOPICS, profile) as parts:
        peer = await parts.peer()
        broker = await broker_connection(parts, peer)
        broker._pending.next_id = own_id
        await peer.send(topics_command(3, "public/default"))
        listing = (await peer.command()).getTopicsOfNamespaceResponse
        assert broker.last_request_id == own_id
        assert listing.request_id == 3
        assert list(listing.topics) == NAMES
