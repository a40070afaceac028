"""Consumers of a model broker's topic, for tests."""

from typing import Any

from client.consumers.consumer import Consumer, open_consumer
from client.consumers.options import ConsumerOptions
from client.consumers.topic_consumer import TopicConsumer
from tests.support.clocks.settle import settle
from tests.support.peers.model_broker import TOPIC, ModelBroker


async def opened(broker: ModelBroker, **options: Any) -> Consumer:
    """Return a consumer with a fixed-size queue, after its first messages."""
    options = {"receiver_queue_policy": "fixed", "receiver_queue_size": 10, **options}
    consumer = await open_consumer(broker.context, TOPIC, "sub", ConsumerOptions(**options))
    await settle()
    return consumer


def topic_of(consumer: Consumer) -> TopicConsumer:
    """Return the consumer's only topic."""
    (topic,) = consumer._topics.topics.values()
    return topic


async def numbers(consumer: Consumer, count: int) -> list[bytes]:
    """Return the payloads of the next messages."""
    return [(await consumer.receive(1_000)).data() for _ in range(count)]


def kinds(broker: ModelBroker) -> list[int]:
    """Return the types of commands the broker received."""
    return [command.type for command in broker.commands]


async def after(broker: ModelBroker, seconds: float) -> None:
    """Advance time and run all tasks."""
    await settle()
    broker.clock.advance(seconds)
    await settle()
