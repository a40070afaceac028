"""Topics are added and removed, and their messages are merged fairly."""

import asyncio
import gc

import pytest

import proto.PulsarApi_pb2 as pb
from client.consumers.consumer import Consumer, topics_consumer
from client.consumers.options import ConsumerOptions
from client.consumers.topic_consumer import TopicConsumer
from client.exceptions import (
    AlreadyClosed,
    ConnectError,
    ConsumerBusy,
    ServerResponseError,
    Timeout,
    TopicTerminated,
    server_response_error,
)
from client.patience import all_of
from limiter.clock import clock_sleep
from tests.support.clocks.settle import settle, started
from tests.support.peers.model_broker import TOPIC, ModelBroker
from tests.support.peers.model_consumers import after, kinds, opened


async def test_a_removed_topic_is_closed_and_its_messages_are_dropped() -> None:
    broker = ModelBroker().publish(2)
    consumer = await opened(broker)
    topics = consumer._topics
    await topics.add_topic(TOPIC)
    await settle()
    queued = consumer.statistics().messages_queued
    await topics.remove_topic(TOPIC)
    await topics.remove_topic(TOPIC)
    assert queued == 2
    assert consumer.receive_nowait() is None
    assert broker.memory.current_usage == 0
    assert topics.topics == {}
    await topics.add_topic(TOPIC)
    await settle()
    assert consumer.statistics().messages_queued == 2


async def test_a_topic_added_while_the_consumer_closes_is_not_kept() -> None:
    broker = ModelBroker(hold=asyncio.Event())
    topics = topics_consumer(broker.context, "s", ConsumerOptions())
    adding = await started(topics.add_topic(TOPIC))
    await topics.close()
    broker.hold.set()  # type: ignore[union-attr]
    with pytest.raises(AlreadyClosed):
        await adding
    assert broker.subscribed is None
    with pytest.raises(AlreadyClosed):
        await topics.add_topic("persistent://public/default/other")


async def test_removing_a_disconnected_topic_does_not_wait_for_a_connection_to_acknowledge() -> (
    None
):
    broker = ModelBroker().publish()
    consumer = await opened(broker)
    topics = consumer._topics
    await consumer.acknowledge(await consumer.receive())
    broker.close_consumer()
    # When, as by a pattern whose topic was deleted
    leaving = await started(topics.remove_topic(TOPIC))
    assert leaving.done()


async def test_unsubscribe_is_retried_only_for_the_topics_that_refused() -> None:
    broker = ModelBroker(partition_count=2)
    consumer = await opened(broker)
    subscribed = broker.subscribed
    broker.refusals = [server_response_error(pb.MetadataError, "no")]
    with pytest.raises(ServerResponseError):
        await consumer.unsubscribe()
    broker.subscribed = subscribed
    await consumer.unsubscribe()
    assert kinds(broker).count(pb.BaseCommand.UNSUBSCRIBE) == 3
    with pytest.raises(AlreadyClosed):
        await consumer.receive()


async def test_a_cancelled_unsubscribe_fails_every_waiting_receive() -> None:
    broker = ModelBroker(partition_count=2)
    consumer = await opened(broker)
    receiving = await started(consumer.receive())
    broker.hold = asyncio.Event()
    unsubscribing = await started(consumer.unsubscribe())
    unsubscribing.cancel()
    broker.hold.set()
    await settle()
    with pytest.raises(asyncio.CancelledError):
        await unsubscribing
    assert receiving.done()
    with pytest.raises(AlreadyClosed):
        await receiving
    await consumer.close()


async def test_a_failed_opening_closes_its_partitions_within_the_operation_timeout() -> None:
    # Given two partitions, of which one is refused late, and a broker that answers no leaving
    busy = server_response_error(pb.ConsumerBusy, "busy")
    hold = asyncio.Event()
    broker = ModelBroker(partition_count=2, hold=hold, refusals=[None, busy])
    opening = await started(opened(broker))
    await after(broker, 20)
    broker.hold = asyncio.Event()
    hold.set()
    await after(broker, 10)
    assert opening.done()
    with pytest.raises(ConsumerBusy):
        await opening
    assert broker.subscribed is None
    assert broker.memory.current_usage == 0


async def test_partition_lookup_and_subscription_share_the_operation_timeout() -> None:
    # Given partitions reported late
    class Slow(ModelBroker):
        async def partitions(self, _: str, *, auto_create: bool = True) -> int:
            await clock_sleep(self.clock, 20)
            return 1

    broker = Slow(hold=asyncio.Event())
    opening = await started(opened(broker))
    await after(broker, 20)
    await after(broker, 10)
    assert kinds(broker)[0] == pb.BaseCommand.SUBSCRIBE
    assert opening.done()
    with pytest.raises(Timeout, match="in 30 s"):
        await opening


async def test_messages_of_partitions_are_received_in_round_robin_order() -> None:
    # Given two partitions, each with the messages of the model's one subscription
    broker = ModelBroker(partition_count=2, delivers=False)
    consumer = await opened(broker)
    broker.publish(entries=6)
    assert broker.cnx is not None
    for number in range(6):
        assert broker.subscribed is not None
        broker.subscribed.consumer_id = 0 if number < 4 else 1
        broker.send_entry(number)
    got = [consumer.receive_nowait() for _ in range(6)]
    payloads = [message.data() for message in got if message is not None]
    assert payloads == [b"0", b"4", b"1", b"5", b"2", b"3"]
    assert {message.topic_name()[-1] for message in got if message is not None} == {"0", "1"}


async def test_all_of_waits_for_every_part_before_raising_an_error() -> None:
    ended: list[str] = []

    async def fails() -> None:
        raise ConnectError("no")

    async def takes_longer() -> None:
        await settle()
        ended.append("longer")

    with pytest.raises(ConnectError):
        await all_of([fails(), takes_longer()])
    assert ended == ["longer"]


async def test_a_partition_update_adds_new_partitions_and_creates_no_topic() -> None:
    broker = ModelBroker(partition_count=2)
    consumer = await opened(broker, auto_update_partitions_seconds=60)
    broker.partition_count = 3
    await after(broker, 60)
    topics = [one.topic for one in consumer.statistics().topics]
    assert topics == [f"{TOPIC}-partition-{index}" for index in range(3)]
    assert broker.may_create == [True, False], "who looks makes no topic that was deleted"


async def test_a_partition_update_is_retried_after_any_error(monkeypatch) -> None:
    broker = ModelBroker(partition_count=1)
    consumer = await opened(broker, auto_update_partitions_seconds=60)
    broker.partition_count = 2
    with monkeypatch.context() as patch:
        patch.setattr(TopicConsumer, "open", fails_strangely)
        await after(broker, 60)
        failed = len(consumer.statistics().topics)
    await after(broker, 60)
    assert (failed, len(consumer.statistics().topics)) == (1, 2)
    await consumer.close()
    assert broker.memory.statistics().reservations == 0


async def fails_strangely(_: TopicConsumer, __: float) -> None:
    raise RuntimeError("this was not foreseen")


async def test_a_topic_removed_and_added_again_during_a_partition_update_is_consumed_once() -> None:
    # Given a third partition being opened
    broker = ModelBroker(partition_count=2)
    topics = (await opened(broker, auto_update_partitions_seconds=60))._topics
    broker.partition_count, broker.hold = 3, asyncio.Event()
    await after(broker, 60)
    hold, broker.hold = broker.hold, None
    await topics.remove_topic(TOPIC)
    await topics.add_topic(TOPIC)
    hold.set()
    await settle()
    assert broker.cnx is not None
    assert len(topics.topics) == len(broker.cnx.attached.consumers) == 3
    await topics.close()
    assert not broker.cnx.attached.consumers
    assert broker.memory.statistics().reservations == 0


async def test_a_receive_waits_for_a_topic_added_after_the_end_of_every_other_topic(broker) -> None:
    consumer = await opened(broker)
    topics = consumer._topics
    topics.topics[TOPIC].end_of_topic_reached()
    with pytest.raises(TopicTerminated):
        await consumer.receive()
    await topics.add_topic(f"{TOPIC}-2")
    receiving = await started(consumer.receive())
    assert not receiving.done()
    await consumer.close()
    with pytest.raises(AlreadyClosed):
        await receiving


async def test_an_endless_consumer_keeps_waiting_after_the_end_of_every_topic(consumer) -> None:
    topics = consumer._topics
    topics.endless = True
    receiving = await started(consumer.receive())
    topics.topics[TOPIC].end_of_topic_reached()
    await settle()
    assert not receiving.done()
    assert consumer.has_reached_end_of_topic()
    await consumer.close()
    with pytest.raises(AlreadyClosed):
        await receiving


async def test_removing_the_last_topic_with_more_messages_ends_a_waiting_receive(consumer) -> None:
    topics = consumer._topics
    await topics.add_topic(f"{TOPIC}-2")
    receiving = await started(consumer.receive())
    topics.topics[TOPIC].end_of_topic_reached()
    await topics.remove_topic(f"{TOPIC}-2")
    with pytest.raises(TopicTerminated):
        await receiving


async def test_a_receive_fails_when_every_topic_has_ended_or_failed(consumer: Consumer) -> None:
    topics = consumer._topics
    await topics.add_topic(f"{TOPIC}-2")
    receiving = await started(consumer.receive())
    topics.topics[TOPIC].end_of_topic_reached()
    topics.topics[f"{TOPIC}-2"]._given_up(ConnectError("gone"))
    with pytest.raises(ConnectError, match="gone"):
        await receiving


async def test_a_second_close_waits_for_the_first(broker: ModelBroker, consumer: Consumer) -> None:
    broker.hold = asyncio.Event()
    first, second = await started(consumer.close()), await started(consumer.close())
    assert not second.done()
    broker.hold.set()
    await asyncio.gather(first, second)


async def test_all_of_retrieves_the_error_of_every_part(caplog) -> None:
    async def fails(text: str) -> None:
        raise RuntimeError(text)

    with pytest.raises(RuntimeError, match="one"):
        await all_of([fails("one"), fails("two")])
    gc.collect()
    assert not caplog.records
