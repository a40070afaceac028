"""Consumers receive singly, in batches, or by a listener."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from client.consumers.consumer import Consumer
from client.consumers.options import ConsumerBatchReceivePolicy
from client.exceptions import InvalidConfiguration, Timeout, TopicTerminated
from tests.support.clocks.settle import settle, started
from tests.support.peers.model_broker import TOPIC, ModelBroker
from tests.support.peers.model_consumers import numbers, opened, topic_of


async def test_an_arrived_message_is_received_without_suspending(broker: ModelBroker) -> None:
    broker.publish(3)
    consumer = await opened(broker)
    receiving = consumer.receive()
    with pytest.raises(StopIteration) as returned:
        receiving.send(None)
    assert returned.value.value.data() == b"0"
    second, third = consumer.receive_nowait(), consumer.receive_nowait()
    assert second is not None
    assert third is not None
    assert (second.data(), third.data()) == (b"1", b"2")
    assert consumer.receive_nowait() is None


async def test_a_cancelled_receive_leaves_its_message_to_the_next_receive(broker, consumer) -> None:
    first, second = await started(consumer.receive()), await started(consumer.receive())
    # When the first receiver is woken, and cancelled before running
    broker.publish()
    first.cancel()
    assert (await second).data() == b"0"
    assert consumer.statistics().waiting == 0


async def test_receive_raises_timeout_when_no_message_arrives_in_time(broker, consumer) -> None:
    receiving = await started(consumer.receive(50))
    broker.clock.advance(0.05)
    with pytest.raises(Timeout, match="no message came in 50 ms"):
        await receiving


async def test_without_a_queue_cancelled_receives_request_a_single_message(
    broker: ModelBroker,
) -> None:
    consumer = await opened(broker, receiver_queue_size=0)
    for _ in range(3):
        (await started(consumer.receive())).cancel()
        await settle()
    broker.publish(entries=2)
    assert consumer.statistics().messages_queued == 1
    assert await numbers(consumer, 2) == [b"0", b"1"]


async def test_async_for_ends_when_the_consumer_closes(broker: ModelBroker) -> None:
    broker.publish(2)
    consumer = await opened(broker)

    async def all_of_them() -> list[bytes]:
        return [message.data() async for message in consumer]

    reading = await started(all_of_them())
    await consumer.close()
    assert await reading == [b"0", b"1"]


async def test_a_terminated_topic_ends_a_waiting_receive(broker, consumer) -> None:
    receiving = await started(consumer.receive())
    assert broker.cnx is not None
    (attached,) = broker.cnx.attached.consumers.values()
    attached.end_of_topic_reached()
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
async def test_batch_receive_returns_as_soon_as_its_policy_is_satisfied(
    broker: ModelBroker, policy: ConsumerBatchReceivePolicy, published: int, expected: int
) -> None:
    broker.publish(entries=published)
    consumer = await opened(broker, batch_receive_policy=policy)
    assert len(await consumer.batch_receive()) == expected


async def test_batch_receive_returns_the_arrived_messages_at_its_timeout(broker, consumer) -> None:
    receiving = await started(consumer.batch_receive())
    broker.publish(2)
    broker.clock.advance(0.1)
    assert [message.data() for message in await receiving] == [b"0", b"1"]
    assert consumer.statistics().waiting == 0


async def test_a_listener_gets_every_message_and_may_be_paused(broker: ModelBroker) -> None:
    got: list[bytes] = []

    async def listener(_: Consumer, message: Any) -> None:
        got.append(message.data())
        if message.data() == b"0":
            raise ValueError("only once")

    consumer = await opened(broker, message_listener=listener)
    broker.publish(2)
    await settle()
    consumer.pause_message_listener()
    broker.publish()
    await settle()
    paused = list(got)
    consumer.resume_message_listener()
    await settle()
    assert (paused, got) == ([b"0", b"1"], [b"0", b"1", b"2"])
    with pytest.raises(InvalidConfiguration):
        await consumer.receive()
    await consumer.close()


async def test_a_listener_that_never_waits_yields_to_other_tasks(broker: ModelBroker) -> None:
    got: list[bytes] = []
    consumer = await opened(
        broker,
        receiver_queue_size=100,
        message_listener=lambda _, message: got.append(message.data()),
    )
    broker.publish(100)
    turns = []
    while len(got) < 100:
        await asyncio.sleep(0)
        turns.append(len(got))
    assert max(after - before for before, after in pairwise(turns)) <= 16
    await consumer.close()


async def test_a_listener_continues_after_a_cancelled_await(broker: ModelBroker) -> None:
    got: list[bytes] = []

    async def listener(_: Consumer, message: Any) -> None:
        got.append(message.data())
        waiting = asyncio.get_running_loop().create_future()
        waiting.cancel()
        await waiting

    consumer = await opened(broker, message_listener=listener)
    broker.publish(2)
    await settle()
    assert got == [b"0", b"1"]
    await consumer.close()


async def test_a_listener_continues_with_messages_after_the_end_of_its_topic(broker) -> None:
    got: list[bytes] = []
    consumer = await opened(broker, message_listener=lambda _, message: got.append(message.data()))
    topic_of(consumer).end_of_topic_reached()
    await settle()
    ended = consumer.has_reached_end_of_topic()
    broker.publish()
    await settle()
    assert (ended, got) == (True, [b"0"])
    await consumer.close()


@pytest.mark.parametrize("given", ["text", None, 5, ["text"], b"1"])
@pytest.mark.parametrize(
    "call", [Consumer.acknowledge, Consumer.acknowledge_cumulative, Consumer.negative_acknowledge]
)
async def test_acknowledging_a_value_that_is_no_message_is_refused(call, given) -> None:
    consumer = await opened(ModelBroker())
    with pytest.raises(TypeError, match="a Message or a MessageId is acknowledged, not"):
        await call(consumer, given)


async def test_the_repr_of_a_consumer_shows_its_name_subscription_and_topic() -> None:
    consumer = await opened(ModelBroker(), consumer_name="me")
    assert repr(consumer) == f"<Consumer me of sub on {TOPIC}>"


async def test_a_stopped_consumer_ends_its_loops_and_still_acknowledges() -> None:
    broker = ModelBroker().publish(entries=2)
    consumer = await opened(broker)
    done = []
    async for message in consumer:
        consumer.stop()
        await consumer.acknowledge(message)
        done.append(message.data())
    await consumer.close()
    assert done == [b"0"]
    assert broker.left == [1]
