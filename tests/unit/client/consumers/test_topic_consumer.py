"""A topic is subscribed to, lost, subscribed to again, sought and left."""

import asyncio
from typing import Literal

import pytest

import proto.PulsarApi_pb2 as pb
from client.consumers.acknowledging.acknowledgements import Acknowledgements
from client.consumers.options import ConsumerKeySharedPolicy
from client.exceptions import (
    AlreadyClosed,
    ConsumerBusy,
    NotConnected,
    PulsarException,
    ServerResponseError,
    Timeout,
    server_response_error,
)
from client.interceptors import ConsumerInterceptor
from client.messages.enums import ConsumerType, InitialPosition, KeySharedMode
from client.messages.message_id import MessageId
from tests.support.clocks.settle import settle, started
from tests.support.peers.frames import with_checksum
from tests.support.peers.model_broker import TOPIC, ModelBroker, Stored
from tests.support.peers.model_consumers import after, kinds, numbers, opened

Type = pb.BaseCommand


async def test_subscribe_carries_every_option_of_the_consumer(broker: ModelBroker) -> None:
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


async def test_permits_are_granted_on_subscribe_and_when_half_of_the_queue_is_free() -> None:
    broker = ModelBroker().publish(entries=12)
    consumer = await opened(broker)
    await numbers(consumer, 5)
    await settle()
    granted = [one.flow.messagePermits for one in broker.commands if one.type == Type.FLOW]
    assert granted == [10, 5]
    assert consumer.statistics().topics[0].permits_outstanding == 3


async def test_a_refused_subscription_raises_and_releases_everything() -> None:
    broker = ModelBroker(refusals=[server_response_error(pb.ConsumerBusy, "taken")])
    with pytest.raises(ConsumerBusy):
        await opened(broker)
    assert broker.cnx is not None
    assert not broker.cnx.attached.consumers
    assert broker.memory.current_usage == 0
    assert not broker.context.parts


async def test_a_cancelled_subscription_is_closed_at_the_broker() -> None:
    broker = ModelBroker(hold=asyncio.Event())
    opening = await started(opened(broker))
    opening.cancel()
    await settle()
    assert kinds(broker) == [Type.SUBSCRIBE, Type.CLOSE_CONSUMER]
    assert broker.cnx is not None
    assert not broker.cnx.attached.consumers


async def test_a_consumer_that_fails_after_subscribing_is_closed_at_the_broker(monkeypatch) -> None:
    async def fail(_: object) -> None:
        raise TypeError("no number")

    monkeypatch.setattr(Acknowledgements, "sent", fail)
    broker = ModelBroker()
    with pytest.raises(TypeError, match="no number"):
        await opened(broker)
    assert kinds(broker) == [Type.SUBSCRIBE, Type.CLOSE_CONSUMER]


async def test_a_lost_connection_redelivers_every_unacknowledged_message() -> None:
    broker = ModelBroker().publish(entries=4)
    consumer = await opened(broker)
    await consumer.acknowledge(await consumer.receive())
    await consumer.receive()
    broker.breaks()
    lost = (
        consumer.is_connected(),
        consumer.statistics().messages_queued,
        broker.memory.current_usage,
    )
    await after(broker, 1)
    assert lost == (False, 0, 0)
    assert consumer.is_connected()
    # The waiting acknowledgement arrived before the permits.
    assert await numbers(consumer, 3) == [b"1", b"2", b"3"]
    assert consumer.statistics().topics[0].reconnections == 1
    assert broker.most_permits <= 10


@pytest.mark.parametrize("receipts", [False, True])
async def test_pending_acknowledgements_survive_an_unload(receipts: bool) -> None:
    broker = ModelBroker().publish(entries=3)
    consumer = await opened(broker, ack_receipt_enabled=receipts)
    acknowledging = [
        await started(consumer.acknowledge(await consumer.receive())) for _ in range(2)
    ]
    broker.close_consumer()
    await after(broker, 0.1)
    await asyncio.gather(*acknowledging)
    assert kinds(broker)[-3:] == [Type.SUBSCRIBE, Type.ACK, Type.FLOW]
    assert await numbers(consumer, 1) == [b"2"]


async def test_pending_batch_index_acknowledgements_survive_an_unload() -> None:
    broker = ModelBroker().publish(2)
    consumer = await opened(broker, batch_index_ack_enabled=True)
    await consumer.acknowledge(await consumer.receive())
    broker.close_consumer()
    await after(broker, 1)
    assert broker.entries[0].left == 0b10
    assert await numbers(consumer, 1) == [b"1"]


async def test_acknowledgements_with_receipts_are_sent_before_permits_after_a_reconnection() -> (
    None
):
    # Given an acknowledgement waiting for a connection
    broker = ModelBroker().publish()
    consumer = await opened(broker, ack_receipt_enabled=True, ack_group_time_ms=0)
    message = await consumer.receive()
    broker.breaks()
    acknowledging = await started(consumer.acknowledge(message))
    await after(broker, 1)
    await acknowledging
    assert kinds(broker)[-3:] == [Type.SUBSCRIBE, Type.ACK, Type.FLOW]
    assert consumer.receive_nowait() is None


class SecondWaits(asyncio.Event):
    """Holds the second answer, the acknowledgement's behind SUBSCRIBE."""

    answers = 0

    async def wait(self) -> Literal[True]:
        self.answers += 1
        return True if self.answers == 1 else await super().wait()


async def test_a_connection_lost_while_awaiting_a_receipt_is_replaced() -> None:
    broker = ModelBroker().publish()
    consumer = await opened(broker, ack_receipt_enabled=True, ack_group_time_ms=0)
    message = await consumer.receive()
    broker.breaks()
    acknowledging = await started(consumer.acknowledge(message))
    hold = broker.hold = SecondWaits()
    await after(broker, 1)
    assert kinds(broker)[-1] == Type.ACK
    broker.breaks()
    hold.set()
    broker.hold = None
    await after(broker, 1)
    assert kinds(broker)[-2:] == [Type.SUBSCRIBE, Type.FLOW]
    with pytest.raises(NotConnected):
        await acknowledging


async def test_a_message_above_the_clients_size_limit_stays_in_the_subscription(
    broker: ModelBroker, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = await opened(broker, consumer_type=ConsumerType.Shared)
    metadata = pb.MessageMetadata(
        producer_name="p", publish_time=1, compression=pb.LZ4, uncompressed_size=1 << 27
    )
    broker.entries.append(Stored(with_checksum(metadata, bytes(100)), 1))
    broker.publish()
    await settle()
    await consumer.acknowledge(await consumer.receive())
    await consumer.close()
    assert broker.left == [0]
    assert "is larger than 67108864: raise memory_limit_bytes to its size" in caplog.text


@pytest.mark.parametrize("refusal", sorted(set(pb.ServerError.values())))
async def test_no_refusal_of_a_resubscription_ends_a_consumer(refusal: int) -> None:
    broker = ModelBroker()
    consumer = await opened(broker)
    receiving = await started(consumer.receive())
    broker.refusals = [server_response_error(refusal, "not now")] * 3  # type: ignore[arg-type]
    broker.breaks()
    for _ in range(4):
        await after(broker, 1)
    assert consumer.is_connected()
    broker.publish()
    await settle()
    assert await receiving
    await consumer.close()


@pytest.mark.parametrize(("inclusive", "expected"), [(False, b"4"), (True, b"3")])
async def test_seek_resumes_behind_a_message_or_inclusively_at_the_message(
    inclusive: bool, expected: bytes
) -> None:
    broker = ModelBroker()
    for _ in range(3):
        broker.publish(3)
    consumer = await opened(broker, start_message_id_inclusive=inclusive)
    messages = [await consumer.receive() for _ in range(4)]
    seeking = await started(consumer.seek(messages[3].message_id()))
    waits = not seeking.done()
    await after(broker, 0.1)
    await seeking
    assert waits
    assert (await consumer.receive(1)).data() == expected


async def test_seek_drops_queued_messages_and_pending_acknowledgements(broker: ModelBroker) -> None:
    broker.publish(entries=3)
    consumer = await opened(broker)
    await consumer.acknowledge(await consumer.receive())
    seeking = await started(consumer.seek(MessageId.earliest))
    await after(broker, 0.1)
    await seeking
    assert await numbers(consumer, 3) == [b"0", b"1", b"2"]
    assert broker.left == [0, 1, 2]


async def test_a_refused_seek_loses_no_message(broker: ModelBroker) -> None:
    broker.publish(entries=3)
    consumer = await opened(broker)
    broker.refusals = [server_response_error(pb.MetadataError, "no")]
    with pytest.raises(Exception, match="no"):
        await consumer.seek(MessageId.latest)
    await settle()
    assert await numbers(consumer, 3) == [b"0", b"1", b"2"]


async def test_closing_sends_pending_acknowledgements_and_releases_memory() -> None:
    broker = ModelBroker().publish(entries=3)
    consumer = await opened(broker)
    await consumer.acknowledge(await consumer.receive())
    counted = broker.memory.current_usage
    await consumer.close()
    await consumer.close()
    assert counted > 0
    assert broker.memory.current_usage == 0
    assert kinds(broker)[-2:] == [Type.ACK, Type.CLOSE_CONSUMER]
    with pytest.raises(AlreadyClosed):
        await consumer.receive()
    assert broker.cnx is not None
    assert not broker.cnx.attached.consumers


async def test_a_cancelled_close_releases_memory_and_closes_at_the_broker(
    broker: ModelBroker,
) -> None:
    broker.publish()
    consumer = await opened(broker)
    broker.hold = asyncio.Event()
    closing = await started(consumer.close())
    closing.cancel()
    await settle()
    assert broker.memory.current_usage == 0
    assert broker.cnx is not None
    assert not broker.cnx.attached.consumers
    assert kinds(broker)[-1] == Type.CLOSE_CONSUMER


async def test_a_close_cancelled_while_awaiting_receipts_still_closes_at_the_broker() -> None:
    # Given an acknowledgement whose receipt is missing
    broker = ModelBroker().publish()
    consumer = await opened(broker, ack_receipt_enabled=True)
    message = await consumer.receive()
    broker.hold = asyncio.Event()
    acknowledging = await started(consumer.acknowledge(message))
    closing = await started(consumer.close())
    closing.cancel()
    await settle()
    assert closing.cancelled()
    assert kinds(broker)[-1] == Type.CLOSE_CONSUMER
    with pytest.raises(AlreadyClosed):
        await acknowledging


@pytest.mark.parametrize("loses", [ModelBroker.close_consumer, ModelBroker.breaks])
async def test_closing_without_a_connection_reconnects_to_send_acknowledgements(
    broker, loses
) -> None:
    broker.publish(entries=2)
    consumer = await opened(broker)
    await consumer.acknowledge(await consumer.receive())
    loses(broker)
    broker.commands.clear()
    closing = await started(consumer.close())
    await after(broker, 1)
    await closing
    # Then the consumer takes no further messages meanwhile
    assert broker.left == [1]
    assert kinds(broker) == [Type.SUBSCRIBE, Type.ACK, Type.CLOSE_CONSUMER]


async def test_closing_is_bounded_by_a_single_operation_timeout() -> None:
    # Given an acknowledgement waiting for a connection that never opens
    broker = ModelBroker().publish()
    consumer = await opened(broker, ack_receipt_enabled=True)
    acknowledging = await started(consumer.acknowledge(await consumer.receive()))
    broker.breaks()
    broker.hold = asyncio.Event()
    closing = await started(consumer.close())
    await after(broker, 29)
    waited = not closing.done()
    await after(broker, 1)
    assert waited
    assert closing.done()
    with pytest.raises(AlreadyClosed):
        await acknowledging


async def test_unsubscribe_deletes_the_subscription_and_closes_the_consumer(
    broker: ModelBroker,
) -> None:
    consumer = await opened(broker)
    await consumer.unsubscribe(force=True)
    assert Type.UNSUBSCRIBE in kinds(broker)
    with pytest.raises(AlreadyClosed):
        await consumer.receive()


async def test_unsubscribe_after_a_timeout_is_retried_by_a_resubscribed_consumer(broker) -> None:
    # Given a broker that unsubscribes, but answers too late
    consumer = await opened(broker)
    broker.hold = asyncio.Event()
    unsubscribing = await started(consumer.unsubscribe())
    broker.subscribed, broker.hold = None, None
    await after(broker, 30)
    with pytest.raises(Timeout):
        await unsubscribing
    again = await started(consumer.unsubscribe())
    await after(broker, 1)
    await again
    assert kinds(broker)[-5:] == [
        Type.CLOSE_CONSUMER,
        Type.SUBSCRIBE,
        Type.FLOW,
        Type.UNSUBSCRIBE,
        Type.CLOSE_CONSUMER,
    ]


async def test_awaiting_receipts_counts_towards_the_timeout_of_unsubscribe(
    broker: ModelBroker,
) -> None:
    broker.publish()
    consumer = await opened(broker, ack_receipt_enabled=True)
    broker.hold = asyncio.Event()
    acknowledging = await started(consumer.acknowledge(await consumer.receive()))
    unsubscribing = await started(consumer.unsubscribe())
    await after(broker, 30)
    with pytest.raises(Timeout):
        await unsubscribing
    with pytest.raises(PulsarException):
        await acknowledging


async def test_unsubscribing_and_closing_share_the_operation_timeout(broker, consumer) -> None:
    hold = broker.hold = asyncio.Event()
    unsubscribing = await started(consumer.unsubscribe())
    await after(broker, 20)
    broker.hold = asyncio.Event()
    hold.set()
    await after(broker, 10)
    assert unsubscribing.done()
    await unsubscribing


async def test_interceptors_are_closed_once_by_unsubscribing() -> None:
    closed: list[ConsumerInterceptor] = []

    class Interceptor(ConsumerInterceptor):
        def on_close(self) -> None:
            closed.append(self)

    interceptor = Interceptor()
    consumer = await opened(ModelBroker(), interceptors=[interceptor])
    await consumer.unsubscribe()
    await consumer.close()
    assert closed == [interceptor]


async def test_closing_waits_for_the_receipts_of_pending_acknowledgements() -> None:
    broker = ModelBroker().publish()
    consumer = await opened(broker, ack_receipt_enabled=True, ack_group_time_ms=10_000)
    acknowledging = await started(consumer.acknowledge(await consumer.receive()))
    await consumer.close()
    await acknowledging
    assert broker.left == []
    assert kinds(broker)[-2:] == [Type.ACK, Type.CLOSE_CONSUMER]


async def test_pending_acknowledgements_are_sent_before_unsubscribe_and_none_after(
    broker: ModelBroker,
) -> None:
    broker.publish()
    consumer = await opened(broker, ack_receipt_enabled=True, ack_group_time_ms=10_000)
    acknowledging = await started(consumer.acknowledge(await consumer.receive()))
    await consumer.unsubscribe()
    await acknowledging
    assert kinds(broker)[-3:] == [Type.ACK, Type.UNSUBSCRIBE, Type.CLOSE_CONSUMER]


async def test_a_refused_seek_keeps_earlier_acknowledgements(broker: ModelBroker) -> None:
    broker.publish(entries=2)
    consumer = await opened(broker)
    await consumer.acknowledge(await consumer.receive())
    broker.refusals = [server_response_error(pb.MetadataError, "no")]
    with pytest.raises(ServerResponseError):
        await consumer.seek(MessageId.latest)
    await settle()
    assert await numbers(consumer, 1) == [b"1"]
    assert broker.left == [1]


async def test_acknowledgements_after_a_cancelled_seek_are_sent(broker: ModelBroker) -> None:
    broker.publish(entries=2)
    consumer = await opened(broker)
    broker.hold = asyncio.Event()
    seeking = await started(consumer.seek(MessageId.earliest))
    seeking.cancel()
    broker.hold = None
    await after(broker, 1)
    for message in [await consumer.receive() for _ in range(2)]:
        await consumer.acknowledge(message)
    broker.close_consumer()
    await after(broker, 1)
    assert broker.left == []


async def test_a_seek_and_its_resubscription_share_the_operation_timeout(broker, consumer) -> None:
    hold = broker.hold = asyncio.Event()
    seeking = await started(consumer.seek(MessageId.earliest))
    await after(broker, 20)
    broker.hold = asyncio.Event()
    hold.set()
    await after(broker, 10)
    assert seeking.done()
    with pytest.raises(Timeout, match="not subscribed to again in 30 s"):
        await seeking


async def test_a_seek_that_fails_after_a_resubscription_skips_no_message() -> None:
    # Given a broker that closes the consumer, and leaves the seek unanswered
    broker = ModelBroker().publish(entries=3)
    consumer = await opened(broker, ack_group_time_ms=0)
    (first,) = [await consumer.receive()]
    hold = broker.hold = asyncio.Event()
    seeking = await started(consumer.seek(first.message_id()))
    broker.hold = None
    broker.close_consumer()
    await after(broker, 0.2)
    broker.refusals = [server_response_error(pb.MetadataError, "no")]
    hold.set()
    with pytest.raises(ServerResponseError):
        await seeking
    # Then the sought message is not mistaken for an unwanted message
    await settle()
    assert consumer.statistics().messages_queued == 3
    assert await numbers(consumer, 3) == [b"0", b"1", b"2"]
    assert broker.left == [0, 1, 2]


@pytest.mark.parametrize("name", ["receive", "seek", "unsubscribe", "acknowledge"])
async def test_closing_ends_every_operation_in_flight(broker: ModelBroker, name: str) -> None:
    broker.publish()
    consumer = await opened(broker, ack_receipt_enabled=True, ack_group_time_ms=0)
    message = await consumer.receive()
    hold = broker.hold = asyncio.Event()
    calls = {
        "receive": lambda: consumer.receive(),
        "seek": lambda: consumer.seek(MessageId.earliest),
        "unsubscribe": lambda: consumer.unsubscribe(),
        "acknowledge": lambda: consumer.acknowledge(message),
    }
    call = await started(calls[name]())
    closing = await started(consumer.close())
    consumer.redeliver_unacknowledged_messages()
    hold.set()
    await closing
    assert isinstance((await asyncio.wait([call]))[0].pop().exception(), PulsarException | None)
    assert broker.memory.current_usage == 0
    assert broker.subscribed is None
