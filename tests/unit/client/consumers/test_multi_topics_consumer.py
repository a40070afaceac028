"""Topics come and go, and their messages are merged fairly."""

from __future__ import annotations

import asyncio

import pytest

from client.consumers.all_of import all_of
from client.consumers.consumer import Consumer, topics_consumer
from client.consumers.options import ConsumerOptions
from client.exceptions import AlreadyClosed, ConnectError
from tests.support.clocks.settle import settle, started
from tests.support.peers.model_broker import TOPIC, ModelBroker
from tests.support.peers.model_consumers import after, opened


async def test_a_topic_that_is_left_is_closed_and_its_messages_are_dropped() -> None:
    # Given
    broker = ModelBroker()
    broker.publish(2)
    topics = topics_consumer(broker.context, "s", ConsumerOptions(receiver_queue_policy="fixed"))
    consumer = Consumer(broker.context, topics, TOPIC)
    await topics.add_topic(TOPIC)
    await topics.add_topic(TOPIC)
    await settle()
    queued = consumer.statistics().messages_queued
    # When
    await topics.remove_topic(TOPIC)
    await topics.remove_topic(TOPIC)
    # Then
    assert queued == 2
    assert consumer.receive_nowait() is None
    assert broker.memory.current_usage == 0
    assert topics.topics == {}
    await topics.add_topic(TOPIC)
    await settle()
    assert consumer.statistics().messages_queued == 2


async def test_a_topic_that_is_added_while_the_consumer_closes_is_not_kept() -> None:
    # Given
    broker = ModelBroker(hold=asyncio.Event())
    topics = topics_consumer(broker.context, "s", ConsumerOptions())
    adding = await started(topics.add_topic(TOPIC))
    # When
    await topics.close()
    broker.hold.set()  # type: ignore[union-attr]
    # Then
    with pytest.raises(AlreadyClosed):
        await adding
    assert broker.subscribed is None
    with pytest.raises(AlreadyClosed):
        await topics.add_topic("persistent://public/default/other")


async def test_messages_of_partitions_are_taken_in_turn() -> None:
    # Given two partitions, of which each has the messages of the model's one subscription
    broker = ModelBroker(partition_count=2, delivers=False)
    topics = topics_consumer(broker.context, "s", ConsumerOptions(receiver_queue_policy="fixed"))
    await topics.add_topic(TOPIC)
    for _ in range(6):
        broker.publish()
    assert broker.cnx is not None
    consumer = Consumer(broker.context, topics, TOPIC)
    # When
    for number in range(6):
        assert broker.subscribed is not None
        broker.subscribed.consumer_id = 0 if number < 4 else 1
        broker.send_entry(number)
    got = [consumer.receive_nowait() for _ in range(6)]
    # Then
    payloads = [message.data() for message in got if message is not None]
    assert payloads == [b"0", b"4", b"1", b"5", b"2", b"3"]
    assert {message.topic_name()[-1] for message in got if message is not None} == {"0", "1"}


async def test_all_come_to_their_end_before_an_error_is_raised() -> None:
    # Given
    ended: list[str] = []

    async def fails() -> None:
        raise ConnectError("no")

    async def takes_longer() -> None:
        await settle()
        ended.append("longer")

    # Then
    with pytest.raises(ConnectError):
        await all_of([fails(), takes_longer()])
    assert ended == ["longer"]


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
