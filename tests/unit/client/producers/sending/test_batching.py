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


async def test_a_batch_of_as_many_messages_as_may_be_is_sent_at_once() -> None:
    broker = ScriptedBroker()
    producer = await batching(broker, batching_max_messages=2)
    for number in range(5):
        producer.send_nowait(b"%d" % number)
    assert batches(broker) == [[b"0", b"1"], [b"2", b"3"]]
    broker.clock.advance(0.01)
    assert batches(broker)[2:] == [[b"4"]]
    assert producer.statistics().batches_sent_total == 2


async def test_a_batch_has_no_more_bytes_than_it_may() -> None:
    broker = ScriptedBroker()
    producer = await batching(broker, batching_max_allowed_size_in_bytes=10)
    for size in (4, 4, 4, 20, 1):
        producer.send_nowait(bytes(size))
    broker.clock.advance(0.01)
    assert [[len(one) for one in batch] for batch in batches(broker)] == [[4, 4], [4], [20], [1]]


@pytest.mark.parametrize("properties", [{"a": "x" * 100}, {str(n): "" for n in range(30)}])
async def test_a_batch_has_no_more_properties_than_the_broker_takes(properties) -> None:
    broker = ScriptedBroker(max_message_size=2_000)
    producer = await batching(broker)
    results = [producer.send_nowait(b"x", properties) for _ in range(20)]
    broker.clock.advance(0.01)
    assert all(len(sent.payload) <= 2_000 for sent in broker.sent)
    assert len(broker.sent[0].contents) > 1
    broker.answers()
    assert [one.exception() for one in results] == [None] * 20


async def test_a_batch_with_properties_has_no_more_plain_messages_than_the_broker_takes() -> None:
    broker = ScriptedBroker(max_message_size=2_000)
    producer = await batching(broker)
    results = [producer.send_nowait(b"x", {"a": "x" * 250}) for _ in range(5)]
    results += [producer.send_nowait(b"x" * 100) for _ in range(20)]
    broker.clock.advance(0.01)
    broker.answers()
    assert [one.exception() for one in results] == [None] * 25


async def test_a_batch_is_sent_when_it_is_due() -> None:
    broker = ScriptedBroker()
    producer = await batching(broker, batching_max_publish_delay_ms=10)
    producer.send_nowait(b"0")
    broker.clock.advance(0.009)
    producer.send_nowait(b"1")
    assert batches(broker) == []
    broker.clock.advance(0.001)
    assert batches(broker) == [[b"0", b"1"]]


async def test_a_batch_that_holds_the_last_places_is_not_kept_waiting() -> None:
    broker = ScriptedBroker()
    producer = await batching(broker, max_pending_messages=2)
    await started(producer.send(b"0"))
    await started(producer.send(b"1"))
    assert batches(broker) == []
    await started(producer.send(b"2"))
    assert batches(broker) == [[b"0", b"1"]]


async def test_messages_of_a_batch_have_their_places_in_it() -> None:
    broker = ScriptedBroker()
    producer = await batching(broker, batching_max_messages=3)
    results = [producer.send_nowait(b"%d" % number) for number in range(3)]
    (sent,) = broker.sent
    assert (sent.send.num_messages, sent.send.highest_sequence_id) == (3, 2)
    broker.answers()
    ids = [one.result() for one in results]
    assert [one.batch_index() for one in ids] == [0, 1, 2]
    assert {one.batch_size for one in ids} == {3}


async def test_a_message_alone_is_in_no_batch() -> None:
    broker = ScriptedBroker()
    producer = await batching(broker)
    result = producer.send_nowait(b"x")
    broker.clock.advance(0.01)
    broker.answers()
    assert not broker.sent[0].metadata.HasField("num_messages_in_batch")
    assert result.result().batch_index() == -1


async def test_batches_by_key_have_one_key_each_and_rising_numbers() -> None:
    broker = ScriptedBroker()
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
async def test_what_cannot_be_written_fails_alone(kind: BatchingType) -> None:
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


async def test_numbers_rise_in_a_batch() -> None:
    broker = ScriptedBroker()
    producer = await batching(broker)
    for number in (5, 6, 2, 3):
        producer.send_nowait(b"%d" % number, sequence_id=number)
    broker.clock.advance(0.01)
    assert batches(broker) == [[b"5", b"6"], [b"2", b"3"]]


@pytest.mark.parametrize("kind", BatchingType)
async def test_a_batch_ends_where_numbers_pass_the_highest_that_the_broker_knew(kind) -> None:
    broker = ScriptedBroker(last_sequence_id=7)
    producer = await batching(broker, batching_type=kind)
    for number in range(6, 12):
        producer.send_nowait(b"%d" % number, sequence_id=number)
    broker.clock.advance(0.01)
    assert batches(broker) == [[b"6", b"7"], [b"8", b"9", b"10", b"11"]]


async def test_a_batch_ends_where_numbers_pass_the_highest_that_was_sent() -> None:
    broker = ScriptedBroker()
    producer = await batching(broker)
    for number in (0, 1, 0, 1, 2):
        producer.send_nowait(b"%d" % number, sequence_id=number)
    broker.clock.advance(0.01)
    assert batches(broker) == [[b"0", b"1"], [b"0", b"1"], [b"2"]]


@pytest.mark.parametrize("content", [b"", b"x"])
async def test_a_batch_counts_what_its_frame_holds(content: bytes) -> None:
    broker = ScriptedBroker()
    producer = await batching(broker, batching_max_messages=10)
    for _ in range(10):
        producer.send_nowait(content)
    (sent,) = broker.sent
    assert broker.memory.current_usage >= len(sent.payload)
    broker.answers()
    assert broker.memory.current_usage == 0
