"""Readers, seeking, last message ids and partitions."""

import asyncio
import time
from typing import Any

import pytest

from tests.official_api.apis import (
    Place,
    new_topic,
    position,
    received,
    refusal,
    sent_together,
    within,
)

pytestmark = [pytest.mark.official, pytest.mark.processes]


async def _read(reader: Any) -> list[bytes]:
    """Read until the topic's end."""
    found = []
    while await within(reader.has_message_available()):
        found.append((await within(reader.read_next())).data())
    return found


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize(
    ("start", "inclusive", "wanted"),
    [
        ("earliest", False, [b"0", b"1", b"2", b"3"]),
        ("latest", False, []),
        ("second", False, [b"2", b"3"]),
        ("second", True, [b"1", b"2", b"3"]),
    ],
)
async def test_a_reader_starts_at_its_start_message_id(
    place, batched, start, inclusive, wanted, topic, client
) -> None:
    ids = await sent_together(client, topic, 4, batched=batched)
    where = ids[1] if start == "second" else getattr(place.api.MessageId, start)
    reader = await client.create_reader(topic, where, start_message_id_inclusive=inclusive)
    assert await _read(reader) == wanted
    assert reader.topic() == topic
    assert reader.is_connected()
    await sent_together(client, topic, 1)
    assert await within(reader.has_message_available())
    assert await _read(reader) == [b"0"]
    await within(reader.close())
    assert not reader.is_connected()


async def test_a_reader_of_an_empty_topic_has_no_message_available(place, client) -> None:
    for where in (place.api.MessageId.earliest, place.api.MessageId.latest):
        reader = await client.create_reader(new_topic(), where)
        assert not await within(reader.has_message_available())


@pytest.mark.parametrize("batched", [True, False])
async def test_a_consumer_seeks_to_a_message_id(place, batched, topic, client) -> None:
    consumer = await client.subscribe(topic, "s")
    ids = await sent_together(client, topic, 5, batched=batched)
    await received(consumer, 5)
    await within(consumer.seek(ids[2]))
    assert (await within(consumer.receive())).data() == b"3"
    await within(consumer.seek(place.end("earliest")))
    assert (await within(consumer.receive())).data() == b"0"


async def test_a_consumer_seeks_to_a_publish_time(topic: str, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    await sent_together(client, topic, 1)
    await asyncio.sleep(0.02)
    between = int(time.time() * 1000)
    await asyncio.sleep(0.02)
    producer = await client.create_producer(topic)
    await within(producer.send(b"later"))
    await received(consumer, 2)
    await within(consumer.seek(between))
    assert (await within(consumer.receive())).data() == b"later"


@pytest.mark.parametrize("batched", [True, False])
async def test_a_reader_seeks_to_a_message_id(place, batched, topic, client) -> None:
    ids = await sent_together(client, topic, 4, batched=batched)
    reader = await client.create_reader(topic, place.api.MessageId.earliest)
    assert len(await _read(reader)) == 4
    await within(reader.seek(ids[1]))
    assert await _read(reader) == [b"2", b"3"]
    await within(reader.seek(place.end("latest")))
    assert await _read(reader) == []


async def test_get_last_message_id_returns_the_id_of_the_last_message(topic, client) -> None:
    consumer = await client.subscribe(topic, "s")
    ids = await sent_together(client, topic, 3)
    last = await within(consumer.get_last_message_id())
    assert position(last) == position(ids[2])


async def test_message_ids_compare_and_serialize(place: Place, client: Any) -> None:
    ids = await sent_together(client, new_topic(), 3)
    earliest, latest = place.end("earliest"), place.end("latest")
    assert earliest < ids[0] < ids[1] < ids[2] < latest
    assert ids[0] <= ids[1] > ids[0]
    again = place.api.MessageId.deserialize(ids[1].serialize())
    assert position(again) == position(ids[1])
    same = place.api.MessageId(
        ids[1].partition(), ids[1].ledger_id(), ids[1].entry_id(), ids[1].batch_index()
    )
    assert position(same) == position(ids[1])
    assert (earliest.ledger_id(), earliest.entry_id()) == (-1, -1)


async def test_get_topic_partitions_lists_partitions_or_the_topic_itself(place, client) -> None:
    topic = await place.partitioned(3)
    plain = new_topic()
    found = await within(client.get_topic_partitions(topic))
    assert found == [f"{topic}-partition-{number}" for number in range(3)]
    assert await within(client.get_topic_partitions(plain)) == [plain]


async def test_messages_without_keys_are_spread_evenly_over_partitions(place, client) -> None:
    topic = await place.partitioned(3)
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic, batching_enabled=False)
    sends = [within(producer.send(b"%d" % number)) for number in range(9)]
    ids = await asyncio.gather(*sends)
    messages = await received(consumer, 9)
    assert sorted(one.partition() for one in ids) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert {one.data() for one in messages} == {b"%d" % number for number in range(9)}
    for message in messages:
        wanted = f"{topic}-partition-{message.message_id().partition()}"
        assert message.topic_name() == wanted
        await within(consumer.acknowledge(message))
    assert (producer.topic(), consumer.topic()) == (topic, topic)
    assert producer.is_connected()


async def test_a_key_determines_its_partition(place: Place, client: Any) -> None:
    topic = await place.partitioned(5)
    producer = await client.create_producer(topic)
    keys = ["a", "b", "hello", "some key", "日本", "x" * 100]
    ids = [await within(producer.send(b"x", partition_key=key)) for key in keys]
    assert [one.partition() for one in ids] == [3, 2, 4, 2, 4, 2]


async def test_a_custom_router_chooses_the_partition(place: Place, client: Any) -> None:
    topic = await place.partitioned(3)
    producer = await client.create_producer(
        topic,
        message_routing_mode=place.api.PartitionsRoutingMode.CustomPartition,
        message_router=lambda message, count: len(message.data()) % count,
    )
    ids = [await within(producer.send(b"x" * size)) for size in range(6)]
    assert [one.partition() for one in ids] == [0, 1, 2, 0, 1, 2]


async def test_single_partition_routing_uses_only_one_partition(place: Place, client: Any) -> None:
    topic = await place.partitioned(3)
    producer = await client.create_producer(
        topic,
        message_routing_mode=place.api.PartitionsRoutingMode.UseSinglePartition,
        lazy_start_partitioned_producers=True,
    )
    ids = [await within(producer.send(b"x")) for _ in range(6)]
    assert len({one.partition() for one in ids}) == 1


async def test_a_consumer_of_a_partitioned_topic_seeks_to_the_beginning(place, client) -> None:
    topic = await place.partitioned(2)
    consumer = await client.subscribe(topic, "s")
    await sent_together(client, topic, 4, batched=False)
    await received(consumer, 4)
    await within(consumer.seek(place.end("earliest")))
    assert {one.data() for one in await received(consumer, 4)} == {b"0", b"1", b"2", b"3"}


async def test_a_reader_of_a_partitioned_topic_reads_all_partitions(place, client) -> None:
    topic = await place.partitioned(2)
    await sent_together(client, topic, 4, batched=False)
    reader = await client.create_reader(topic, place.api.MessageId.earliest)
    assert sorted(await _read(reader)) == [b"0", b"1", b"2", b"3"]


async def test_seeking_a_closed_consumer_is_refused(place: Place, client: Any) -> None:
    consumer = await client.subscribe(new_topic(), "s")
    await within(consumer.close())
    assert await refusal(consumer.seek(place.end("earliest"))) == "AlreadyClosed"
