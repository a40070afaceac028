"""Coroutines of consumers, readers and table views may be cancelled at each await.

Each is repeated and cancelled at its first, second, third ... suspension, until it ends earlier.
Then the consumer is closed, and nothing may be left: task, waiter, reservation, promise of memory,
consumer at the broker, or producer of dead letters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from client.consumers import dead_letters
from client.consumers.consumer import Consumer, open_consumer
from client.consumers.options import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    ConsumerOptions,
    ReaderOptions,
)
from client.consumers.reader import Reader, open_reader
from client.exceptions import PulsarException, Timeout
from client.messages.enums import ConsumerType
from client.messages.message_id import MessageId
from client.table_view import open_table_view
from tests.support.clocks.settle import settle
from tests.support.peers.model_broker import LEDGER, TOPIC, ModelBroker
from tests.support.suspensions import cancelled_at

Opening = "Callable[[ModelBroker], Awaitable[Any]]"
MOST_SUSPENSIONS = 60
WHERE = MessageId(-1, LEDGER, 1)


class Slowly:
    """A broker's answer that takes two turns of the loop."""

    async def wait(self) -> None:
        for _ in range(2):
            await asyncio.sleep(0)


class DeadLetterProducer:
    """Takes two turns to send, and to close."""

    open_now = 0

    @classmethod
    async def opened(cls, *_: object) -> DeadLetterProducer:
        await Slowly().wait()
        cls.open_now += 1
        return cls()

    async def send(self, *_: object, **__: object) -> None:
        await Slowly().wait()

    async def close(self) -> None:
        type(self).open_now -= 1
        await Slowly().wait()


@pytest.fixture(autouse=True)
def _producers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeadLetterProducer, "open_now", 0)
    monkeypatch.setattr(dead_letters, "open_producer", DeadLetterProducer.opened)


async def finished(broker: ModelBroker, task: asyncio.Task[Any]) -> bool:
    """Advance time until a task ends; return whether cancelled."""
    for _ in range(40):
        await settle()
        if task.done():
            break
        broker.clock.advance(1)
    assert task.done(), "it never ends"
    if not task.cancelled() and (error := task.exception()) is not None:
        assert isinstance(error, PulsarException), error
    return task.cancelled()


async def check_nothing_is_left(broker: ModelBroker, before: set[asyncio.Task[Any]]) -> None:
    await settle()
    assert asyncio.all_tasks() == before
    figures = broker.memory.statistics()
    assert (figures.usage_bytes, figures.reservations, figures.promised_bytes) == (0, 0, 0)
    assert broker.memory.prefetch.waiting == 0
    assert broker.cnx is None or not broker.cnx.attached.consumers
    assert broker.subscribed is None
    assert DeadLetterProducer.open_now == 0
    assert not broker.context.parts
    assert not broker.context.receiver_queues._by_bytes


async def at_every_suspension(
    opening: Callable[[ModelBroker], Awaitable[Any]] | None,
    call: Callable[[Any], Awaitable[Any]],
    partitions: int = 0,
) -> None:
    """Cancel a call at each suspension; without ``opening`` the call opens the closed object."""
    for suspension in range(1, MOST_SUSPENSIONS):
        before = asyncio.all_tasks()
        broker = ModelBroker(partition_count=partitions)
        for _ in range(3):
            broker.publish(2)
        what: Any = broker
        if opening is not None:
            what = await opening(broker)
            await settle()
        broker.hold = Slowly()  # type: ignore[assignment]
        task = cancelled_at(call(what), suspension)  # type: ignore[arg-type]
        was_cancelled = await finished(broker, task)
        if opening is None and not was_cancelled:
            what = task.result()
        if hasattr(what, "close"):
            assert not hasattr(what, "_inbox") or what._inbox.waiting == 0
            await finished(broker, asyncio.create_task(what.close()))
        broker.clock.advance(1)
        await check_nothing_is_left(broker, before)
        if not was_cancelled:
            return
    raise AssertionError(f"more than {MOST_SUSPENSIONS} suspensions")


OPTIONS: dict[str, Any] = {
    "ack_receipt_enabled": True,
    "ack_group_time_ms": 0,
    "negative_ack_redelivery_delay_ms": 10,
    "batch_receive_policy": ConsumerBatchReceivePolicy(100, -1, 200),
}
RETRYING: dict[str, Any] = {
    **OPTIONS,
    "consumer_type": ConsumerType.Shared,
    "dead_letter_policy": ConsumerDeadLetterPolicy(1, dead_letter_topic="dead"),
    "retry_enabled": True,
}


async def consumer(broker: ModelBroker, **options: Any) -> Consumer:
    chosen = ConsumerOptions(**{**OPTIONS, **options})
    return await open_consumer(broker.context, TOPIC, "s", chosen)


async def retrying(broker: ModelBroker) -> Consumer:
    return await open_consumer(broker.context, TOPIC, "s", ConsumerOptions(**RETRYING))


async def listening(broker: ModelBroker) -> Consumer:
    async def listener(consumer: Consumer, message: Any) -> None:
        await consumer.acknowledge(message)

    return await consumer(broker, message_listener=listener)


async def reader(broker: ModelBroker) -> Reader:
    return await open_reader(broker.context, TOPIC, MessageId.earliest, ReaderOptions())


async def everything(one: Consumer) -> None:
    with suppress(Timeout):
        while True:
            await one.receive(1_000)


async def batches(one: Consumer) -> None:
    while await one.batch_receive():
        pass


async def all_of_it(one: Consumer) -> None:
    with suppress(Timeout):
        while True:
            await one.acknowledge(await one.receive(1_000))


async def dead(one: Consumer) -> None:
    for _ in range(3):
        message = await one.receive(5_000)
        await one.negative_acknowledge(message)


CALLS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "receive": everything,
    "batch_receive": batches,
    "acknowledge": all_of_it,
    "acknowledge a list": lambda one: one.acknowledge([one.receive_nowait() for _ in range(4)]),
    "acknowledge_cumulative": lambda one: one.acknowledge_cumulative(one.receive_nowait()),
    "negative_acknowledge": lambda one: one.negative_acknowledge(one.receive_nowait()),
    "seek": lambda one: one.seek(WHERE),
    "seek to a time": lambda one: one.seek(0),
    "get_last_message_id": lambda one: one.get_last_message_id(),
    "get_last_message_ids": lambda one: one.get_last_message_ids(),
    "get_broker_consumer_stats": lambda one: one.get_broker_consumer_stats(),
    "unsubscribe": lambda one: one.unsubscribe(),
    "close": lambda one: one.close(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_cancelled_call_of_a_consumer_leaves_nothing_behind(
    call: Callable[[Any], Awaitable[Any]],
) -> None:
    await at_every_suspension(consumer, call)


@pytest.mark.parametrize("name", ["seek to a time", "unsubscribe", "close", "batch_receive"])
async def test_a_cancelled_call_of_a_partitioned_consumer_leaves_nothing_behind(name: str) -> None:
    await at_every_suspension(consumer, CALLS[name], partitions=2)


@pytest.mark.parametrize(
    "call",
    [lambda one: one.reconsume_later(one.receive_nowait(), 100), dead, CALLS["close"]],
    ids=["reconsume_later", "dead", "close"],
)
async def test_a_cancelled_call_of_a_consumer_with_dead_letters_leaves_nothing_behind(
    call: Callable[[Any], Awaitable[Any]],
) -> None:
    await at_every_suspension(retrying, call)


async def test_a_cancelled_close_of_a_consumer_with_a_listener_leaves_nothing_behind() -> None:
    await at_every_suspension(listening, CALLS["close"])


@pytest.mark.parametrize(
    "call",
    [
        lambda one: one.read_next(),
        lambda one: one.has_message_available(),
        lambda one: one.seek(0),
        lambda one: one.close(),
    ],
    ids=["read_next", "has_message_available", "seek", "close"],
)
async def test_a_cancelled_call_of_a_reader_leaves_nothing_behind(
    call: Callable[[Any], Awaitable[Any]],
) -> None:
    await at_every_suspension(reader, call)


@pytest.mark.parametrize("partitions", [0, 3])
@pytest.mark.parametrize("opening", [consumer, retrying, reader], ids=lambda one: one.__name__)
async def test_a_cancelled_open_of_a_consumer_or_reader_leaves_nothing_behind(
    opening, partitions
) -> None:
    await at_every_suspension(None, opening, partitions)


async def test_a_cancelled_open_or_close_of_a_table_view_leaves_nothing_behind() -> None:
    async def view(broker: ModelBroker) -> Any:
        return await open_table_view(broker.context, TOPIC)

    await at_every_suspension(None, view)
    await at_every_suspension(view, lambda one: one.close())
