"""Redelivery: of batches, by subscription type, and when a topic moves or ends."""

import asyncio
from typing import Any

import pytest

from tests.official_api.apis import Place, new_topic, received, refusal, sent_together, within

pytestmark = [pytest.mark.official, pytest.mark.processes]
LAST = b"last"
"""Marker message, sent when all redeliveries are on their way."""


async def _rest(client: Any, consumer: Any, topic: str) -> list[bytes]:
    """Return the messages before a marker sent now."""
    producer = await client.create_producer(topic)
    await within(producer.send(LAST))
    found: list[bytes] = []
    while LAST not in found:
        found += [one.data() for one in await received(consumer, 1)]
    return found[:-1]


@pytest.mark.parametrize("by_index", [False, True])
@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
async def test_a_partly_acknowledged_batch_is_redelivered_whole_unless_by_index(
    place: Place, kind: str, by_index: bool, topic: str, client: Any
) -> None:
    options: dict[str, Any] = {"consumer_type": getattr(place.api.ConsumerType, kind)}
    options["batch_index_ack_enabled"] = by_index
    consumer = await client.subscribe(topic, "s", **options)
    await sent_together(client, topic, 5)
    for message in (await received(consumer, 5))[:2]:
        await within(consumer.acknowledge(message))
    await within(consumer.close())
    consumer = await client.subscribe(topic, "s", **options)
    wanted = [b"2", b"3", b"4"] if by_index else [b"0", b"1", b"2", b"3", b"4"]
    assert await _rest(client, consumer, topic) == wanted


@pytest.mark.parametrize("by_index", [False, True])
async def test_cumulative_ack_within_a_batch_counts_by_index(by_index, topic, client) -> None:
    consumer = await client.subscribe(topic, "s", batch_index_ack_enabled=by_index)
    for _ in range(2):
        await sent_together(client, topic, 3)
    messages = await received(consumer, 6)
    await within(consumer.acknowledge_cumulative(messages[4]))
    await within(consumer.close())
    consumer = await client.subscribe(topic, "s", batch_index_ack_enabled=by_index)
    wanted = [b"2"] if by_index else [b"0", b"1", b"2"]
    assert await _rest(client, consumer, topic) == wanted


@pytest.mark.parametrize(
    ("kind", "counts"),
    [("Exclusive", [0, 0]), ("Failover", [0, 0]), ("Shared", [0, 1]), ("KeyShared", [0, 1])],
)
async def test_redeliveries_are_counted_only_in_shared_subscriptions(
    place, kind, counts, topic, client
) -> None:
    consumer = await client.subscribe(
        topic,
        "s",
        consumer_type=getattr(place.api.ConsumerType, kind),
        negative_ack_redelivery_delay_ms=10,
    )
    await sent_together(client, topic, 1)
    found = []
    for _ in range(2):
        (message,) = await received(consumer, 1)
        found.append(message.redelivery_count())
        await within(consumer.negative_acknowledge(message))
    assert found == counts


async def test_a_waiting_receive_returns_the_first_message_after_a_seek(topic, client) -> None:
    consumer = await client.subscribe(topic, "s")
    await sent_together(client, topic, 2)
    await received(consumer, 2)
    waiting = asyncio.ensure_future(consumer.receive())
    await asyncio.sleep(0)
    await within(consumer.seek(0))
    assert (await within(waiting)).data() == b"0"


@pytest.mark.parametrize(("method", "end"), [("PUT", "/unload"), ("DELETE", "?force=true")])
async def test_clients_continue_after_a_topic_is_unloaded_or_deleted(
    place, method, end, topic, client
) -> None:
    # From the beginning: a producer may reconnect before the consumer.
    earliest = place.api.InitialPosition.Earliest
    consumer = await client.subscribe(topic, "s", initial_position=earliest)
    producer = await client.create_producer(topic)
    await within(producer.send(b"before"))
    await within(consumer.acknowledge((await received(consumer, 1))[0]))
    await place.ask(method, f"{topic.replace('://', '/')}{end}")
    await within(producer.send(b"behind"))
    while (await received(consumer, 1))[0].data() != b"behind":
        pass  # The acknowledgement may have been in flight.


async def test_messages_of_a_non_persistent_topic_have_zero_ids(client: Any) -> None:
    topic = new_topic().replace("persistent", "non-persistent")
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic)
    sent = await within(producer.send(b"x"))
    (message,) = await received(consumer, 1)
    await within(consumer.acknowledge(message))
    await within(consumer.negative_acknowledge(message))
    found = message.message_id()
    assert (sent.ledger_id(), sent.entry_id(), found.ledger_id()) == (0, 0, 0)
    assert message.topic_name() == topic


async def test_sequence_ids_continue_after_the_initial_sequence_id(client: Any) -> None:
    producer = await client.create_producer(new_topic(), initial_sequence_id=10)
    seen = [producer.last_sequence_id()]
    for number in (None, 5, None, 100, None):
        await within(producer.send(b"x", sequence_id=number))
        seen.append(producer.last_sequence_id())
    assert seen == [10, 11, 5, 12, 100, 13]
    fresh = await client.create_producer(new_topic())
    assert fresh.last_sequence_id() == -1


async def test_a_consumer_cannot_unsubscribe_while_another_is_connected(
    place: Place, topic: str, client: Any
) -> None:
    kind = place.api.ConsumerType.Shared
    consumers = [await client.subscribe(topic, "s", consumer_type=kind) for _ in range(2)]
    assert await refusal(consumers[0].unsubscribe()) == "BrokerMetadataError"
