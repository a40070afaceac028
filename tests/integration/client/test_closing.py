"""Closing and cancelling leave nothing behind, whatever was open."""

import asyncio
from collections.abc import Callable

import pytest

from client.client import Client
from client.consumers.consumer import Consumer
from client.exceptions import AlreadyClosed
from client.messages.enums import ConsumerType
from client.messages.message import Message
from client.messages.message_id import MessageId
from limiter.clock import LoopClock
from tests.support.processes.cluster import until

TURNS = 60
MESSAGES = 50


class RecordingClock(LoopClock):
    """The loop's clock with a record of timers."""

    def __init__(self) -> None:
        self._timers: list[asyncio.TimerHandle] = []

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object
    ) -> asyncio.TimerHandle:
        """Arm a timer."""
        self._timers.append(asyncio.get_running_loop().call_at(when, callback, *args))
        return self._timers[-1]

    @property
    def armed(self) -> list[asyncio.TimerHandle]:
        """Timers that can still fire."""
        return [one for one in self._timers if not one.cancelled() and one.when() > self.now()]


async def test_a_closed_client_leaves_no_task_timer_or_memory_reservation(server, topic) -> None:
    before = asyncio.all_tasks()
    clock = RecordingClock()
    client = Client(server.service_url, clock=clock)
    heard: list[bytes] = []

    async def listener(_: Consumer, message: Message) -> None:
        heard.append(message.data())

    consumer = await client.subscribe([topic, f"{topic}-2"], "s", ConsumerType.Shared)
    await client.subscribe(
        topic, "heard", message_listener=listener, unacked_messages_timeout_ms=10_000
    )
    await client.create_reader(topic, MessageId.earliest)
    await client.create_table_view(f"{topic}-2")
    producer = await client.create_producer(topic)
    await asyncio.gather(*(producer.send(b"%d" % n) for n in range(MESSAGES)))
    await consumer.negative_acknowledge(await consumer.receive())
    await until(lambda: len(heard) == MESSAGES)
    waiting = [
        asyncio.create_task(client.create_producer(f"{topic}-3")),
        asyncio.create_task(_takes_all(consumer)),
    ]
    await asyncio.sleep(0)
    await client.close()
    for one in waiting:
        with pytest.raises(AlreadyClosed):
            await one
    await until(lambda: asyncio.all_tasks() == before)
    assert clock.armed == []
    assert client.memory.current_usage == 0
    assert client._context.parts == set()


async def _takes_all(consumer: Consumer) -> None:
    while True:
        await consumer.receive()


async def _producer(client: Client, topic: str) -> None:
    await (await client.create_producer(topic)).close()


async def _consumer(client: Client, topic: str) -> None:
    await (await client.subscribe(topic, "s", ConsumerType.Shared)).close()


async def _reader(client: Client, topic: str) -> None:
    await (await client.create_reader(topic, MessageId.earliest)).close()


async def _table_view(client: Client, topic: str) -> None:
    await (await client.create_table_view(topic)).close()


async def test_closing_a_client_while_producers_and_consumers_open_leaves_no_task(
    server, topic
) -> None:
    before = asyncio.all_tasks()
    for turns in range(TURNS):
        client = Client(server.service_url)
        tasks = [
            asyncio.create_task(one(client, topic))
            for one in (_producer, _consumer, _reader, _table_view)
        ]
        for _ in range(turns):
            await asyncio.sleep(0)
        await client.close()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, AlreadyClosed | None) for one in outcomes), outcomes
    await until(lambda: asyncio.all_tasks() == before)
