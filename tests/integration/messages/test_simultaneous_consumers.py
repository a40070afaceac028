"""Consumers that subscribe at the same time."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from broker.commands import subscribing
from tests.support.peers.message_peer import MessagePeer
from tests.support.processes.cluster import cluster


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
async def test_simultaneous_consumers_do_not_exceed_the_maximum_of_a_topic(
    domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, both_opened = f"{domain}://public/default/t", asyncio.Barrier(2)

    async def meet(*_: object) -> None:
        await both_opened.wait()

    monkeypatch.setattr(subscribing, "displace_dead", meet)
    async with cluster(broker={"maxConsumersPerTopic": "1"}) as parts:
        peers = [await MessagePeer.connect(parts.broker.service_url) for _ in "ab"]
        await peers[0].lookup(topic)
        answers = await asyncio.gather(
            *(peer.subscribe(topic, name) for peer, name in zip(peers, "ab", strict=True))
        )
        for peer in peers:
            peer.close()
    assert {one.type for one in answers} == {pb.BaseCommand.SUCCESS, pb.BaseCommand.ERROR}
    (refused,) = [one.error for one in answers if one.type == pb.BaseCommand.ERROR]
    assert refused.message == "Topic reached max consumers limit"
