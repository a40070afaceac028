"""SIGTERM's drain beneath producers and consumers: receipts leave, and both are sent away."""

import asyncio
import logging
from pathlib import Path

import pytest

import proto.PulsarApi_pb2 as pb
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.message_peer import MessagePeer
from tests.support.peers.raw_peer import topics_command
from tests.support.processes.cluster import cluster, until

TOPIC = "persistent://public/default/drained"
COUNT = 200
Type = pb.BaseCommand


async def kinds_until_the_end(peer: MessagePeer) -> list[int]:
    """Return the received types until the connection ends."""
    kinds = []
    try:
        while True:
            kinds.append((await peer.raw.command()).type)
    except EOFError:
        return kinds
    finally:
        peer.close()


async def test_send_receipts_are_sent_before_the_producer_is_closed(tmp_path: Path) -> None:
    store = {"floodgateMessageStore": f"sqlite://{tmp_path}/messages.db"}
    async with cluster(broker=store) as parts:
        peer = await MessagePeer.connect(parts.broker.service_url)
        await peer.producer(TOPIC)
        for number in range(COUNT):
            await peer.publish(number, b"x")
        (topic,) = parts.broker.messaging.loaded_topics
        await until(lambda: topic.statistics.messages == COUNT)
        await parts.broker.__aexit__(None, None, None)
        assert await kinds_until_the_end(peer) == [Type.SEND_RECEIPT] * COUNT + [
            Type.CLOSE_PRODUCER
        ]


async def test_a_drain_sends_close_consumer() -> None:
    async with cluster() as parts:
        peer = await MessagePeer.connect(parts.broker.service_url)
        await peer.subscribe(TOPIC)
        await parts.broker.__aexit__(None, None, None)
        assert await kinds_until_the_end(peer) == [Type.CLOSE_CONSUMER]


async def test_a_drain_logs_its_connections_producers_and_consumers(caplog) -> None:
    clock = ManualClock()
    async with cluster(clock=clock) as parts:
        peer = await MessagePeer.connect(parts.broker.service_url)
        await peer.subscribe(TOPIC)
        with caplog.at_level(logging.INFO, "server.service"):
            await parts.broker.__aexit__(None, None, None)
        peer.close()
    assert [record.getMessage() for record in caplog.records] == [
        "the drain begins (connections: 1, producers: 0, consumers: 1); it may take 5 s",
        "the drain ended after 0.0 s; left were (connections: 0, producers: 0, consumers: 0)",
    ]


async def test_while_topics_close_listings_are_answered_and_messages_not_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster() as parts:
        peer = await MessagePeer.connect(parts.broker.service_url)
        await peer.producer(TOPIC)
        flushing, go_on = asyncio.Event(), asyncio.Event()

        async def flushed() -> None:
            flushing.set()
            await go_on.wait()

        monkeypatch.setattr(parts.broker.messaging.loaded_topics, "flushed", flushed)
        leave = parts.broker.__aexit__(None, None, None)
        draining = asyncio.get_running_loop().create_task(leave)
        await flushing.wait()
        await peer.publish(0, b"too late")
        await peer.raw.send(topics_command(1, "public/default"))
        answer = await peer.raw.command()
        go_on.set()
        assert list(answer.getTopicsOfNamespaceResponse.topics) == [TOPIC]
        assert await kinds_until_the_end(peer) == [Type.CLOSE_PRODUCER]
        await draining
