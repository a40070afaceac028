"""Non-reading publishers and subscribers, beside reading clients."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import digest_of, parse_metadata
from broker.messages.topic import PersistentTopic
from limiter.flow.causes import PauseCause
from proto.frames import encode_payload_command
from proto.names import TopicName
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.peers.raw_peer import RawPeer
from tests.support.processes.cluster import Cluster, cluster
from tests.support.subscriptions.messages import message

Type = pb.BaseCommand
HIGH, LOW = 65_536, 32_768
GATHERED = 65_536
"""Limit of a turn's messages before they are written."""
KEYS = {
    "floodgateSocketSendBufferBytes": "16384",
    "pulsarChannelWriteBufferHighWaterMark": str(HIGH),
    "pulsarChannelWriteBufferLowWaterMark": str(LOW),
}
KINDS = ("Exclusive", "Shared", "Key_Shared", "Failover")


async def stored(parts: Cluster, name: str, sizes: list[int]) -> None:
    topic = await parts.broker.messaging.loaded_topics.get(
        TopicName.parse(f"persistent://public/default/{name}"), create=True
    )
    assert isinstance(topic, PersistentTopic)
    for size in sizes:
        data = message(bytes(size), key="k")
        topic.ledger.append(data, digest_of(parse_metadata(data)))


class Watched:
    """A client, and the broker's side of it from the beginning.

    Attributes:
        peak_bytes: Maximum of pending bytes.
        unwritable: Set above the high mark.
    """

    def __init__(self, parts: Cluster, peer: RawPeer) -> None:
        self.peer = peer
        self.cnx = parts.cnx(peer, "broker")
        self.peak_bytes = 0
        self.unwritable = asyncio.Event()
        self._weigh = self.cnx.outbound.weigh
        self._mark_crossed = self.cnx.writability_changed
        self.cnx.outbound.weigh = self._weighed
        self.cnx.writability_changed = self._crossed

    def _weighed(self, *sizes: int) -> None:
        self._weigh(*sizes)
        self.peak_bytes = max(self.peak_bytes, self.cnx.outbound.pending_bytes)

    def _crossed(self, *, writable: bool) -> None:
        self._mark_crossed(writable=writable)
        if not writable:
            self.unwritable.set()


async def subscribed(parts: Cluster, topic: str, kind: str, subscription: str) -> Watched:
    """Return a client with a consumer of ample permits."""
    peer = await parts.peer("broker", receive_buffer_bytes=4_096)
    watched = Watched(parts, peer)
    asked = pb.CommandSubscribe(
        topic=f"persistent://public/default/{topic}",
        subscription=subscription,
        subType=pb.CommandSubscribe.SubType.Value(kind),
        consumer_id=1,
        request_id=1,
        initialPosition=pb.CommandSubscribe.Earliest,
    )
    await peer.send(Type(type=Type.SUBSCRIBE, subscribe=asked))
    flow = pb.CommandFlow(consumer_id=1, messagePermits=100_000)
    while (await peer.command()).type != Type.SUCCESS:
        pass
    await peer.send(Type(type=Type.FLOW, flow=flow))
    return watched


async def produced(parts: Cluster, name: str) -> RawPeer:
    peer = await parts.peer("broker", receive_buffer_bytes=4_096)
    topic = f"persistent://public/default/{name}"
    asked = pb.CommandProducer(topic=topic, producer_id=1, request_id=1)
    await peer.send(Type(type=Type.PRODUCER, producer=asked))
    assert (await peer.command()).type == Type.PRODUCER_SUCCESS
    return peer


def send(sequence_id: int) -> bytes:
    sent = pb.CommandSend(producer_id=1, sequence_id=sequence_id, num_messages=1)
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=sequence_id, publish_time=1)
    return encode_payload_command(
        Type(type=Type.SEND, send=sent), metadata.SerializeToString(), b"x"
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1_000, 100_000, 5_000_000])
async def test_pending_bytes_for_a_consumer_that_does_not_read_are_bounded(kind, size) -> None:
    clock = ManualClock()
    async with cluster(broker=KEYS, clock=clock) as parts:
        await stored(parts, "large", [size] * max(3, 4_000_000 // size))
        # And the active consumer of a Failover subscription is chosen
        clients = [await subscribed(parts, "large", kind, f"s-{one}") for one in range(3)]
        clock.advance(1)
        for client in clients:
            await client.unwritable.wait()
        await settle()
        assert max(client.peak_bytes for client in clients) <= HIGH + GATHERED + size + 1_000


async def test_only_the_producer_with_unread_receipts_is_paused() -> None:
    async with cluster(broker=KEYS) as parts:
        silent, healthy = await produced(parts, "silent"), await produced(parts, "healthy")
        cnx, other = parts.cnx(silent, "broker"), parts.cnx(healthy, "broker")
        sent = 0
        while cnx.outbound.writable:
            await silent.send_bytes(b"".join(send(sent + one) for one in range(100)))
            sent += 100
            await settle()
        assert cnx.gate.is_closed_for(PauseCause.OUTBOUND_BUFFER_FULL)
        await healthy.send_bytes(send(0))
        assert (await healthy.command()).send_receipt.sequence_id == 0
        assert other.gate.open
        # Reading again, it has every receipt.
        found = [(await silent.command()).send_receipt.sequence_id for _ in range(sent)]
        assert found == list(range(sent))


async def test_a_connection_that_does_not_read_its_deliveries_is_paused() -> None:
    async with cluster(broker=KEYS) as parts:
        await stored(parts, "large", [100_000] * 20)
        silent = await subscribed(parts, "large", "Shared", "s")
        other = await subscribed(parts, "large", "Shared", "s")
        await silent.unwritable.wait()
        assert silent.cnx.gate.is_closed_for(PauseCause.OUTBOUND_BUFFER_FULL)
        assert (await other.peer.command()).type == Type.MESSAGE
