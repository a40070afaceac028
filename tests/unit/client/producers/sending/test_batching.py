"""Batches are sent when full, when due, and when flushed."""

from typing import Any

import pytest

from client.interceptors import ProducerInterceptor
from client.messages.enums import BatchingType
from client.messages.outgoing import OutgoingMessage
from client.producers.producer import Producer
from tests.support.clocks.settle import started
from tests.support.peers.scripted_broker import ScriptedBroker


async def batching(broker: ScriptedBroker, **options: Any) -> Producer:
    return await broker.producer(batching_enabled=True, **options)


def batches(broker: ScriptedBroker) -> list[list[bytes]]:
    return [one.contents for one in broker.sent]


async def test_a_batch_with_the_maximum_of_messages_is_sent_immediately(broker) -> None:
    producer = await batching(broker, batching_max_messages=2)
    for number in range(5):
        producer.send_nowait(b"%d" % number)
    assert batches(broker) == [[b"0", b"1"], [b"2", b"3"]]
    broker.clock.advance(0.01)
    assert batches(broker)[2:] == [[b"4"]]
    assert producer.statistics().batches_sent_total == 2


async def test_a_batch_stays_within_its_byte_limit_except_for_a_single_larger_message() -> None:
    broker = ScriptedBroker()
    producer = await batching(broker, batching_max_allowed_size_in_bytes=10)
    for size in (4, 4, 4, 20, 1):
        producer.send_nowait(bytes(size))
    broker.clock.advance(0.01)
    assert [[len(one) for one in batch] for batch in batches(broker)] == [[4, 4], [4], [20], [1]]


@pytest.mark.parametrize("properties", [{"a": "x" * 100}, {str(n): "" for n in range(30)}])
async def test_a_batch_with_properties_stays_within_the_brokers_message_limit(properties) -> None:
    broker = ScriptedBroker(max_message_size=2_000)
    producer = await batching(broker)
    results = [producer.send_nowait(b"x", properties) for _ in range(20)]
    broker.clock.advance(0.01)
    assert all(len(sent.payload) <= 2_000 for sent in broker.sent)
    assert len(broker.sent[0].contents) > 1
    broker.answers()
    assert [one.exception() for one in results] == [None] * 20


async def test_a_batch_mixing_properties_and_plain_messages_stays_within_the_brokers_limit() -> (
    None
):
    broker = ScriptedBroker(max_message_size=2_000)
    producer = await batching(broker)
    results = [producer.send_nowait(b"x", {"a": "x" * 250}) for _ in range(5)]
    results += [producer.send_nowait(b"x" * 100) for _ in range(20)]
    broker.clock.advance(0.01)
    broker.answers()
    assert [one.exception() for one in results] == [None] * 25


async def test_a_batch_is_sent_when_its_publish_delay_ends(broker: ScriptedBroker) -> None:
    producer = await batching(broker, batching_max_publish_delay_ms=10)
    producer.send_nowait(b"0")
    broker.clock.advance(0.009)
    producer.send_nowait(b"1")
    assert batches(broker) == []
    broker.clock.advance(0.001)
    assert batches(broker) == [[b"0", b"1"]]


async def test_a_batch_that_fills_the_queue_is_sent_as_soon_as_another_send_waits(broker) -> None:
    producer = await batching(broker, max_pending_messages=2)
    await started(producer.send(b"0"))
    await started(producer.send(b"1"))
    assert batches(broker) == []
    await started(producer.send(b"2"))
    assert batches(broker) == [[b"0", b"1"]]


async def test_message_ids_of_a_batch_have_batch_index_and_batch_size(broker) -> None:
    producer = await batching(broker, batching_max_messages=3)
    results = [producer.send_nowait(b"%d" % number) for number in range(3)]
    (sent,) = broker.sent
    assert (sent.send.num_messages, sent.send.highest_sequence_id) == (3, 2)
    broker.answers()
    ids = [one.result() for one in results]
    assert [one.batch_index() for one in ids] == [0, 1, 2]
    assert {one.batch_size for one in ids} == {3}


async def test_a_single_message_is_sent_unbatched(broker: ScriptedBroker) -> None:
    producer = await batching(broker)
    result = producer.send_nowait(b"x")
    broker.clock.advance(0.01)
    broker.answers()
    assert not broker.sent[0].metadata.HasField("num_messages_in_batch")
    assert result.result().batch_index() == -1


async def test_key_based_batches_have_a_single_key_each_and_rising_sequence_ids(broker) -> None:
    producer = await batching(broker, batching_type=BatchingType.KeyBased)
    for content, key in ((b"0", "b"), (b"1", "a"), (b"2", "a"), (b"3", "b")):
        producer.send_nowait(content, partition_key=key)
    broker.clock.advance(0.01)
    # A broker with deduplication has seen no larger number before each of them
    assert batches(broker) == [[b"1", b"2"], [b"0", b"3"]]
    assert [one.metadata.partition_key for one in broker.sent] == ["a", "b"]
    assert [one.send.sequence_id for one in broker.sent] == [2, 3]
    broker.answers()
    assert producer.last_sequence_id() == 3


@pytest.mark.parametrize("kind", BatchingType)
async def test_a_message_that_cannot_be_encoded_fails_alone(kind: BatchingType) -> None:
    # An interceptor that has spoiled a message
    class Spoils(ProducerInterceptor):
        def before_send(self, _: object, message: OutgoingMessage) -> None:
            if message.payload == b"spoilt":
                message.event_timestamp = "never"  # type: ignore[assignment]

    broker = ScriptedBroker()
    producer = await batching(broker, batching_type=kind, interceptors=[Spoils()])
    spoilt = producer.send_nowait(b"spoilt", partition_key="a")
    broker.clock.advance(0.01)
    others = [producer.send_nowait(b"x", partition_key=key) for key in "ba"]
    broker.clock.advance(0.01)
    broker.answers()
    assert isinstance(spoilt.exception(), TypeError)
    assert [one.exception() for one in others] == [None, None]
    assert broker.memory.current_usage == 0


async def test_sequence_ids_rise_within_a_batch(broker: ScriptedBroker) -> None:
    producer = await batching(broker)
    for number in (5, 6, 2, 3):
        producer.send_nowait(b"%d" % number, sequence_id=number)
    broker.clock.advance(0.01)
    assert batches(broker) == [[b"5", b"6"], [b"2", b"3"]]


@pytest.mark.parametrize("kind", BatchingType)
async def test_a_batch_ends_at_the_last_sequence_id_known_to_the_broker(kind) -> None:
    broker = ScriptedBroker(last_sequence_id=7)
    producer = await batching(broker, batching_type=kind)
    for number in range(6, 12):
        producer.send_nowait(b"%d" % number, sequence_id=number)
    broker.clock.advance(0.01)
    assert batches(broker) == [[b"6", b"7"], [b"8", b"9", b"10", b"11"]]


async def test_a_batch_ends_at_the_highest_sequence_id_sent_before(broker: ScriptedBroker) -> None:
    producer = await batching(broker)
    for number in (0, 1, 0, 1, 2):
        producer.send_nowait(b"%d" % number, sequence_id=number)
    broker.clock.advance(0.01)
    assert batches(broker) == [[b"0", b"1"], [b"0", b"1"], [b"2"]]


@pytest.mark.parametrize("content", [b"", b"x"])
async def test_a_batch_counts_at_least_its_payload_towards_memory(content: bytes) -> None:
    broker = ScriptedBroker()
    producer = await batching(broker, batching_max_messages=10)
    for _ in range(10):
        producer.send_nowait(content)
    (sent,) = broker.sent
    assert broker.memory.current_usage >= len(sent.payload)
    broker.answers()
    assert broker.memory.current_usage == 0
