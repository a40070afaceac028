"""Both clients refuse invalid arguments and uses of closed objects."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.official_api.apis import ANY_ERROR, Place, code_of, new_topic, received, refusal, within

pytestmark = [pytest.mark.official, pytest.mark.processes]
SAID = re.compile(r"\w")
"""A non-empty error text."""


async def _taken(name: str, value: object, doing: Callable[..., Any], *arguments: object) -> bool:
    """Return whether an argument is accepted; otherwise check its refusal."""
    try:
        await within(doing(*arguments, **{name: value}))
    except (TypeError, ValueError):
        return False
    except ANY_ERROR as error:
        return code_of(error) not in ("InvalidConfiguration", "InvalidTopicName")
    return True


async def test_a_client_refuses_invalid_arguments(place: Place) -> None:
    for name, value in (
        ("authentication", "token:x"),
        ("operation_timeout_seconds", "1"),
        ("connection_timeout_ms", "1"),
        ("concurrent_lookup_requests", "1"),
        ("stats_interval_in_seconds", "1"),
        ("tls_allow_insecure_connection", "no"),
        ("tls_validate_hostname", "no"),
        ("logger", "me"),
    ):
        with pytest.raises(ValueError, match=f"(?i){name}"):
            place.api.Client(place.service_url, **{name: value})
    for url in (None, 1, "", "pulsar://", "nonsense"):
        with pytest.raises(ValueError, match=SAID):
            place.api.Client(url)


async def test_create_producer_refuses_invalid_arguments(place: Place, client: Any) -> None:
    api = place.api
    wrong = {
        "batching_max_messages": 0,
        "max_pending_messages": -1,
        "max_pending_messages_across_partitions": -1,
        "batching_max_publish_delay_ms": -1,
        "compression_type": "LZ4",
        "access_mode": 7,
        "batching_type": "KeyBased",
        "message_routing_mode": api.CompressionType.LZ4,
    }
    taken = [one for one in wrong.items() if await _taken(*one, client.create_producer, "t")]
    assert not taken
    assert not await _taken("topic", None, client.create_producer)


async def test_send_refuses_invalid_arguments(topic: str, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic)
    for name, value in (
        ("properties", {"a": 1}),
        ("properties", {1: "a"}),
        ("partition_key", 1),
        ("ordering_key", 1),
        ("sequence_id", "1"),
        ("event_timestamp", "1"),
        ("deliver_at", "1"),
        ("deliver_after", 5),
        ("replication_clusters", "here"),
    ):
        assert not await _taken(name, value, producer.send, b"x"), name
    for content in ("text", 1, [], {}):
        with pytest.raises(TypeError):
            await producer.send(content)
    await within(producer.send(b"well"))
    assert (await received(consumer, 1))[0].data() == b"well"


async def test_subscribe_and_create_reader_refuse_invalid_arguments(place, client) -> None:
    api = place.api
    for name, value in (
        ("consumer_type", 7),
        ("initial_position", 7),
        ("regex_subscription_mode", 7),
        ("unacked_messages_timeout_ms", 5),
        ("unacked_messages_timeout_ms", -1),
        ("max_pending_chunked_message", -1),
    ):
        assert not await _taken(name, value, client.subscribe, "t", "s"), name
    for topic in (None, 1, b"x", (), [1], [""]):
        assert not await _taken("subscription_name", "s", client.subscribe, topic), topic
    for name in ("", None, 1):
        assert not await _taken("subscription_name", name, client.subscribe, "t"), name
    assert not await _taken("is_pattern_topic", True, client.subscribe, ["a"], "s")
    shared = api.ConsumerType.Shared
    compacted = {"consumer_type": shared, "is_read_compacted": True}
    assert await refusal(client.subscribe("t", "s", **compacted)) == "InvalidConfiguration"
    for start in (None, 1, "latest", b"x"):
        assert not await _taken("start_message_id", start, client.create_reader, "t"), start


async def test_a_refused_seek_drops_no_received_messages(topic: str, client: Any) -> None:
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic)
    await asyncio.gather(*(within(producer.send(data)) for data in (b"one", b"two")))
    await received(consumer, 1)
    for target in (None, "earliest", 1.5, -1):
        assert not await _taken("messageid", target, consumer.seek), target
    assert (await received(consumer, 1))[0].data() == b"two"


def test_policies_refuse_invalid_arguments(place: Place) -> None:
    api = place.api
    for count in (0, -1, None):
        with pytest.raises(ValueError, match="max_redeliver_count"):
            api.ConsumerDeadLetterPolicy(count)
    sticky = api.KeySharedMode.Sticky
    for mode, ranges in (
        (1, None),
        (sticky, None),
        (sticky, []),
        (sticky, [(0, 65_536)]),
        (sticky, [(0, 10), (5, 15)]),
    ):
        with pytest.raises(ValueError, match=SAID):
            api.ConsumerKeySharedPolicy(key_shared_mode=mode, sticky_ranges=ranges)
    with pytest.raises(ValueError, match=SAID):
        api.ConsumerBatchReceivePolicy(0, 0, 0)
    with pytest.raises(ValueError, match="token"):
        api.AuthenticationToken(b"bytes")


async def test_closed_producers_consumers_and_readers_raise_already_closed(
    place: Place, topic: str, client: Any
) -> None:
    producer = await client.create_producer(topic)
    consumer = await client.subscribe(topic, "s")
    reader = await client.create_reader(topic, place.api.MessageId.earliest)
    await within(producer.send(b"x"))
    (message,) = await received(consumer, 1)
    for one in (producer, consumer, reader):
        await within(one.close())
    for use in (
        producer.send(b"x"),
        producer.flush(),
        consumer.receive(),
        consumer.acknowledge(message),
        consumer.seek(0),
        consumer.unsubscribe(),
        reader.read_next(),
        reader.has_message_available(),
        reader.seek(0),
    ):
        assert await refusal(use) == "AlreadyClosed"
    await within(consumer.negative_acknowledge(message))  # Redelivered anyway.
    assert not producer.is_connected()
    assert not reader.is_connected()
    assert (producer.topic(), consumer.topic(), reader.topic()) == (topic, topic, topic)
    assert (consumer.subscription_name(), producer.last_sequence_id()) == ("s", 0)


async def test_an_unsubscribed_consumer_is_closed(client: Any) -> None:
    consumer = await client.subscribe(new_topic(), "s")
    await within(consumer.unsubscribe())
    assert await refusal(consumer.receive()) == "AlreadyClosed"
    assert await refusal(consumer.unsubscribe()) == "AlreadyClosed"
