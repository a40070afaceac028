"""A client's memory limit against a broker: prefetched bytes, and no starvation."""

import asyncio

import pytest

from client.client import Client
from client.consumers.consumer import Consumer
from client.consumers.options import ConsumerDeadLetterPolicy
from client.messages.enums import ConsumerType
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from tests.integration.client.server import Server

MESSAGE_BYTES = 50 * 1024


async def drain(consumer: Consumer, count: int) -> int:
    """Receive and acknowledge a number of messages; return it."""
    for _ in range(count):
        await consumer.acknowledge(await consumer.receive(30_000))
    return count


@pytest.mark.parametrize("limit", [1, 200 * 1024, 1024 * 1024])
async def test_many_consumers_receive_all_messages_under_a_small_memory_limit(
    limit: int, server: Server
) -> None:
    # A backlog of 10 MB on 20 topics, each read by two consumers.
    url = server.service_url
    topics = [server.topic(f"t{number}") for number in range(20)]
    async with Client(url) as filling:
        for topic in topics:
            async with await filling.create_producer(topic) as producer:
                await filling.subscribe(topic, "a")
                await filling.subscribe(topic, "b")
                for _ in range(10):
                    await producer.send(bytes(MESSAGE_BYTES))
    memory = MemoryLimitController(limit)
    async with Client(url, memory_limit_controller=memory) as client:
        consumers = [await client.subscribe(topic, name) for topic in topics for name in ("a", "b")]
        received = await asyncio.gather(*[drain(consumer, 10) for consumer in consumers])
        assert sum(received) == 400
        entry = MESSAGE_BYTES + 1024
        assert memory.statistics().high_water_bytes <= limit + len(consumers) * entry
    assert memory.current_usage == memory.statistics().reservations == 0


async def test_a_task_that_consumes_and_produces_does_not_block_with_a_limit_of_one_byte(
    server: Server,
) -> None:
    url = server.service_url
    async with Client(url) as filling, Client(url, memory_limit_bytes=1) as client:
        consumer = await client.subscribe(server.topic("in"), "s", receiver_queue_policy="fixed")
        copies = await filling.subscribe(server.topic("out"), "s")
        async with await filling.create_producer(server.topic("in")) as producer:
            await asyncio.gather(*[producer.send(b"%d" % number) for number in range(100)])
        async with await client.create_producer(server.topic("out")) as copier:
            for _ in range(100):
                message = await consumer.receive(10_000)
                await copier.send(message.data())
        received = [(await copies.receive(10_000)).data() for _ in range(100)]
        assert received == [b"%d" % number for number in range(100)]


async def test_dead_letters_are_sent_with_a_limit_of_one_byte(server: Server) -> None:
    url, source, dead = server.service_url, server.topic("in"), server.topic("dead")
    async with Client(url) as filling, Client(url, memory_limit_bytes=1) as client:
        letters = await filling.subscribe(dead, "s")
        consumer = await client.subscribe(
            source,
            "s",
            ConsumerType.Shared,
            negative_ack_redelivery_delay_ms=10,
            dead_letter_policy=ConsumerDeadLetterPolicy(1, dead_letter_topic=dead),
        )
        async with await filling.create_producer(source) as producer:
            await asyncio.gather(*[producer.send(b"%d" % number) for number in range(20)])
        for _ in range(40):
            await consumer.negative_acknowledge(await consumer.receive(10_000))
        received = {(await letters.receive(10_000)).data() for _ in range(20)}
        assert received == {b"%d" % number for number in range(20)}
