"""Both clients on a topic: each reads the other client's messages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any

import pytest

from tests.official_api.apis import OFFICIAL, OURS, Place, new_topic, received, within

pytestmark = [pytest.mark.official, pytest.mark.processes]
DIRECTIONS = pytest.mark.parametrize(
    ("writing", "reading"), [(OFFICIAL, OURS), (OURS, OFFICIAL)], ids=["to client", "to official"]
)
COMPRESSIONS = ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")
LARGE = bytes(range(256)) * 25_000


class Size(Enum):
    """Enum with names equal to values: the official client reads no other enum from JSON."""

    small = "small"
    large = "large"


@asynccontextmanager
async def _both(
    urls: tuple[str, str], writing: Any, reading: Any
) -> AsyncIterator[tuple[Any, Any]]:
    async with (
        Place(writing, *urls).client() as writer,
        Place(reading, *urls).client() as reader,
    ):
        yield writer, reader


@DIRECTIONS
async def test_each_client_reads_batches_singles_and_chunks_of_the_other_client(
    cluster_urls, writing, reading
) -> None:
    async with _both(cluster_urls, writing, reading) as (writer, reader):

        async def go(name: str, size: int, **options: object) -> None:
            topic = new_topic()
            consumer = await reader.subscribe(topic, "s")
            compression = getattr(writing.CompressionType, name)
            producer = await writer.create_producer(topic, compression_type=compression, **options)
            sends = [
                within(
                    producer.send(
                        LARGE[:size] + b"%d" % number,
                        properties={"n": str(number), "ä": "ö"},
                        partition_key=f"k{number}",
                        ordering_key="ü",
                        event_timestamp=number + 1,
                    )
                )
                for number in range(3)
            ]
            ids = await asyncio.gather(*sends)
            messages = await received(consumer, 3)
            for number, message in enumerate(messages):
                assert message.data() == LARGE[:size] + b"%d" % number
                assert message.properties() == {"n": str(number), "ä": "ö"}
                assert (message.partition_key(), message.ordering_key()) == (f"k{number}", "ü")
                assert message.event_timestamp() == number + 1
                assert message.producer_name() == producer.producer_name()
            assert [_place(one.message_id()) for one in messages] == [_place(one) for one in ids]
            for message in messages:
                await within(consumer.acknowledge(message))

        for name in COMPRESSIONS:
            await go(name, 2_000)
            await go(name, 2_000, batching_enabled=False)
        await go("NONE", len(LARGE), batching_enabled=False, chunking_enabled=True)


def _place(found: Any) -> tuple[int, int, int, int]:
    return found.ledger_id(), found.entry_id(), found.batch_index(), found.partition()


@DIRECTIONS
@pytest.mark.parametrize("kind", ["StringSchema", "JsonSchema", "AvroSchema"])
async def test_each_client_reads_schema_values_of_the_other_client(
    cluster_urls, writing, reading, kind, topic
) -> None:
    def defined(api: Any) -> tuple[Any, Any]:
        if kind == "StringSchema":
            return api.schema.StringSchema(), "größe"
        schema = api.schema

        class Part(schema.Record):  # type: ignore[misc, name-defined]
            name = schema.String(default="part")
            count = schema.Integer(required=True)

        class Order(schema.Record):  # type: ignore[misc, name-defined]
            customer = schema.String()
            size = schema.CustomEnum(Size)
            parts = schema.Array(Part())
            by_name = schema.Map(Part())
            note = schema.String()
            weight = schema.Double()

        parts = [Part(count=1), Part(name="ä", count=2)]
        order = Order(
            customer="Ada", size=Size.large, parts=parts, by_name={"x": parts[0]}, weight=1.5
        )
        return getattr(schema, kind)(Order), order

    async with _both(cluster_urls, writing, reading) as (writer, reader):
        schema, sent = defined(writing)
        other_schema, wanted = defined(reading)
        consumer = await reader.subscribe(topic, "s", schema=other_schema)
        producer = await writer.create_producer(topic, schema=schema)
        await within(producer.send(sent))
        (message,) = await received(consumer, 1)
        assert message.value() == wanted
        assert message.schema_version() == "\0" * 8


@DIRECTIONS
async def test_message_ids_are_equal_in_both_clients(cluster_urls, writing, reading, topic) -> None:
    async with _both(cluster_urls, writing, reading) as (writer, reader):
        readers = [
            await writer.create_reader(topic, writing.MessageId.earliest),
            await reader.create_reader(topic, reading.MessageId.earliest),
        ]
        batching = await writer.create_producer(topic)
        chunking = await writer.create_producer(
            topic, batching_enabled=False, chunking_enabled=True
        )
        sent = list(await asyncio.gather(*(within(batching.send(b"%d" % n)) for n in range(3))))
        sent += [await within(chunking.send(data)) for data in (b"single", LARGE)]
        found = [[(await within(one.read_next())).message_id() for _ in sent] for one in readers]
        assert [str(one) for one in found[0]] == [str(one) for one in found[1]]
        assert [one.serialize() for one in found[0]] == [one.serialize() for one in found[1]]
        assert [_place(one) for one in found[1]] == [_place(one) for one in sent]
        at = reading.MessageId.deserialize(found[0][1].serialize())
        behind = await reader.create_reader(topic, at)
        assert (await within(behind.read_next())).data() == b"2"


async def test_both_clients_choose_equal_partitions_for_keys(cluster_urls: tuple[str, str]) -> None:
    topic = await Place(OURS, *cluster_urls).partitioned(7)
    keys = ["a", "key-1", "日本", "x" * 300, "\0", "é", "0"]
    async with _both(cluster_urls, OFFICIAL, OURS) as clients:
        chosen = []
        for client in clients:
            producer = await client.create_producer(topic)
            ids = [await within(producer.send(b"x", partition_key=key)) for key in keys]
            chosen.append([one.partition() for one in ids])
        assert chosen[0] == chosen[1]
        assert len(set(chosen[0])) > 2
