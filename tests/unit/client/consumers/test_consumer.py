"""Consumers receive what the broker sends, acknowledge it, and leave nothing behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import proto.PulsarApi_pb2 as pb
from client.consumers.consumer import open_consumer
from client.consumers.options import ConsumerOptions
from client.consumers.policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    ConsumerKeySharedPolicy,
    NegativeAckBackoff,
)
from client.exceptions import (
    AlreadyClosed,
    ConsumerBusy,
    CumulativeAcknowledgementNotAllowedError,
    InvalidConfiguration,
    InvalidMessage,
    NotConnected,
    Timeout,
    TopicTerminated,
    server_response_error,
)
from client.messages.enums import ConsumerType, InitialPosition, KeySharedMode
from client.messages.message_id import MessageId
from tests.support.clocks.settle import settle, started
from tests.support.peers.model_broker import LEDGER, TOPIC, ModelBroker

if TYPE_CHECKING:
    from client.consumers.consumer import Consumer

Type = pb.BaseCommand
REDELIVER = Type.REDELIVER_UNACKNOWLEDGED_MESSAGES
SHARED = ConsumerType.Shared


async def opened(broker: ModelBroker, **options: Any) -> Consumer:
    """Return a consumer of a queue of fixed size."""
    options = {"receiver_queue_policy": "fixed", "receiver_queue_size": 10, **options}
    return await open_consumer(broker.context, TOPIC, "sub", ConsumerOptions(**options))


async def numbers(consumer: Consumer, count: int) -> list[bytes]:
    """Return the payloads of the next messages."""
    return [(await consumer.receive(1_000)).data() for _ in range(count)]


def kinds(broker: ModelBroker) -> list[int]:
    return [command.type for command in broker.commands]


async def after(broker: ModelBroker, seconds: float) -> None:
    """Let time pass, and everybody act."""
    await settle()
    broker.clock.advance(seconds)
    await settle()


# -- attaching ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partitions", "retry_enabled", "common"),
    [(0, False, False), (1, False, True), (0, True, True)],
)
async def test_upstream_has_a_common_queue_beside_those_of_several_topics_alone(
    partitions: int, retry_enabled: bool, common: bool
) -> None:
    # Given: partitions, or a retry topic, are several
    broker = ModelBroker(partition_count=partitions)
    broker.publish(1)
    # When
    consumer = await opened(
        broker,
        receiver_queue_policy="pulsar",
        retry_enabled=retry_enabled,
        dead_letter_policy=ConsumerDeadLetterPolicy(3) if retry_enabled else None,
    )
    await settle()
    # Then: what is handed over to the common queue makes room for more than a message of each.
    flows = [one.flow for one in broker.commands if one.type == pb.BaseCommand.FLOW]
    granted = sum(flow.messagePermits for flow in flows)
    assert (granted > len(consumer.statistics().topics)) is common


async def test_subscribe_says_everything_the_options_say() -> None:
    # Given
    broker = ModelBroker()
    # When
    await opened(
        broker,
        consumer_type=ConsumerType.KeyShared,
        consumer_name="me",
        initial_position=InitialPosition.Earliest,
        properties={"a": "b"},
        subscription_properties={"c": "d"},
        priority_level=2,
        replicate_subscription_state_enabled=True,
        key_shared_policy=ConsumerKeySharedPolicy(
            KeySharedMode.Sticky, allow_out_of_order_delivery=True, sticky_ranges=[(0, 9)]
        ),
    )
    # Then
    asked = broker.subscribed
    assert asked is not None
    assert (asked.topic, asked.subscription, asked.consumer_name) == (TOPIC, "sub", "me")
    assert (asked.subType, asked.priority_level) == (pb.CommandSubscribe.Key_Shared, 2)
    assert asked.initialPosition == pb.CommandSubscribe.Earliest
    assert (asked.durable, asked.replicate_subscription_state) == (True, True)
    assert [(one.key, one.value) for one in asked.metadata] == [("a", "b")]
    assert [(one.key, one.value) for one in asked.subscription_properties] == [("c", "d")]
    meta = asked.keySharedMeta
    assert (meta.keySharedMode, meta.allowOutOfOrderDelivery) == (pb.STICKY, True)
    assert [(one.start, one.end) for one in meta.hashRanges] == [(0, 9)]
    assert not asked.HasField("consumer_epoch")


async def test_permits_are_granted_when_it_is_subscribed_and_as_half_of_them_come_free() -> None:
    # Given
    broker = ModelBroker()
    for _ in range(12):
        broker.publish()
    consumer = await opened(broker)
    await settle()
    # When
    await numbers(consumer, 5)
    await settle()
    # Then
    granted = [one.flow.messagePermits for one in broker.commands if one.type == Type.FLOW]
    assert granted == [10, 5]
    assert consumer.statistics().topics[0].permits_outstanding == 3


async def test_a_refused_subscription_is_raised_and_leaves_nothing() -> None:
    # Given
    broker = ModelBroker(refusals=[server_response_error(pb.ConsumerBusy, "taken")])
    # Then
    with pytest.raises(ConsumerBusy):
        await opened(broker)
    assert broker.cnx is not None
    assert not broker.cnx.attached.consumers
    assert broker.memory.current_usage == 0
    assert not broker.context.parts


async def test_a_subscription_that_is_cancelled_is_given_up_at_the_broker_too() -> None:
    # Given
    broker = ModelBroker(hold=asyncio.Event())
    opening = await started(opened(broker))
    # When
    opening.cancel()
    await settle()
    # Then
    assert kinds(broker) == [Type.SUBSCRIBE, Type.CLOSE_CONSUMER]
    assert broker.cnx is not None
    assert not broker.cnx.attached.consumers


async def test_partitions_are_merged_in_turn_and_those_that_come_are_found() -> None:
    # Given
    broker = ModelBroker(partition_count=2)
    consumer = await opened(broker, auto_update_partitions_seconds=60)
    # When
    broker.partition_count = 3
    await after(broker, 60)
    # Then
    topics = [one.topic for one in consumer.statistics().topics]
    assert topics == [f"{TOPIC}-partition-{index}" for index in range(3)]


# -- receiving ------------------------------------------------------------------------------------


async def test_a_message_that_is_there_is_received_without_a_pause() -> None:
    # Given
    broker = ModelBroker()
    broker.publish(3)
    consumer = await opened(broker)
    await settle()
    # When
    receiving = consumer.receive()
    with pytest.raises(StopIteration) as returned:
        receiving.send(None)
    # Then
    assert returned.value.value.data() == b"0"
    second, third = consumer.receive_nowait(), consumer.receive_nowait()
    assert second is not None
    assert third is not None
    assert (second.data(), third.data()) == (b"1", b"2")
    assert consumer.receive_nowait() is None


async def test_a_cancelled_receive_leaves_its_message_to_the_next() -> None:
    # Given
    broker = ModelBroker()
    consumer = await opened(broker)
    first, second = await started(consumer.receive()), await started(consumer.receive())
    # When the first is woken, and cancelled before it can run
    broker.publish()
    first.cancel()
    # Then
    assert (await second).data() == b"0"
    assert consumer.statistics().waiting == 0


async def test_receive_is_over_when_its_time_is() -> None:
    # Given
    broker = ModelBroker()
    consumer = await opened(broker)
    receiving = await started(consumer.receive(50))
    # When
    broker.clock.advance(0.05)
    # Then
    with pytest.raises(Timeout, match="no message came in 50 ms"):
        await receiving


async def test_without_a_queue_one_message_is_asked_for_however_often_a_receive_is_cancelled() -> (
    None
):
    # Given
    broker = ModelBroker()
    consumer = await opened(broker, receiver_queue_size=0)
    for _ in range(3):
        (await started(consumer.receive())).cancel()
        await settle()
    # When
    broker.publish()
    broker.publish()
    # Then
    assert consumer.statistics().messages_queued == 1
    assert await numbers(consumer, 2) == [b"0", b"1"]


async def test_async_for_ends_with_the_consumer() -> None:
    # Given
    broker = ModelBroker()
    broker.publish(2)
    consumer = await opened(broker)
    await settle()

    async def all_of_them() -> list[bytes]:
        return [message.data() async for message in consumer]

    reading = await started(all_of_them())
    # When
    await consumer.close()
    # Then
    assert await reading == [b"0", b"1"]


async def test_a_terminated_topic_ends_the_wait() -> None:
    # Given
    broker = ModelBroker()
    consumer = await opened(broker)
    receiving = await started(consumer.receive())
    # When
    assert broker.cnx is not None
    (attached,) = broker.cnx.attached.consumers.values()
    attached.end_of_topic_reached()
    # Then
    with pytest.raises(TopicTerminated):
        await receiving
    assert consumer.has_reached_end_of_topic()


@pytest.mark.parametrize(
    ("policy", "published", "expected"),
    [
        (ConsumerBatchReceivePolicy(3, -1, -1), 5, 3),
        (ConsumerBatchReceivePolicy(-1, 2, 100), 5, 2),
        (ConsumerBatchReceivePolicy(100, -1, 100), 10, 10),
    ],
)
async def test_batch_receive_has_enough_as_its_policy_says(
    policy: ConsumerBatchReceivePolicy, published: int, expected: int
) -> None:
    # Given
    broker = ModelBroker()
    for _ in range(published):
        broker.publish()
    consumer = await opened(broker, batch_receive_policy=policy)
    await settle()
    # Then
    assert len(await consumer.batch_receive()) == expected


async def test_batch_receive_returns_what_came_when_its_time_is_up() -> None:
    # Given
    broker = ModelBroker()
    consumer = await opened(broker)
    receiving = await started(consumer.batch_receive())
    broker.publish(2)
    # When
    broker.clock.advance(0.1)
    # Then
    assert [message.data() for message in await receiving] == [b"0", b"1"]
    assert consumer.statistics().waiting == 0


async def test_a_listener_gets_every_message_and_may_be_paused() -> None:
    # Given
    broker = ModelBroker()
    got: list[bytes] = []

    async def listener(_: Consumer, message: Any) -> None:
        got.append(message.data())
        if message.data() == b"0":
            raise ValueError("only once")

    consumer = await opened(broker, message_listener=listener)
    # When
    broker.publish(2)
    await settle()
    consumer.pause_message_listener()
    broker.publish()
    await settle()
    paused = list(got)
    consumer.resume_message_listener()
    await settle()
    # Then
    assert (paused, got) == ([b"0", b"1"], [b"0", b"1", b"2"])
    with pytest.raises(InvalidConfiguration):
        await consumer.receive()
    await consumer.close()


# -- acknowledging --------------------------------------------------------------------------------


async def test_acknowledgements_are_gathered_for_a_tenth_of_a_second() -> None:
    # Given
    broker = ModelBroker()
    for _ in range(3):
        broker.publish()
    consumer = await opened(broker)
    await settle()
    messages = [await consumer.receive() for _ in range(3)]
    # When
    await consumer.acknowledge(messages[:2])
    await consumer.acknowledge(messages[2].message_id())
    before = len(broker.acks)
    await after(broker, 0.1)
    # Then
    assert before == 0
    assert [len(ack.message_id) for ack in broker.acks] == [3]
    assert broker.left == []


async def test_a_batch_is_acknowledged_when_all_of_it_is() -> None:
    # Given
    broker = ModelBroker()
    broker.publish(3)
    consumer = await opened(broker, ack_group_time_ms=0)
    await settle()
    messages = [await consumer.receive() for _ in range(3)]
    # When
    await consumer.acknowledge(messages[:2])
    await settle()
    before = len(broker.acks)
    await consumer.acknowledge(messages[2])
    await settle()
    # Then
    assert before == 0
    assert broker.left == []


async def test_single_messages_of_a_batch_are_acknowledged_if_that_is_asked_for() -> None:
    # Given
    broker = ModelBroker()
    broker.publish(70)
    consumer = await opened(broker, batch_index_ack_enabled=True, receiver_queue_size=100)
    await settle()
    messages = [await consumer.receive() for _ in range(70)]
    # When
    await consumer.acknowledge(messages[:65])
    await after(broker, 0.1)
    # Then
    assert list(broker.acks[0].message_id[0].ack_set) == [0, 62]


async def test_cumulative_goes_to_the_entry_before_an_incomplete_batch() -> None:
    # Given
    broker = ModelBroker()
    broker.publish()
    broker.publish(3)
    consumer = await opened(broker)
    await settle()
    messages = [await consumer.receive() for _ in range(4)]
    # When
    await consumer.acknowledge_cumulative(messages[2])
    await after(broker, 0.1)
    first = broker.left
    await consumer.acknowledge_cumulative(messages[3])
    await after(broker, 0.1)
    # Then
    assert (first, broker.left) == ([1], [])


async def test_cumulative_is_refused_where_others_share() -> None:
    broker = ModelBroker()
    broker.publish()
    consumer = await opened(broker, consumer_type=SHARED)
    await settle()
    with pytest.raises(CumulativeAcknowledgementNotAllowedError):
        await consumer.acknowledge_cumulative(await consumer.receive())


async def test_a_receipt_is_waited_for_if_that_is_asked_for() -> None:
    # Given
    broker = ModelBroker()
    broker.publish()
    consumer = await opened(broker, ack_receipt_enabled=True)
    await settle()
    message = await consumer.receive()
    # When
    acknowledging = await started(consumer.acknowledge(message))
    waited = not acknowledging.done()
    broker.clock.advance(0.1)
    await acknowledging
    # Then
    assert waited
    assert broker.left == []


async def test_a_receipt_that_a_lost_connection_keeps_is_an_error() -> None:
    # Given
    broker = ModelBroker(hold=None)
    broker.publish()
    consumer = await opened(broker, ack_receipt_enabled=True, ack_group_time_ms=0)
    await settle()
    message = await consumer.receive()
    broker.hold = asyncio.Event()
    acknowledging = await started(consumer.acknowledge(message))
    # When
    broker.breaks()
    broker.hold.set()
    # Then
    with pytest.raises(NotConnected):
        await acknowledging


async def test_an_id_that_does_not_say_enough_is_refused() -> None:
    broker = ModelBroker()
    consumer = await opened(broker)
    with pytest.raises(InvalidMessage, match="of how many messages"):
        await consumer.acknowledge(MessageId(-1, LEDGER, 0, 1))
    with pytest.raises(InvalidMessage, match="no such topic"):
        await consumer.acknowledge(MessageId(-1, LEDGER, 0, topic_name="persistent://a/b/other"))


# -- redelivery -----------------------------------------------------------------------------------


async def test_a_refused_message_comes_again_after_its_delay() -> None:
    # Given
    broker = ModelBroker()
    broker.publish()
    consumer = await opened(broker, consumer_type=SHARED, negative_ack_redelivery_delay_ms=1_000)
    await settle()
    await consumer.negative_acknowledge(await consumer.receive())
    # When
    await after(broker, 0.9)
    early = consumer.receive_nowait()
    await after(broker, 0.3)
    # Then
    message = consumer.receive_nowait()
    assert early is None
    assert message is not None
    assert (message.data(), message.redelivery_count()) == (b"0", 1)


async def test_the_delay_grows_with_each_redelivery() -> None:
    # Given
    broker = ModelBroker()
    broker.publish()
    consumer = await opened(
        broker,
        consumer_type=SHARED,
        negative_ack_backoff=NegativeAckBackoff(1_000, 3_000),
    )
    await settle()
    waits = []
    # When
    for _ in range(3):
        message = consumer.receive_nowait()
        assert message is not None
        await consumer.negative_acknowledge(message)
        waits.append(0.0)
        while not consumer.statistics().messages_queued:
            await after(broker, 0.1)
            waits[-1] += 0.1
    # Then
    assert [round(wait) for wait in waits] == [1, 2, 3]


async def test_an_acknowledged_message_is_not_sent_again_for_its_refusal() -> None:
    # Given
    broker = ModelBroker()
    broker.publish()
    consumer = await opened(broker, consumer_type=SHARED)
    await settle()
    message = await consumer.receive()
    # When
    await consumer.negative_acknowledge(message)
    await consumer.acknowledge(message)
    await after(broker, 100)
    # Then
    assert REDELIVER not in kinds(broker)


async def test_what_is_not_acknowledged_in_time_comes_again() -> None:
    # Given
    broker = ModelBroker()
    for _ in range(2):
        broker.publish()
    consumer = await opened(broker, consumer_type=SHARED, unacked_messages_timeout_ms=10_000)
    await settle()
    first, second = await consumer.receive(), await consumer.receive()
    await consumer.acknowledge(first)
    # When
    await after(broker, 11)
    # Then
    again = consumer.receive_nowait()
    assert again is not None
    assert again.message_id() == second.message_id()
    assert consumer.receive_nowait() is None


async def test_exclusive_asks_for_everything_again_in_a_new_epoch() -> None:
    # Given
    broker = ModelBroker()
    for _ in range(3):
        broker.publish()
    consumer = await opened(broker)
    await settle()
    await numbers(consumer, 2)
    # When
    consumer.redeliver_unacknowledged_messages()
    await settle()
    # Then
    assert broker.epoch == 1
    assert await numbers(consumer, 3) == [b"0", b"1", b"2"]
    assert consumer.receive_nowait() is None


async def test_a_batch_that_comes_again_leaves_out_what_was_acknowledged() -> None:
    # Given
    broker = ModelBroker(by_index=False)
    broker.publish(3)
    consumer = await opened(broker, consumer_type=SHARED, negative_ack_redelivery_delay_ms=1_000)
    await settle()
    first, second = await consumer.receive(), await consumer.receive()
    # When
    await consumer.acknowledge(first)
    await consumer.negative_acknowledge(second)
    await after(broker, 1.2)
    # Then
    assert await numbers(consumer, 2) == [b"1", b"2"]
    assert consumer.receive_nowait() is None


# -- what is lost ---------------------------------------------------------------------------------


async def test_a_lost_connection_brings_everything_again_that_was_not_acknowledged() -> None:
    # Given
    broker = ModelBroker()
    for _ in range(4):
        broker.publish()
    consumer = await opened(broker)
    await settle()
    await consumer.acknowledge(await consumer.receive())
    await consumer.receive()
    # When
    broker.breaks()
    lost = (
        consumer.is_connected(),
        consumer.statistics().messages_queued,
        broker.memory.current_usage,
    )
    await after(broker, 1)
    # Then
    assert lost == (False, 0, 0)
    assert consumer.is_connected()
    # The acknowledgement that waited came before the permits.
    assert await numbers(consumer, 3) == [b"1", b"2", b"3"]
    assert consumer.statistics().topics[0].reconnections == 1
    assert broker.most_permits <= 10


async def test_an_error_that_stays_fails_the_consumer_and_who_waits() -> None:
    # Given
    broker = ModelBroker()
    consumer = await opened(broker)
    receiving = await started(consumer.receive())
    broker.refusals = [server_response_error(pb.AuthorizationError, "no more")]
    # When
    broker.breaks()
    await after(broker, 1)
    # Then
    with pytest.raises(Exception, match="no more"):
        await receiving
    with pytest.raises(Exception, match="no more"):
        await consumer.acknowledge(MessageId(-1, LEDGER, 0))
    await consumer.close()


async def test_a_busy_subscription_is_tried_again() -> None:
    # Given
    broker = ModelBroker()
    consumer = await opened(broker)
    broker.refusals = [server_response_error(pb.ConsumerBusy, "the old connection is not gone")]
    # When
    broker.breaks()
    for _ in range(3):
        await after(broker, 1)
    # Then
    assert consumer.is_connected()


async def test_a_broken_entry_is_acknowledged_with_the_reason_and_its_permit_comes_free() -> None:
    # Given
    broker = ModelBroker()
    broker.publish()
    broker.entries[0].tail = broker.entries[0].tail[:-1] + b"?"
    broker.publish()
    # When
    consumer = await opened(broker)
    await settle()
    # Then
    assert await numbers(consumer, 1) == [b"1"]
    assert broker.acks[0].validation_error == pb.CommandAck.ChecksumMismatch
    assert broker.left == [1]
    assert consumer.statistics().topics[0].broken_entries == 1


# -- seeking --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("inclusive", "expected"), [(False, b"4"), (True, b"3")])
async def test_seek_goes_on_behind_a_message_or_with_it(inclusive: bool, expected: bytes) -> None:
    # Given
    broker = ModelBroker()
    for _ in range(3):
        broker.publish(3)
    consumer = await opened(broker, start_message_id_inclusive=inclusive)
    await settle()
    messages = [await consumer.receive() for _ in range(4)]
    # When
    seeking = await started(consumer.seek(messages[3].message_id()))
    waits = not seeking.done()
    await after(broker, 0.1)
    await seeking
    # Then
    assert waits
    assert (await consumer.receive(1)).data() == expected


async def test_seek_drops_what_is_queued_and_forgets_acknowledgements() -> None:
    # Given
    broker = ModelBroker()
    for _ in range(3):
        broker.publish()
    consumer = await opened(broker)
    await settle()
    await consumer.acknowledge(await consumer.receive())
    # When
    seeking = await started(consumer.seek(MessageId.earliest))
    await after(broker, 0.1)
    await seeking
    # Then
    assert await numbers(consumer, 3) == [b"0", b"1", b"2"]
    assert broker.left == [0, 1, 2]


async def test_a_refused_seek_loses_nothing() -> None:
    # Given
    broker = ModelBroker()
    for _ in range(3):
        broker.publish()
    consumer = await opened(broker)
    await settle()
    broker.refusals = [server_response_error(pb.MetadataError, "no")]
    # When
    with pytest.raises(Exception, match="no"):
        await consumer.seek(MessageId.latest)
    await settle()
    # Then
    assert await numbers(consumer, 3) == [b"0", b"1", b"2"]


# -- the end --------------------------------------------------------------------------------------


async def test_closing_sends_acknowledgements_and_gives_everything_back() -> None:
    # Given
    broker = ModelBroker()
    for _ in range(3):
        broker.publish()
    consumer = await opened(broker)
    await settle()
    await consumer.acknowledge(await consumer.receive())
    counted = broker.memory.current_usage
    # When
    await consumer.close()
    await consumer.close()
    # Then
    assert counted > 0
    assert broker.memory.current_usage == 0
    assert kinds(broker)[-2:] == [Type.ACK, Type.CLOSE_CONSUMER]
    with pytest.raises(AlreadyClosed):
        await consumer.receive()
    assert broker.cnx is not None
    assert not broker.cnx.attached.consumers


async def test_a_cancelled_close_leaves_nothing_behind_either() -> None:
    # Given
    broker = ModelBroker()
    broker.publish()
    consumer = await opened(broker)
    await settle()
    broker.hold = asyncio.Event()
    # When
    closing = await started(consumer.close())
    closing.cancel()
    await settle()
    # Then
    assert broker.memory.current_usage == 0
    assert broker.cnx is not None
    assert not broker.cnx.attached.consumers
    assert kinds(broker)[-1] == Type.CLOSE_CONSUMER


async def test_a_close_that_is_cancelled_before_the_broker_was_told_tells_it() -> None:
    # Given an acknowledgement whose receipt does not come
    broker = ModelBroker()
    broker.publish()
    consumer = await opened(broker, ack_receipt_enabled=True)
    await settle()
    message = await consumer.receive()
    broker.hold = asyncio.Event()
    acknowledging = await started(consumer.acknowledge(message))
    # When
    closing = await started(consumer.close())
    closing.cancel()
    await settle()
    # Then
    assert closing.cancelled()
    assert kinds(broker)[-1] == Type.CLOSE_CONSUMER
    with pytest.raises(AlreadyClosed):
        await acknowledging


async def test_unsubscribe_deletes_and_closes() -> None:
    broker = ModelBroker()
    consumer = await opened(broker)
    await consumer.unsubscribe(force=True)
    assert Type.UNSUBSCRIBE in kinds(broker)
    with pytest.raises(AlreadyClosed):
        await consumer.receive()


# -- questions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, SHARED])
async def test_more_is_pending_as_the_broker_says(kind: ConsumerType) -> None:
    # Given
    broker = ModelBroker(delivers=False)
    consumer = await opened(broker, consumer_type=kind)
    await settle()
    (topic,) = consumer._topics.topics.values()
    # When
    before = await topic.more_is_pending()
    broker.publish()
    broker.permits = 0
    # Then
    assert (before, await topic.more_is_pending()) == (False, True)


async def test_broker_stats_are_as_old_as_the_options_allow() -> None:
    # Given
    broker = ModelBroker()
    consumer = await opened(broker, broker_consumer_stats_cache_time_ms=1_000)
    # When
    for _ in range(2):
        (stats,) = (await consumer.get_broker_consumer_stats()).values()
    broker.clock.advance(1)
    await consumer.get_broker_consumer_stats()
    # Then
    assert stats.unacked_messages == 3
    assert kinds(broker).count(Type.CONSUMER_STATS) == 2


async def test_memory_may_count_until_a_message_is_acknowledged() -> None:
    # Given
    broker = ModelBroker()
    for _ in range(3):
        broker.publish()
    consumer = await opened(
        broker,
        consumer_type=SHARED,
        memory_until_acknowledged=True,
        negative_ack_redelivery_delay_ms=100,
    )
    await settle()
    queued = broker.memory.current_usage
    messages = [await consumer.receive() for _ in range(3)]
    taken = broker.memory.current_usage
    # When
    await consumer.acknowledge(messages[0])
    acknowledged = broker.memory.current_usage
    await consumer.negative_acknowledge(messages[1])
    broker.delivers = False
    await after(broker, 1)
    refused = broker.memory.current_usage
    # Then
    assert (queued, taken, acknowledged, refused) == (3, 3, 2, 1)
    await consumer.close()
    assert broker.memory.current_usage == 0
