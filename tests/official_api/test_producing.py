"""Producing: batches, compression, chunks, keys, times, access modes, refusals."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from tests.official_api.apis import (
    DELAY_SECONDS,
    Place,
    new_topic,
    nothing_comes,
    position,
    received,
    refusal,
    within,
)

pytestmark = [pytest.mark.official, pytest.mark.processes]

HOUR_MS = 3_600_000
LARGE = bytes(range(256)) * 40_000


@pytest.mark.parametrize("batched", [True, False])
async def test_messages_arrive_in_order(topic: str, batched: bool, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic, batching_enabled=batched)
    sends = [within(producer.send(b"%d" % number)) for number in range(50)]
    ids = await asyncio.gather(*sends)
    messages = await received(consumer, 50)
    assert [one.data() for one in messages] == [b"%d" % number for number in range(50)]
    assert [position(one.message_id()) for one in messages] == [position(one) for one in ids]
    assert (ids[0].batch_index() >= 0) is batched
    await producer.close()


async def test_a_chunked_message_arrives_whole(topic: str, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    sent = await within(producer.send(LARGE))
    (message,) = await received(consumer, 1)
    assert message.data() == LARGE
    assert position(message.message_id()) == position(sent)
    await within(consumer.acknowledge(message))


async def test_a_message_above_the_maximum_size_is_refused(client: Any) -> None:
    producer = await client.create_producer(new_topic(), batching_enabled=False)
    assert await refusal(producer.send(LARGE)) == "MessageTooBig"


async def test_all_fields_of_a_message_arrive(topic: str, place: Place, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic, producer_name="who")
    before = int(time.time() * 1000)
    sent = await within(
        producer.send(
            b"data",
            properties={"a": "1", "b": "2"},
            partition_key="key",
            ordering_key="order",
            event_timestamp=123,
            sequence_id=7,
        )
    )
    (message,) = await received(consumer, 1)
    assert message.data() == message.value() == b"data"
    assert message.properties() == {"a": "1", "b": "2"}
    assert (message.partition_key(), message.ordering_key()) == ("key", "order")
    assert message.event_timestamp() == 123
    assert before - 1 <= message.publish_timestamp() <= int(time.time() * 1000) + 1
    assert message.topic_name() == topic
    assert message.redelivery_count() == 0
    assert message.producer_name() == "who"
    found = message.message_id()
    assert (found.ledger_id(), found.entry_id()) == (sent.ledger_id(), sent.entry_id())
    assert place.api.MessageId.deserialize(found.serialize()) == found
    assert producer.last_sequence_id() == 7
    assert (producer.topic(), producer.producer_name()) == (topic, "who")
    assert producer.is_connected()


async def test_an_empty_message_has_empty_fields(topic: str, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic)
    await within(producer.send(b""))
    (message,) = await received(consumer, 1)
    assert message.data() == b""
    assert message.properties() == {}
    assert (message.partition_key(), message.ordering_key()) == ("", "")
    assert message.event_timestamp() == 0
    assert (producer.last_sequence_id(), message.schema_version()) == (0, "")


async def test_delayed_messages_are_delivered_after_their_delay(topic, place, client) -> None:
    consumer = await client.subscribe(topic, "s", consumer_type=place.api.ConsumerType.Shared)
    producer = await client.create_producer(topic)
    start = time.time()
    sends = [
        producer.send(b"after", deliver_after=timedelta(seconds=DELAY_SECONDS)),
        producer.send(b"at", deliver_at=int((start + DELAY_SECONDS) * 1000)),
        producer.send(b"soon"),
    ]
    await within(asyncio.gather(*sends))
    (soon,) = await received(consumer, 1)
    late = await received(consumer, 2)
    assert soon.data() == b"soon"
    assert {one.data() for one in late} == {b"after", b"at"}
    # A broker may be early by its tick time.
    assert time.time() - start >= 0.3


async def test_key_based_batches_keep_keys_together(topic: str, place: Place, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(
        topic, batching_type=place.api.BatchingType.KeyBased, batching_max_publish_delay_ms=50
    )
    sends = [
        within(producer.send(b"%d" % number, partition_key="ab"[number % 2])) for number in range(6)
    ]
    await asyncio.gather(*sends)
    messages = await received(consumer, 6)
    assert sorted(one.data() for one in messages) == [b"%d" % number for number in range(6)]
    entries = {(one.message_id().entry_id(), one.partition_key()) for one in messages}
    assert len(entries) == len({entry for entry, _ in entries}) == 2


async def test_an_exclusive_producer_excludes_other_producers(topic, place, client) -> None:
    modes = place.api.ProducerAccessMode
    first = await client.create_producer(topic, access_mode=modes.Exclusive)
    for mode in (modes.Exclusive, modes.Shared):
        refused = await refusal(client.create_producer(topic, access_mode=mode))
        assert refused in ("ProducerFenced", "ProducerBusy")
    waiting = asyncio.ensure_future(
        client.create_producer(topic, access_mode=modes.WaitForExclusive)
    )
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await within(first.close())
    second = await within(waiting)
    await within(second.send(b"mine"))
    third = await client.create_producer(topic, access_mode=modes.ExclusiveWithFencing)
    await within(third.send(b"now mine"))


async def test_a_second_producer_of_the_same_name_is_refused(topic: str, client: Any) -> None:
    first = await client.create_producer(topic, producer_name="one")
    assert await refusal(client.create_producer(topic, producer_name="one")) == "ProducerBusy"
    assert first.producer_name() == "one"


@pytest.mark.parametrize("topic", ["", "persistent://public", "no://such/kind/of-topic"])
async def test_an_invalid_topic_name_is_refused(topic: str, client: Any) -> None:
    assert await refusal(client.create_producer(topic)) == "InvalidTopicName"
    assert await refusal(client.subscribe(topic, "s")) == "InvalidTopicName"


async def test_an_unknown_namespace_is_refused(place: Place) -> None:
    async with place.client(operation_timeout_seconds=3) as client:
        refused = await refusal(client.create_producer("public/not-there/topic"))
        assert refused in ("TopicNotFound", "AuthorizationError", "BrokerMetadataError")


async def test_an_unreachable_broker_is_an_error_within_the_timeout(place: Place) -> None:
    nowhere = Place(place.api, "pulsar://127.0.0.1:1", "")
    async with nowhere.client(operation_timeout_seconds=1) as client:
        refused = await refusal(client.create_producer(new_topic()))
        assert refused in ("ConnectError", "Timeout", "Retryable")


async def test_sends_above_max_pending_messages_fail(client: Any) -> None:
    producer = await client.create_producer(
        new_topic(),
        max_pending_messages=5,
        batching_max_publish_delay_ms=200,
        block_if_queue_full=False,
    )
    sends = [within(producer.send(b"x")) for _ in range(8)]
    outcomes = await asyncio.gather(*sends, return_exceptions=True)
    # The number depends on how soon a full queue is sent.
    assert {one.error().name for one in outcomes if isinstance(one, Exception)} == {
        "ProducerQueueIsFull"
    }


async def test_flush_sends_pending_messages(client: Any) -> None:
    producer = await client.create_producer(new_topic(), batching_max_publish_delay_ms=HOUR_MS)
    send = asyncio.ensure_future(producer.send(b"x"))
    await asyncio.sleep(0)
    await within(producer.flush())
    await within(send)


async def test_a_closed_producer_refuses_to_send(topic: str, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic, batching_max_publish_delay_ms=10_000)
    await within(producer.close())
    assert not producer.is_connected()
    assert await refusal(producer.send(b"x")) == "AlreadyClosed"
    async with nothing_comes(consumer):
        await within(consumer.close())


async def test_a_terminated_topic_refuses_messages_and_producers(topic, place, client) -> None:
    producer = await client.create_producer(topic)
    await within(producer.send(b"x"))
    await place.ask("POST", f"{topic.replace('://', '/')}/terminate")
    assert await refusal(producer.send(b"y")) in ("TopicTerminated", "AlreadyClosed")
    assert await refusal(client.create_producer(topic)) == "TopicTerminated"
