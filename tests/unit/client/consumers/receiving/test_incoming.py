"""Arriving entries are counted, read, skipped and requested."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from client.consumers.consumer import open_consumer
from client.consumers.options import ConsumerOptions
from client.memory.bytes_receiver_queue import BytesReceiverQueue
from client.messages.enums import ConsumerCryptoFailureAction, ConsumerType
from client.messages.message_id import MessageId
from tests.support.clocks.settle import settle, started
from tests.support.messages.entries import compacted, encrypted
from tests.support.peers.model_broker import ModelBroker
from tests.support.peers.model_consumers import after, kinds, numbers, opened, topic_of

Type = pb.BaseCommand
SHARED = ConsumerType.Shared


async def test_a_broken_entry_is_acknowledged_with_its_reason_and_frees_its_permit() -> None:
    broker = ModelBroker().publish()
    broker.entries[0].tail = broker.entries[0].tail[:-1] + b"?"
    broker.publish()
    consumer = await opened(broker)
    assert await numbers(consumer, 1) == [b"1"]
    assert broker.acks[0].validation_error == pb.CommandAck.ChecksumMismatch
    assert broker.left == [1]
    assert consumer.statistics().topics[0].broken_entries == 1


async def test_without_a_queue_receives_before_and_after_a_disconnect_are_served(broker) -> None:
    consumer = await opened(broker, receiver_queue_size=0)
    first = await started(consumer.receive())
    broker.breaks()
    second = await started(consumer.receive())
    await after(broker, 1)
    assert broker.permits == 2
    broker.publish(entries=2)
    assert {(await first).data(), (await second).data()} == {b"0", b"1"}
    assert broker.permits == topic_of(consumer).incoming.outstanding == 0


async def test_a_waiting_receive_keeps_requesting_permits_after_an_unreadable_entry(broker) -> None:
    consumer = await opened(broker, receiver_queue_policy="bytes")
    waiting = await started(consumer.receive())
    broker.store(encrypted(1), 1, is_batch=True)
    await settle()
    queue = topic_of(consumer).incoming.queue
    assert isinstance(queue, BytesReceiverQueue)
    assert queue.asking
    broker.publish()
    assert (await waiting).data() == b"1"
    assert not queue.asking


async def test_a_receive_after_an_unreadable_entry_requests_permits_again() -> None:
    # Given a topic reported as empty, and an entry that arrived without a receiver
    consumer = await opened(ModelBroker(), receiver_queue_policy="bytes")
    (await started(consumer.receive())).cancel()
    await settle()
    incoming = topic_of(consumer).incoming
    incoming.count_arrived(1, 10)
    incoming.count_freed(1, 10)
    assert isinstance(incoming.queue, BytesReceiverQueue)
    assert not incoming.queue.asking
    await started(consumer.receive())
    assert incoming.queue.asking


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, SHARED])
async def test_more_is_pending_follows_the_backlog_of_the_broker(kind: ConsumerType) -> None:
    broker = ModelBroker(delivers=False)
    consumer = await opened(broker, consumer_type=kind)
    (topic,) = consumer._topics.topics.values()
    before = await topic.incoming.more_is_pending()
    broker.publish()
    broker.permits = 0
    assert (before, await topic.incoming.more_is_pending()) == (False, True)


async def test_an_unreadable_batch_returns_its_permits(broker: ModelBroker) -> None:
    discard = ConsumerCryptoFailureAction.DISCARD
    consumer = await opened(broker, crypto_failure_action=discard)
    for number in range(8):
        broker.store(encrypted(5), 5, is_batch=True)
        broker.publish(5)
        broker.entries[-1].tail = broker.entries[-1].tail[:-1] + bytes([number])
        await settle()
    broker.publish()
    assert topic_of(consumer).incoming.outstanding == broker.permits
    assert len(await numbers(consumer, 1)) == 1


async def test_a_batch_partly_acknowledged_earlier_is_completed_by_its_remaining_messages() -> None:
    # Given an earlier consumer that acknowledged a part
    broker = ModelBroker().publish(3)
    broker.entries[0].left = 0b110
    consumer = await opened(broker, consumer_type=SHARED, memory_until_acknowledged=True)
    for _ in range(2):
        await consumer.acknowledge(await consumer.receive())
    await after(broker, 0.1)
    assert broker.left == []
    assert [list(ack.message_id[0].ack_set) for ack in broker.acks] == [[]]
    assert broker.memory.current_usage == 0


async def test_a_batch_without_remaining_messages_is_acknowledged(broker: ModelBroker) -> None:
    # Given a batch whose messages were all compacted away
    broker.store(compacted(2, {0, 1}), 2, is_batch=True)
    broker.publish()
    consumer = await opened(broker)
    received = consumer.receive_nowait()
    await after(broker, 0.1)
    assert received is not None
    assert broker.left == [1]


async def test_messages_dropped_during_a_seek_do_not_hide_pending_messages() -> None:
    broker = ModelBroker().publish(entries=5)
    consumer = await opened(broker)
    hold = broker.hold = asyncio.Event()
    seeking = await started(consumer.seek(MessageId.earliest))
    broker.publish()
    broker.hold, broker.delivers = None, False
    hold.set()
    await after(broker, 0.2)
    await seeking
    assert await topic_of(consumer).incoming.more_is_pending()


async def test_a_non_persistent_topic_gets_no_acknowledgement_and_no_redelivery_request() -> None:
    broker = ModelBroker().publish(entries=2)
    options = ConsumerOptions(
        memory_until_acknowledged=True, ack_receipt_enabled=True, receiver_queue_policy="fixed"
    )
    name = "non-persistent://public/default/t"
    consumer = await open_consumer(broker.context, name, "s", options)
    await settle()
    message = await consumer.receive()
    counted = broker.memory.current_usage
    await consumer.acknowledge(message)
    consumer.redeliver_unacknowledged_messages()
    await consumer.negative_acknowledge(message)
    await after(broker, 100)
    assert broker.acks == []
    assert Type.REDELIVER_UNACKNOWLEDGED_MESSAGES not in kinds(broker)
    assert await numbers(consumer, 1) == [b"1"]
    assert (counted, broker.memory.current_usage) == (2, 1)
