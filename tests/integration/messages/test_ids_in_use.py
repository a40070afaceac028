"""Ids of producers and consumers in use on a connection, asked for again."""

import pytest

import proto.PulsarApi_pb2 as pb
from tests.support.peers.message_peer import MessagePeer
from tests.support.processes.cluster import cluster

T, U = "persistent://public/default/t", "persistent://public/default/u"
SUCCESSES = (pb.BaseCommand.SUCCESS, pb.BaseCommand.PRODUCER_SUCCESS)


@pytest.mark.parametrize(("profile", "refused"), [("pulsar", False), ("floodgate", True)])
async def test_an_id_in_use_is_refused_for_another_topic_except_in_profile_pulsar(
    profile: str, refused: bool
) -> None:
    async with cluster(profile=profile) as parts:
        peer = await MessagePeer.connect(parts.broker.service_url)
        for topic in (T, U):
            await peer.lookup(topic)
        await peer.producer(T)
        await peer.subscribe(T)
        others = [
            await peer.producer(U),
            await peer.subscribe(U),
            await peer.subscribe(T, "another subscription"),
        ]
        same = [await peer.producer("t"), await peer.subscribe("public/default/t")]
        peer.close()
    assert [one.error.error == pb.NotAllowedError for one in others] == [refused] * 3
    assert all("/t: close that" in one.error.message for one in others) is refused
    assert all(one.type in SUCCESSES for one in same)
