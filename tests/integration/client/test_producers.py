"""Producers against a broker, directly and through the proxy."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from client.client import Client
from client.exceptions import ProducerBusy, ProducerFenced
from client.messages.enums import (
    BatchingType,
    CompressionType,
    InitialPosition,
    ProducerAccessMode,
)
from client.messages.message import Message
from client.producers.routing import boost_hash
from tests.integration.client.server import ROLES, served
from tests.support.processes.cluster import until


@asynccontextmanager
async def client_of(
    role: str, limit_bytes: int = 1 << 26, *, partitions: int | None = None, repeats: bool = True
) -> AsyncIterator[tuple[str, Client]]:
    """Open a client and a new topic; afterwards no memory may be held.

    Args:
        role: Broker or proxy.
        limit_bytes: The client's memory limit.
        partitions: Of the topic.
        repeats: Whether the broker stores duplicates.
    """
    async with (
        served(role) as server,
        Client(server.service_url, memory_limit_bytes=limit_bytes) as client,
    ):
        if partitions is not None:
            await server.create("t", partitions=partitions)
        if not repeats:
            await server.ask("POST", f"namespaces/{server.namespace}/deduplication", True)
        yield server.topic(), client
        await client.close()
        assert client.memory.statistics().usage_bytes == 0
        assert client.memory.statistics().reservations == 0


async def everything(client: Client, count: int, topic: str) -> list[Message]:
    """Return so many messages from the topic's beginning."""
    consumer = await client.subscribe(topic, "all", initial_position=InitialPosition.Earliest)
    messages = [await consumer.receive() for _ in range(count)]
    await consumer.close()
    return messages


@ROLES
@pytest.mark.parametrize("compression", CompressionType)
async def test_batched_messages_arrive_unchanged(role: str, compression: CompressionType) -> None:
    async with client_of(role) as (topic, client):
        producer = await client.create_producer(topic, compression_type=compression)
        ids = await asyncio.gather(
            *(
                producer.send(b"%d" % number, {"n": str(number)}, partition_key=f"k{number}")
                for number in range(2_500)
            )
        )
        messages = await everything(client, 2_500, topic)
        assert [one.data() for one in messages] == [b"%d" % number for number in range(2_500)]
        assert [one.properties() for one in messages[:2]] == [{"n": "0"}, {"n": "1"}]
        assert [one.partition_key() for one in messages[:2]] == ["k0", "k1"]
        assert [one.message_id() for one in messages] == ids


@pytest.mark.parametrize(
    ("compression", "size"),
    [
        (CompressionType.NONE, 4_500_000),
        (CompressionType.ZLib, 200_000),
        (CompressionType.ZSTD, 600_000),
        (CompressionType.LZ4, 2_500_000),
        (CompressionType.SNAPPY, 4_500_000),
    ],
)
async def test_a_large_message_between_batched_messages_arrives_complete(compression, size) -> None:
    async with client_of("broker") as (topic, client):
        producer = await client.create_producer(topic, compression_type=compression)
        contents = [b"before", b"0123456789" * (size // 10), b"behind"]
        await asyncio.gather(*map(producer.send, contents))
        messages = await everything(client, 3, topic)
        assert [one.data() for one in messages] == contents
        assert not messages[1].has_null_value()


@ROLES
async def test_a_chunked_message_arrives_complete(role: str) -> None:
    async with client_of(role) as (topic, client):
        producer = await client.create_producer(
            topic, chunking_enabled=True, batching_enabled=False, max_pending_messages=2
        )
        content = random.Random(1).randbytes(17_000_000)
        message_id = await producer.send(content, {"a": "b"})
        (message,) = await everything(client, 1, topic)
        assert message.data() == content
        assert message.message_id() == message_id
        assert message_id.first_chunk is not None


@ROLES
async def test_messages_of_a_key_use_the_same_partition_and_keep_their_order(role: str) -> None:
    async with client_of(role, partitions=4) as (topic, client):
        producer = await client.create_producer(topic, batching_type=BatchingType.KeyBased)
        ids = await asyncio.gather(
            *(producer.send(b"%d" % n, partition_key=f"k{n % 7}") for n in range(700))
        )
        assert [one.partition() for one in ids[:7]] == [boost_hash(f"k{n}") % 4 for n in range(7)]
        messages = await everything(client, 700, topic)
        for key in range(7):
            of_key = [int(one.data()) for one in messages if one.partition_key() == f"k{key}"]
            assert of_key == list(range(key, 700, 7))


@ROLES
async def test_a_producer_loses_and_repeats_no_message_on_lost_connections(role: str) -> None:
    async with client_of(role, repeats=False) as (topic, client):
        producer = await client.create_producer(topic, batching_max_messages=10)

        async def break_now_and_then() -> None:
            for _ in range(3):
                await until(producer.is_connected)
                (await client.connection_of(topic)).abort()
                await until(lambda: not producer.is_connected())

        breaking = asyncio.create_task(break_now_and_then())
        sent = 0
        while not breaking.done() or sent < 1_000:
            await asyncio.gather(*(producer.send(b"%d" % n) for n in range(sent, sent + 100)))
            sent += 100
        await breaking
        messages = await everything(client, sent, topic)
        assert [int(one.data()) for one in messages] == list(range(sent))
        assert producer.statistics().reconnections_total == 3


@ROLES
async def test_exclusive_access_passes_to_the_next_waiting_producer(role: str) -> None:
    async with client_of(role) as (topic, client):
        first = await client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
        with pytest.raises(ProducerFenced):
            await client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
        with pytest.raises(ProducerBusy):
            await client.create_producer(topic)
        waiting = asyncio.create_task(
            client.create_producer(topic, access_mode=ProducerAccessMode.WaitForExclusive)
        )
        leaving = asyncio.create_task(
            client.create_producer(topic, access_mode=ProducerAccessMode.WaitForExclusive)
        )
        cnx = await client.connection_of(topic)
        await until(lambda: len(cnx.exclusive_turns) == 2)
        leaving.cancel()
        await asyncio.wait([leaving])
        assert not waiting.done()
        await first.close()
        second = await waiting
        assert (await second.send(b"mine")).entry_id() >= 0


@ROLES
async def test_a_fenced_producer_can_no_longer_send(role: str) -> None:
    async with client_of(role) as (topic, client):
        first = await client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
        await first.send(b"mine")
        second = await client.create_producer(
            topic, access_mode=ProducerAccessMode.ExclusiveWithFencing
        )
        with pytest.raises(ProducerFenced):
            await first.send(b"not mine any more")
        assert await second.send(b"mine now")


@ROLES
async def test_deduplication_drops_a_repeated_sequence_id(role: str) -> None:
    async with client_of(role, repeats=False) as (topic, client):
        producer = await client.create_producer(topic, "mine")
        await producer.send(b"5", sequence_id=5)
        again = await producer.send(b"again", sequence_id=5)
        assert (again.ledger_id(), again.entry_id()) == (-1, -1)
        await producer.close()
        producer = await client.create_producer(topic, "mine")
        assert producer.last_sequence_id() == 5
        await producer.send(b"6")
        assert producer.last_sequence_id() == 6
        assert [one.data() for one in await everything(client, 2, topic)] == [b"5", b"6"]


async def test_deduplication_keeps_all_key_based_batches() -> None:
    async with client_of("broker", repeats=False) as (topic, client):
        producer = await client.create_producer(topic, batching_type=BatchingType.KeyBased)
        sends = [producer.send(b"%d" % n, partition_key="ba"[n % 2]) for n in range(4)]
        ids = await asyncio.gather(*sends)
        assert sorted((one.entry_id(), one.batch_index()) for one in ids) == [
            (0, 0), (0, 1), (1, 0), (1, 1),
        ]  # fmt: skip
        assert {one.data() for one in await everything(client, 4, topic)} == {
            b"0", b"1", b"2", b"3",
        }  # fmt: skip


@ROLES
async def test_pending_sends_stay_within_the_memory_limit(role: str) -> None:
    limit, size = 64 * 1024, 1024
    async with client_of(role, limit) as (topic, client):
        producer = await client.create_producer(
            topic, max_pending_messages=0, batching_enabled=False
        )
        await asyncio.gather(*(producer.send(bytes(size)) for _ in range(2_000)))
        figures = client.memory.statistics()
        assert limit < figures.high_water_bytes <= limit + 2 * size
        assert (figures.usage_bytes, figures.waiters, figures.rejected_total) == (0, 0, 0)
        assert len(await everything(client, 2_000, topic)) == 2_000


@ROLES
async def test_sends_of_a_lazy_producer_complete_under_a_small_memory_limit(role: str) -> None:
    # Memory for two of four messages
    async with (
        served(role) as server,
        Client(server.service_url, memory_limit_bytes=1_500, producer_share=0.0) as client,
    ):
        await server.create("t", partitions=1)
        producer = await client.create_producer(
            server.topic(), lazy_start_partitioned_producers=True, block_if_queue_full=True
        )
        ids = await asyncio.gather(*[producer.send(bytes(1_000)) for _ in range(4)])
        assert len(set(ids)) == 4
        await client.close()
        assert client.memory.statistics().reservations == 0
