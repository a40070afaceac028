"""Entries between the official Python client and this client, in both directions."""

import asyncio
import random
from collections.abc import Callable, Sequence

import pulsar
import pytest

import proto.PulsarApi_pb2 as pb
from client.connection.cnx import ClientCnx
from client.messages.batch import BatchBuilder
from client.messages.chunked_message import ChunkedMessage
from client.messages.chunks import ChunkAssembly
from client.messages.entry import Entry, EntrySource, read_entry
from client.messages.enums import CompressionType
from client.messages.message import Message
from client.messages.message_id import MessageId
from client.messages.outgoing import OutgoingEntry, OutgoingMessage, SendingProducer, message_entry
from limiter.clock import LoopClock
from proto.frames import Frame
from tests.official.test_official_client import with_client
from tests.support.messages.entries import BYTES
from tests.support.processes.cluster import Cluster, cluster

pytestmark = pytest.mark.official

TOPIC = "persistent://public/default/entries"
NOW = 1_700_000_000_000
SOURCE = EntrySource(TOPIC, BYTES)
COMPRESSIONS = list(CompressionType)
LARGE = random.Random(15).randbytes(12_000_000)


class KeptEntries:
    def __init__(self) -> None:
        self.came: asyncio.Queue[Entry] = asyncio.Queue()

    def message_received(self, message: pb.CommandMessage, frame: Frame) -> None:
        self.came.put_nowait(read_entry(message, frame, SOURCE))

    def active_changed(self, *, is_active: bool) -> None: ...
    def end_of_topic_reached(self) -> None: ...
    def closed_by_broker(self, assigned_url: str | None) -> None: ...
    def connection_lost(self) -> None: ...


class KeptReceipts:
    def __init__(self) -> None:
        self.came: asyncio.Queue[pb.CommandSendReceipt] = asyncio.Queue()

    def receipt_received(self, receipt: pb.CommandSendReceipt) -> None:
        self.came.put_nowait(receipt)

    def send_refused(self, error: pb.CommandSendError) -> None: ...
    def closed_by_broker(self, assigned_url: str | None) -> None: ...
    def connection_lost(self) -> None: ...


async def subscribe(cnx: ClientCnx, permits: int = 1_000) -> asyncio.Queue[Entry]:
    """Subscribe at the beginning of the topic; return the queue of entries."""
    kept = KeptEntries()
    cnx.attached.consumers[1] = kept
    subscribe = pb.CommandSubscribe(topic=TOPIC, subscription="s", consumer_id=1)
    subscribe.subType = pb.CommandSubscribe.Exclusive
    subscribe.initialPosition = pb.CommandSubscribe.Earliest

    def build(request_id: int) -> pb.BaseCommand:
        subscribe.request_id = request_id
        return pb.BaseCommand(type=pb.BaseCommand.SUBSCRIBE, subscribe=subscribe)

    await cnx.request(build)
    flow = pb.CommandFlow(consumer_id=1, messagePermits=permits)
    cnx.send(pb.BaseCommand(type=pb.BaseCommand.FLOW, flow=flow))
    return kept.came


async def publish(cnx: ClientCnx, entries: Sequence[OutgoingEntry]) -> list[MessageId]:
    """Publish entries; return the ids in their receipts."""
    kept = KeptReceipts()
    cnx.attached.producers[1] = kept
    producer = pb.CommandProducer(topic=TOPIC, producer_id=1, producer_name="ours")

    def build(request_id: int) -> pb.BaseCommand:
        producer.request_id = request_id
        return pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=producer)

    await cnx.request(build)
    for entry in entries:
        cnx.turn_writer.add(*entry.send_frame(1))
    return [MessageId.from_proto((await kept.came.get()).message_id) for _ in entries]


def send_with(**options: object) -> Callable[[pulsar.Client], list[pulsar.MessageId]]:
    """Return a function that sends messages of every kind with the official client."""

    def send(client: pulsar.Client) -> list[pulsar.MessageId]:
        producer = client.create_producer(TOPIC, producer_name="theirs", **options)
        ids: list[pulsar.MessageId] = []
        producer.send_async(b"plain", lambda _, found: ids.append(found))
        producer.send_async(
            b"full" * 500,
            lambda _, found: ids.append(found),
            properties={"a": "1", "ü": "ö"},
            partition_key="key",
            ordering_key="order",
            event_timestamp=77,
            sequence_id=500,
        )
        producer.send_async(None, lambda _, found: ids.append(found), partition_key="key")
        producer.flush()
        return ids

    return send


async def client_cnx(parts: Cluster) -> ClientCnx:
    return await parts.client("broker").connection_of(TOPIC)


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("compression", COMPRESSIONS)
async def test_our_client_reads_entries_of_the_official_client(compression, batching) -> None:
    # GIVEN messages of every kind that the official client sent
    async with cluster() as parts:
        ids = await with_client(
            parts,
            "broker",
            send_with(
                compression_type=pulsar.CompressionType(compression.value),
                batching_enabled=batching,
                batching_max_publish_delay_ms=1_000,
            ),
        )
        entries = await subscribe(await client_cnx(parts))
        # WHEN they are read
        messages: list[Message] = []
        while len(messages) < 3:
            messages += (await entries.get()).take()
    # THEN nothing is lost, and the ids are theirs
    plain, full, null = messages
    assert [plain.data(), full.data(), null.data()] == [b"plain", b"full" * 500, b""]
    assert (plain.partition_key(), plain.properties(), plain.has_null_value()) == ("", {}, False)
    assert full.properties() == {"a": "1", "ü": "ö"}
    assert (full.partition_key(), full.ordering_key()) == ("key", "order")
    assert (full.event_timestamp(), full.sequence_id()) == (77, 500)
    assert null.has_null_value()
    assert plain.producer_name() == "theirs"
    assert (plain.message_id().batch_size > 0) is batching
    assert len({one.message_id().entry for one in messages}) == (1 if batching else 3)
    assert [one.message_id().batch_index() for one in messages] == [
        one.batch_index() for one in ids
    ]


async def test_our_client_assembles_chunks_of_the_official_client() -> None:
    # GIVEN a message that the official client sent in chunks
    async with cluster() as parts:
        await with_client(
            parts,
            "broker",
            lambda client: client.create_producer(
                TOPIC, chunking_enabled=True, compression_type=pulsar.CompressionType.LZ4
            ).send(LARGE, partition_key="key"),
        )
        entries = await subscribe(await client_cnx(parts))
        assembly = ChunkAssembly(LoopClock(), lambda _ids, _acknowledge: None)
        # WHEN its chunks are added
        while (whole := assembly.add(await entries.get())) is None:
            pass
        (message,) = whole.take()
    # THEN it is whole
    assert message.data() == LARGE
    assert message.partition_key() == "key"
    assert len(whole.head.chunk_ids) == 3


def outgoing() -> list[OutgoingMessage]:
    """Return messages of every kind."""
    return [
        OutgoingMessage(b"plain", 0),
        OutgoingMessage(b"full" * 500, 1, {"a": "1", "ü": "ö"}, "key", "order", 77),
        OutgoingMessage(None, 2, partition_key="key"),
    ]


def receive(count: int) -> Callable[[pulsar.Client], list[pulsar.Message]]:
    """Return a function that receives messages with the official client and reads their fields."""

    def take(client: pulsar.Client) -> list[pulsar.Message]:
        consumer = client.subscribe(
            TOPIC, "theirs", initial_position=pulsar.InitialPosition.Earliest
        )
        found = [consumer.receive(5_000) for _ in range(count)]
        for one in found:
            consumer.acknowledge(one)
        return found

    return take


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("compression", COMPRESSIONS)
async def test_the_official_client_reads_our_entries(compression, batching) -> None:
    producer = SendingProducer(1, "ours", compression)
    messages = outgoing()
    if batching:
        builder = BatchBuilder()
        for message in messages:
            builder.add(message)
        entries = [builder.build(producer, NOW)]
    else:
        entries = [message_entry(message, producer, NOW) for message in messages]
    async with cluster() as parts:
        # GIVEN messages of every kind that this client sent
        ids = await publish(await client_cnx(parts), entries)
        # WHEN the official client receives them
        plain, full, null = await with_client(parts, "broker", receive(3))
    # THEN nothing is lost, and the ids are ours
    assert [plain.data(), full.data(), null.data()] == [b"plain", b"full" * 500, b""]
    assert (plain.partition_key(), plain.properties()) == ("", {})
    assert full.properties() == {"a": "1", "ü": "ö"}
    assert (full.partition_key(), full.ordering_key()) == ("key", "order")
    assert (full.event_timestamp(), full.publish_timestamp()) == (77, NOW)
    assert [one.has_null_value() for one in (plain, full, null)] == [False, False, True]
    assert plain.producer_name() == "ours"
    theirs = [MessageId.deserialize(one.message_id().serialize()) for one in (plain, full, null)]
    assert [one.entry for one in theirs] == (
        [ids[0].entry] * 3 if batching else [one.entry for one in ids]
    )
    if batching:
        assert [(one.batch_index(), one.batch_size) for one in theirs] == [(0, 3), (1, 3), (2, 3)]


async def test_the_official_client_assembles_our_chunks() -> None:
    # GIVEN a message that this client sent in chunks
    chunked = ChunkedMessage(
        OutgoingMessage(LARGE, 7, {"a": "1"}),
        SendingProducer(1, "ours", CompressionType.ZSTD),
        NOW,
        5_242_880,
    )
    assert chunked.chunk_count == 3
    async with cluster() as parts:
        await publish(
            await client_cnx(parts),
            [chunked.entry(number) for number in range(chunked.chunk_count)],
        )
        # WHEN the official client receives it
        (found,) = await with_client(parts, "broker", receive(1))
    # THEN it is whole
    assert found.data() == LARGE
    assert found.properties() == {"a": "1"}
