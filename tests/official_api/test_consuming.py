"""Consuming: subscriptions of all types, acknowledging, redelivery, dead letters, closing."""

import asyncio
from collections import defaultdict
from typing import Any

import pytest

from tests.official_api.apis import Place, new_topic, nothing_comes, received, refusal, within

pytestmark = [pytest.mark.official, pytest.mark.processes]


async def _sent(client: Any, topic: str, count: int, **options: object) -> list[Any]:
    """Send messages sequentially; return their ids."""
    producer = await client.create_producer(topic, **options)
    ids = [await within(producer.send(b"%d" % number)) for number in range(count)]
    await producer.close()
    return ids


def _data(messages: list[Any]) -> list[bytes]:
    return [one.data() for one in messages]


@pytest.mark.parametrize("position", ["Latest", "Earliest"])
async def test_a_subscription_starts_at_its_initial_position(
    place: Place, position: str, topic: str, client: Any
) -> None:
    await _sent(client, topic, 2)
    consumer = await client.subscribe(
        topic, "s", initial_position=getattr(place.api.InitialPosition, position)
    )
    await _sent(client, topic, 1)
    wanted = [b"0"] if position == "Latest" else [b"0", b"1", b"0"]
    assert _data(await received(consumer, len(wanted))) == wanted
    assert (consumer.topic(), consumer.subscription_name()) == (topic, "s")


async def test_acknowledged_messages_are_not_redelivered(topic: str, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    await _sent(client, topic, 3)
    messages = await received(consumer, 3)
    await within(consumer.acknowledge(messages[0]))
    await within(consumer.acknowledge(messages[1].message_id()))
    await within(consumer.close())
    consumer = await client.subscribe(topic, "s")
    assert _data(await received(consumer, 1)) == [b"2"]


async def test_a_cumulative_ack_covers_all_earlier_messages(topic: str, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    await _sent(client, topic, 4)
    messages = await received(consumer, 3)
    await within(consumer.acknowledge_cumulative(messages[2]))
    await within(consumer.close())
    consumer = await client.subscribe(topic, "s")
    assert _data(await received(consumer, 1)) == [b"3"]


async def test_shared_subscriptions_refuse_cumulative_acknowledgements(
    place: Place, topic: str, client: Any
) -> None:
    kind = place.api.ConsumerType.Shared
    consumer = await client.subscribe(topic, "s", consumer_type=kind)
    await _sent(client, topic, 1)
    (message,) = await received(consumer, 1)
    refused = await refusal(consumer.acknowledge_cumulative(message))
    assert refused == "CumulativeAcknowledgementNotAllowedError"


@pytest.mark.parametrize("batched", [True, False])
async def test_a_negatively_acknowledged_message_is_redelivered(
    topic, place, batched, client
) -> None:
    consumer = await client.subscribe(
        topic,
        "s",
        consumer_type=place.api.ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=50,
    )
    await _sent(client, topic, 2, batching_enabled=batched)
    first, second = await received(consumer, 2)
    await within(consumer.acknowledge(second))
    await within(consumer.negative_acknowledge(first))
    (again,) = await received(consumer, 1)
    assert again.data() == first.data()
    assert again.redelivery_count() == 1
    assert again.message_id() == first.message_id()


async def test_unacknowledged_messages_are_redelivered_on_request(topic, place, client) -> None:
    consumer = await client.subscribe(
        topic,
        "s",
        consumer_type=place.api.ConsumerType.Shared,
        unacked_messages_timeout_ms=10_000,
    )
    await _sent(client, topic, 1)
    await received(consumer, 1)
    redelivering = consumer.redeliver_unacknowledged_messages()
    if redelivering is not None:
        await redelivering
    assert _data(await received(consumer, 1)) == [b"0"]


async def test_messages_refused_too_often_become_dead_letters(topic, place, client) -> None:
    dead = f"{topic}-dead"
    letters = await client.subscribe(dead, "letters")
    consumer = await client.subscribe(
        topic,
        "s",
        consumer_type=place.api.ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=20,
        dead_letter_policy=place.api.ConsumerDeadLetterPolicy(
            max_redeliver_count=2, dead_letter_topic=dead
        ),
    )
    await _sent(client, topic, 1)
    for count in range(3):
        (message,) = await received(consumer, 1)
        assert message.redelivery_count() == count
        await within(consumer.negative_acknowledge(message))
    (letter,) = await received(letters, 1)
    assert letter.data() == b"0"
    assert letter.properties()["REAL_TOPIC"] == topic
    assert "ORIGIN_MESSAGE_ID" in letter.properties()


async def test_an_exclusive_subscription_has_a_single_consumer(topic, place, client) -> None:
    # The official client closes unreferenced consumers.
    first = await client.subscribe(topic, "s", consumer_name="first")
    assert await refusal(client.subscribe(topic, "s")) == "ConsumerBusy"
    kind = place.api.ConsumerType.Shared
    assert await refusal(client.subscribe(topic, "s", consumer_type=kind)) == "ConsumerBusy"
    assert first.consumer_name() == "first"


async def test_the_next_failover_consumer_takes_over_after_a_close(place, client) -> None:
    # The first consumer by name has the first partition; on other topics the topic's name decides.
    topic = await place.partitioned(1)
    kind = place.api.ConsumerType.Failover
    first = await client.subscribe(topic, "s", consumer_type=kind, consumer_name="a")
    second = await client.subscribe(topic, "s", consumer_type=kind, consumer_name="b")
    assert (first.consumer_name(), second.consumer_name()) == ("a", "b")
    await _sent(client, topic, 2)
    messages = await received(first, 2)
    await within(first.acknowledge(messages[0]))
    await within(first.close())
    assert _data(await received(second, 1)) == [b"1"]


@pytest.mark.parametrize("mode", ["AutoSplit", "Sticky"])
async def test_each_key_stays_with_its_consumer(topic, place, mode, client) -> None:
    api = place.api
    consumers = []
    for start in (0, 32_768):
        policy = api.ConsumerKeySharedPolicy(
            key_shared_mode=getattr(api.KeySharedMode, mode),
            sticky_ranges=[(start, start + 32_767)] if mode == "Sticky" else None,
        )
        consumers.append(
            await client.subscribe(
                topic,
                "s",
                consumer_type=api.ConsumerType.KeyShared,
                key_shared_policy=policy,
            )
        )
    producer = await client.create_producer(topic, batching_enabled=False)
    seen: dict[str, set[int]] = defaultdict(set)
    count = 0
    everything = asyncio.Event()

    async def consume(number: int) -> None:
        nonlocal count
        while True:
            message = await consumers[number].receive()
            await consumers[number].acknowledge(message)
            seen[message.partition_key()].add(number)
            count += 1
            if count == 80:
                everything.set()

    consuming = [asyncio.ensure_future(consume(number)) for number in range(2)]
    sends = [within(producer.send(b"x", partition_key=f"k{n % 20}")) for n in range(80)]
    await asyncio.gather(*sends)
    await within(everything.wait())
    assert len(seen) == 20
    assert all(len(numbers) == 1 for numbers in seen.values())
    assert {number for numbers in seen.values() for number in numbers} == {0, 1}
    for consumer in consumers:
        await within(consumer.close())
    await asyncio.wait(consuming)
    assert all(isinstance(one.exception(), api.AnyError) for one in consuming)


async def test_a_consumer_of_several_topics_receives_from_all_topics(client: Any) -> None:
    topics = [new_topic(), new_topic()]
    consumer = await client.subscribe(topics, "s")
    for topic in topics:
        await _sent(client, topic, 2)
    messages = await received(consumer, 4)
    assert {(one.topic_name(), one.data()) for one in messages} == {
        (topic, data) for topic in topics for data in (b"0", b"1")
    }
    for message in messages:
        await within(consumer.acknowledge(message))


async def test_a_pattern_subscription_receives_matching_topics(topic, place, client) -> None:
    for letter in "ab":
        await _sent(client, f"{topic}-{letter}", 1)
    consumer = await client.subscribe(
        f"{topic}-.*",
        "s",
        is_pattern_topic=True,
        initial_position=place.api.InitialPosition.Earliest,
    )
    messages = await received(consumer, 2)
    assert {one.topic_name() for one in messages} == {f"{topic}-a", f"{topic}-b"}


async def test_closing_a_consumer_ends_a_waiting_receive(client: Any) -> None:
    consumer = await client.subscribe(new_topic(), "s")
    waiting = asyncio.ensure_future(consumer.receive())
    await asyncio.sleep(0)
    await within(consumer.close())
    assert await refusal(waiting) == "AlreadyClosed"
    assert await refusal(consumer.receive()) == "AlreadyClosed"
    await within(consumer.close())


async def test_a_closed_client_closes_producers_consumers_readers(topic, place, client) -> None:
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic)
    reader = await client.create_reader(topic, place.api.MessageId.earliest)
    await within(client.close())
    assert await refusal(producer.send(b"x")) == "AlreadyClosed"
    assert await refusal(consumer.receive()) == "AlreadyClosed"
    assert await refusal(reader.read_next()) == "AlreadyClosed"
    assert await refusal(client.create_producer(topic)) == "AlreadyClosed"
    assert await refusal(client.subscribe(topic, "t")) == "AlreadyClosed"


async def test_an_unsubscribed_subscription_keeps_no_messages(topic: str, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    await within(consumer.unsubscribe())
    await _sent(client, topic, 1)
    consumer = await client.subscribe(topic, "s")
    async with nothing_comes(consumer):
        await within(consumer.close())


async def test_acknowledging_after_closing_is_refused(topic: str, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    await _sent(client, topic, 1)
    (message,) = await received(consumer, 1)
    await within(consumer.close())
    assert await refusal(consumer.acknowledge(message)) == "AlreadyClosed"
