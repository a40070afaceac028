"""Messages held by the program are acknowledged, or redelivered."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from client.consumers.consumer import open_consumer
from client.consumers.options import ConsumerOptions, NegativeAckBackoff
from client.exceptions import (
    AlreadyClosed,
    CumulativeAcknowledgementNotAllowedError,
    InvalidMessage,
    NotConnected,
    Timeout,
)
from client.messages.chunked_message import ChunkedMessage
from client.messages.enums import ConsumerType
from client.messages.message_id import MessageId
from client.messages.outgoing import OutgoingMessage
from tests.support.clocks.settle import settle, started
from tests.support.messages.entries import NOW, PRODUCER
from tests.support.peers.model_broker import LEDGER, ModelBroker
from tests.support.peers.model_consumers import after, kinds, numbers, opened, topic_of

Type = pb.BaseCommand
REDELIVER = Type.REDELIVER_UNACKNOWLEDGED_MESSAGES
SHARED = ConsumerType.Shared


async def test_acknowledgements_are_grouped_for_100_ms_into_a_single_command(
    broker: ModelBroker,
) -> None:
    broker.publish(entries=3)
    consumer = await opened(broker)
    messages = [await consumer.receive() for _ in range(3)]
    await consumer.acknowledge(messages[:2])
    await consumer.acknowledge(messages[2].message_id())
    before = len(broker.acks)
    await after(broker, 0.1)
    assert before == 0
    assert [len(ack.message_id) for ack in broker.acks] == [3]
    assert broker.left == []


async def test_a_batch_is_acknowledged_after_all_of_its_messages(broker: ModelBroker) -> None:
    broker.publish(3)
    consumer = await opened(broker, ack_group_time_ms=0)
    messages = [await consumer.receive() for _ in range(3)]
    await consumer.acknowledge(messages[:2])
    await settle()
    before = len(broker.acks)
    await consumer.acknowledge(messages[2])
    await settle()
    assert before == 0
    assert broker.left == []


async def test_batch_index_acknowledgements_are_sent_when_enabled() -> None:
    broker = ModelBroker().publish(70)
    consumer = await opened(broker, batch_index_ack_enabled=True, receiver_queue_size=100)
    messages = [await consumer.receive() for _ in range(70)]
    await consumer.acknowledge(messages[:65])
    await after(broker, 0.1)
    assert list(broker.acks[0].message_id[0].ack_set) == [0, 62]


async def test_a_cumulative_acknowledgement_covers_the_entry_before_an_incomplete_batch(
    broker: ModelBroker,
) -> None:
    broker.publish()
    broker.publish(3)
    consumer = await opened(broker)
    messages = [await consumer.receive() for _ in range(4)]
    await consumer.acknowledge_cumulative(messages[2])
    await after(broker, 0.1)
    first = broker.left
    await consumer.acknowledge_cumulative(messages[3])
    await after(broker, 0.1)
    assert (first, broker.left) == ([1], [])


async def test_a_cumulative_acknowledgement_is_refused_on_a_shared_subscription(
    broker: ModelBroker,
) -> None:
    broker.publish()
    consumer = await opened(broker, consumer_type=SHARED)
    with pytest.raises(CumulativeAcknowledgementNotAllowedError):
        await consumer.acknowledge_cumulative(await consumer.receive())


async def test_acknowledge_waits_for_its_receipt_when_receipts_are_enabled(
    broker: ModelBroker,
) -> None:
    broker.publish()
    consumer = await opened(broker, ack_receipt_enabled=True)
    message = await consumer.receive()
    acknowledging = await started(consumer.acknowledge(message))
    waited = not acknowledging.done()
    broker.clock.advance(0.1)
    await acknowledging
    assert waited
    assert broker.left == []


async def test_a_receipt_lost_with_its_connection_raises_not_connected() -> None:
    broker = ModelBroker(hold=None).publish()
    consumer = await opened(broker, ack_receipt_enabled=True, ack_group_time_ms=0)
    message = await consumer.receive()
    broker.hold = asyncio.Event()
    acknowledging = await started(consumer.acknowledge(message))
    broker.breaks()
    broker.hold.set()
    with pytest.raises(NotConnected):
        await acknowledging


async def test_acknowledge_without_a_connection_times_out_waiting_for_its_receipt(
    broker: ModelBroker,
) -> None:
    broker.publish()
    consumer = await opened(broker, ack_receipt_enabled=True)
    message = await consumer.receive()
    broker.breaks()
    hold = broker.hold = asyncio.Event()
    acknowledging = await started(consumer.acknowledge(message))
    await after(broker, 30.1)
    assert acknowledging.done()
    with pytest.raises(Timeout, match=r"no receipt in 30\.1 s"):
        await acknowledging
    hold.set()
    await after(broker, 1)
    assert broker.left == []


async def test_a_message_id_without_batch_size_or_of_another_topic_is_refused(consumer) -> None:
    with pytest.raises(InvalidMessage, match="of a size that the id does not give"):
        await consumer.acknowledge(MessageId(-1, LEDGER, 0, 1))
    with pytest.raises(InvalidMessage, match="no such topic"):
        await consumer.acknowledge(MessageId(-1, LEDGER, 0, topic_name="persistent://a/b/other"))


async def test_a_negatively_acknowledged_message_is_redelivered_after_its_delay(
    broker: ModelBroker,
) -> None:
    broker.publish()
    consumer = await opened(broker, consumer_type=SHARED, negative_ack_redelivery_delay_ms=1_000)
    await consumer.negative_acknowledge(await consumer.receive())
    await after(broker, 0.9)
    early = consumer.receive_nowait()
    await after(broker, 0.3)
    message = consumer.receive_nowait()
    assert early is None
    assert message is not None
    assert (message.data(), message.redelivery_count()) == (b"0", 1)


async def test_the_redelivery_delay_grows_with_each_redelivery(broker: ModelBroker) -> None:
    broker.publish()
    consumer = await opened(
        broker,
        consumer_type=SHARED,
        negative_ack_backoff=NegativeAckBackoff(1_000, 3_000),
    )
    waits = []
    for _ in range(3):
        message = consumer.receive_nowait()
        assert message is not None
        await consumer.negative_acknowledge(message)
        waits.append(0.0)
        while not consumer.statistics().messages_queued:
            await after(broker, 0.1)
            waits[-1] += 0.1
    assert [round(wait) for wait in waits] == [1, 2, 3]


async def test_a_message_acknowledged_after_its_refusal_is_not_redelivered() -> None:
    broker = ModelBroker().publish()
    consumer = await opened(broker, consumer_type=SHARED)
    message = await consumer.receive()
    await consumer.negative_acknowledge(message)
    await consumer.acknowledge(message)
    await after(broker, 100)
    assert REDELIVER not in kinds(broker)


async def test_an_unacknowledged_message_is_redelivered_after_the_timeout(
    broker: ModelBroker,
) -> None:
    broker.publish(entries=2)
    consumer = await opened(broker, consumer_type=SHARED, unacked_messages_timeout_ms=10_000)
    first, second = await consumer.receive(), await consumer.receive()
    await consumer.acknowledge(first)
    await after(broker, 11)
    again = consumer.receive_nowait()
    assert again is not None
    assert again.message_id() == second.message_id()
    assert consumer.receive_nowait() is None


async def test_an_exclusive_consumer_redelivers_all_messages_in_a_new_epoch(
    broker: ModelBroker,
) -> None:
    broker.publish(entries=3)
    consumer = await opened(broker)
    await numbers(consumer, 2)
    consumer.redeliver_unacknowledged_messages()
    await settle()
    assert broker.epoch == 1
    assert await numbers(consumer, 3) == [b"0", b"1", b"2"]
    assert consumer.receive_nowait() is None


@pytest.mark.parametrize("milliseconds", [0, 100])
async def test_acknowledgements_with_receipts_are_sent_before_a_redelivery_of_all_messages(
    broker: ModelBroker, milliseconds: int
) -> None:
    broker.publish(entries=2)
    consumer = await opened(
        broker, ack_receipt_enabled=True, ack_group_time_ms=milliseconds, consumer_type=SHARED
    )
    message = await consumer.receive()
    # When both happen in one turn of the loop
    receipt = topic_of(consumer).handed_out.acknowledge(message.message_id())
    consumer.redeliver_unacknowledged_messages()
    assert receipt is not None
    await receipt
    assert await numbers(consumer, 1) == [b"1"]


async def test_a_redelivered_batch_omits_its_acknowledged_messages() -> None:
    broker = ModelBroker(by_index=False).publish(3)
    consumer = await opened(broker, consumer_type=SHARED, negative_ack_redelivery_delay_ms=1_000)
    first, second = await consumer.receive(), await consumer.receive()
    await consumer.acknowledge(first)
    await consumer.negative_acknowledge(second)
    await after(broker, 1.2)
    assert await numbers(consumer, 2) == [b"1", b"2"]
    assert consumer.receive_nowait() is None


async def test_memory_may_count_until_a_message_is_acknowledged(broker: ModelBroker) -> None:
    broker.publish(entries=3)
    consumer = await opened(
        broker,
        consumer_type=SHARED,
        memory_until_acknowledged=True,
        negative_ack_redelivery_delay_ms=100,
    )
    queued = broker.memory.current_usage
    messages = [await consumer.receive() for _ in range(3)]
    taken = broker.memory.current_usage
    await consumer.acknowledge(messages[0])
    acknowledged = broker.memory.current_usage
    await consumer.negative_acknowledge(messages[1])
    broker.delivers = False
    await after(broker, 1)
    refused = broker.memory.current_usage
    assert (queued, taken, acknowledged, refused) == (3, 3, 2, 1)
    await consumer.close()
    assert broker.memory.current_usage == 0


@pytest.mark.parametrize("how", ["refused", "timed out", "all"])
async def test_memory_of_a_non_persistent_message_is_released_when_redelivery_is_requested(
    how: str,
) -> None:
    broker = ModelBroker().publish(size=1_000)
    name = "non-persistent://public/default/t"
    options = ConsumerOptions(
        receiver_queue_policy="fixed",
        memory_until_acknowledged=True,
        consumer_type=SHARED,
        unacked_messages_timeout_ms=10_000 if how == "timed out" else None,
    )
    consumer = await open_consumer(broker.context, name, "sub", options)
    message = await consumer.receive()
    counted = broker.memory.current_usage
    if how == "refused":
        await consumer.negative_acknowledge(message)
    elif how == "all":
        consumer.redeliver_unacknowledged_messages()
    await after(broker, 12)
    assert (counted, broker.memory.current_usage) == (1_000, 0)
    assert REDELIVER not in kinds(broker)


async def test_deserialized_message_ids_acknowledge_their_batch(broker: ModelBroker) -> None:
    broker.publish(2)
    consumer = await opened(broker, ack_group_time_ms=0)
    ids = [(await consumer.receive()).message_id().serialize() for _ in range(2)]
    for one in ids:
        await consumer.acknowledge(MessageId.deserialize(one))
    await settle()
    assert broker.left == []


async def test_a_batch_completed_by_a_cumulative_acknowledgement_is_fully_released(
    broker: ModelBroker,
) -> None:
    broker.publish(3)
    consumer = await opened(
        broker, memory_until_acknowledged=True, unacked_messages_timeout_ms=10_000
    )
    messages = [await consumer.receive() for _ in range(3)]
    await consumer.acknowledge(messages[2])
    await consumer.acknowledge_cumulative(messages[1])
    handed_out = topic_of(consumer).handed_out
    assert (handed_out.redelivery.unacknowledged, broker.memory.current_usage) == (0, 0)
    assert len(handed_out.acks.partial) == 0
    await after(broker, 0.1)
    assert broker.left == []


async def test_cumulatively_acknowledged_batches_are_not_kept(broker: ModelBroker) -> None:
    for _ in range(4):
        broker.publish(2)
    consumer = await opened(broker)
    for _ in range(8):
        await consumer.acknowledge_cumulative(await consumer.receive())
    assert len(topic_of(consumer).handed_out.acks.partial) == 0


async def test_a_batch_redelivered_by_timeout_is_not_redelivered_for_its_refusal(
    broker: ModelBroker,
) -> None:
    broker.publish(2)
    consumer = await opened(
        broker,
        consumer_type=SHARED,
        unacked_messages_timeout_ms=10_000,
        negative_ack_redelivery_delay_ms=15_000,
    )
    await consumer.negative_acknowledge(await consumer.receive())
    await consumer.receive()
    await after(broker, 12)
    broker.delivers = False
    await after(broker, 10)
    assert kinds(broker).count(REDELIVER) == 1


async def test_a_chunked_message_is_fully_acknowledged_after_a_reconnection(broker) -> None:
    large = ChunkedMessage(OutgoingMessage(bytes(1_000), 1), PRODUCER, NOW, 300)
    for number in range(large.chunk_count):
        broker.store(large.entry(number))
    consumer = await opened(broker, ack_group_time_ms=0)
    message = await consumer.receive()
    broker.delivers = False
    broker.breaks()
    await after(broker, 1)
    await consumer.acknowledge(message)
    await settle()
    assert len(message.data()) == 1_000
    assert broker.left == []


async def test_acknowledging_part_of_a_batch_does_not_await_a_stale_receipt(
    broker: ModelBroker,
) -> None:
    broker.publish(2)
    consumer = await opened(broker, ack_receipt_enabled=True, ack_group_time_ms=10_000)
    acks = topic_of(consumer).handed_out.acks
    acks.entry((LEDGER, 9))
    acks.drop(AlreadyClosed("dropped"))
    await consumer.acknowledge(await consumer.receive())
