"""A consumer's requests and reports to the broker."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from client.consumers.consumer import Consumer
from client.exceptions import AlreadyClosed, ServerResponseError, Timeout, server_response_error
from client.messages.enums import ConsumerType
from client.messages.message_id import MessageId
from tests.support.clocks.settle import settle, started
from tests.support.peers.model_broker import LEDGER, ModelBroker
from tests.support.peers.model_consumers import after, kinds, opened, topic_of

Type = pb.BaseCommand


async def test_broker_stats_are_cached_for_the_configured_time(broker: ModelBroker) -> None:
    consumer = await opened(broker, broker_consumer_stats_cache_time_ms=1_000)
    for _ in range(2):
        (stats,) = (await consumer.get_broker_consumer_stats()).values()
    broker.clock.advance(1)
    await consumer.get_broker_consumer_stats()
    assert stats.unacked_messages == 3
    assert kinds(broker).count(Type.CONSUMER_STATS) == 2


async def test_a_redelivery_of_many_entries_is_split_into_several_commands() -> None:
    broker = ModelBroker(delivers=False).publish()
    link = topic_of(await opened(broker, consumer_type=ConsumerType.Shared)).link
    link.redeliver([(LEDGER, 0)] * 2_500)
    await settle()
    sizes = [
        len(one.redeliverUnacknowledgedMessages.message_ids)
        for one in broker.commands
        if one.type == Type.REDELIVER_UNACKNOWLEDGED_MESSAGES
    ]
    assert sizes == [1_000, 1_000, 500]
    assert link.redelivery_requests == 3


async def test_permits_above_the_maximum_of_a_flow_are_granted_in_several_commands() -> None:
    broker = ModelBroker(delivers=False)
    link = topic_of(await opened(broker)).link
    link.grant(2**32)
    await settle()
    flows = [one.flow.messagePermits for one in broker.commands if one.type == Type.FLOW]
    assert flows == [10, 2**31 - 1, 2**31 - 1, 2]


async def test_flow_and_ack_commands_without_a_connection_are_dropped(broker: ModelBroker) -> None:
    link = topic_of(await opened(broker)).link
    broker.breaks()
    told = len(broker.commands)
    link.grant(5)
    link.acknowledge(pb.CommandAck(consumer_id=0, ack_type=pb.CommandAck.Individual))
    assert len(broker.commands) == told


async def test_a_request_without_a_connection_waits_for_the_next_connection(broker) -> None:
    consumer = await opened(broker)
    broker.publish()
    broker.breaks()
    asking = await started(consumer.get_last_message_id())
    assert not asking.done()
    await after(broker, 1)
    assert (await asking).entry_id() == 0


async def test_a_request_is_retried_after_a_lost_connection(broker, consumer) -> None:
    broker.publish()
    broker.hold = asyncio.Event()
    asking = await started(consumer.get_last_message_id())
    broker.breaks()
    broker.hold.set()
    await after(broker, 1)
    await after(broker, 1)
    assert (await asking).entry_id() == 0


@pytest.mark.parametrize("asks", [lambda one: one.seek(MessageId.earliest), Consumer.unsubscribe])
async def test_a_request_is_retried_after_the_broker_closed_the_consumer(broker, asks) -> None:
    consumer = await opened(broker)
    hold = broker.hold = asyncio.Event()
    asking = await started(asks(consumer))
    # When the broker answers that the consumer is unknown
    broker.close_consumer()
    hold.set()
    broker.hold = None
    for _ in range(3):
        await after(broker, 1)
    assert asking.done()
    await asking


async def test_a_request_times_out_after_the_operation_timeout(broker: ModelBroker) -> None:
    link = topic_of(await opened(broker)).link
    broker.refusals = [server_response_error(pb.AuthorizationError, "no")] * 100
    broker.breaks()
    asking = await started(link.last_message_id())
    await after(broker, 30)
    with pytest.raises(Timeout, match="did not answer in 30 s"):
        await asking


@pytest.mark.parametrize("code", [pb.TooManyRequests, pb.AuthorizationError])
async def test_last_message_id_is_requested_again_after_any_refusal(broker, consumer, code) -> None:
    broker.publish()
    broker.refusals = [server_response_error(code, "not now")] * 2
    asking = await started(consumer.get_last_message_id())
    await after(broker, 1)
    await after(broker, 1)
    assert (await asking).entry_id() == 0


@pytest.mark.parametrize(
    ("asks", "kind"),
    [
        (Consumer.get_last_message_ids, Type.GET_LAST_MESSAGE_ID),
        (Consumer.get_broker_consumer_stats, Type.CONSUMER_STATS),
    ],
)
async def test_partitions_are_queried_concurrently(asks, kind) -> None:
    broker = ModelBroker(partition_count=2)
    consumer = await opened(broker)
    broker.hold = asyncio.Event()
    asking = await started(asks(consumer))
    assert kinds(broker).count(kind) == 2
    broker.hold.set()
    await asking


async def test_last_message_id_of_a_non_persistent_topic_is_not_retried(broker) -> None:
    link = topic_of(await opened(broker)).link
    link.persistent = False
    broker.refusals = [server_response_error(pb.MetadataError, "it has no end")]
    with pytest.raises(ServerResponseError, match="it has no end"):
        await link.last_message_id()


async def test_a_closed_consumer_sends_no_request() -> None:
    link = topic_of(await opened(ModelBroker())).link
    link.ended = AlreadyClosed("closed")
    with pytest.raises(AlreadyClosed):
        await link.stats()
