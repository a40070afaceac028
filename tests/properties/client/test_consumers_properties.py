"""Consumers lose no message and hold nothing for ever, in any order of events.

Histories of arrivals, receives, cancellations, acknowledgements, refusals, seeks, lost connections
and closings, against a model of a broker. After each step:

- the broker's permits are at most the queue's size;
- the counted bytes are the queued messages';
- messages repeat only after a redelivery, a seek, or a lost connection.

At the end, once all are acknowledged, the broker's backlog is empty.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from client.consumers.consumer import open_consumer
from client.consumers.options import ConsumerOptions
from client.exceptions import PulsarException, server_response_error
from client.messages.enums import ConsumerType
from client.messages.message import Message
from client.messages.message_id import MessageId
from tests.support.clocks.settle import settle
from tests.support.examples import many
from tests.support.peers.model_broker import TOPIC, ModelBroker

LARGEST_BATCH = 3
LIKELY = ("publish", "receive", "receive", "acknowledge", "cancel", "turn")
RARE = (
    "receive_batch",
    "refuse",
    "acknowledge_all",
    "break",
    "unload",
    "seek",
    "redeliver",
    "refuse_request",
    "settle",
    "wait",
)
STEPS = st.lists(
    st.tuples(st.sampled_from(LIKELY * 2 + RARE), st.integers(0, 5)), min_size=15, max_size=50
)
WAITS = (0.2, 1.5)


class History:
    """A consumer, and its program's actions and results."""

    def __init__(self, broker: ModelBroker, queue_size: int) -> None:
        self.broker = broker
        self.queue_size = queue_size
        self.tasks: list[asyncio.Task[Any]] = []
        self.got: list[Message] = []
        self.generation = 0
        self.seen: set[tuple[int, MessageId, int]] = set()

    async def open(self, **options: Any) -> None:
        self.alone = options["consumer_type"] in (ConsumerType.Exclusive, ConsumerType.Failover)
        self.consumer = await open_consumer(
            self.broker.context,
            TOPIC,
            "sub",
            ConsumerOptions(
                receiver_queue_size=self.queue_size,
                receiver_queue_policy="fixed",
                negative_ack_redelivery_delay_ms=1_000,
                **options,
            ),
        )

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def receive(self) -> None:
        self.take(await self.consumer.receive())

    async def receive_batch(self) -> None:
        for message in await self.consumer.batch_receive():
            self.take(message)

    def take(self, message: Message) -> None:
        key = self.generation, message.message_id(), message.redelivery_count()
        assert key not in self.seen, f"{message} came twice"
        self.seen.add(key)
        self.got.append(message)

    async def ignoring(self, work: Callable[..., Coroutine[Any, Any, Any]], *args: object) -> None:
        with suppress(PulsarException):
            await work(*args)

    def comes_again(self) -> None:
        """From now on everything may come again."""
        self.generation += 1

    def step(self, name: str, number: int) -> None:  # noqa: C901, PLR0912, PLR0915 - a table of steps
        broker, consumer = self.broker, self.consumer
        if name == "publish":
            broker.publish(number % LARGEST_BATCH + 1)
        elif name == "receive":
            self.start(self.receive())
        elif name == "receive_batch":
            self.start(self.receive_batch())
        elif name == "acknowledge" and self.got:
            message = self.got.pop(number % len(self.got))
            self.start(self.ignoring(consumer.acknowledge, message))
        elif name == "acknowledge_all" and self.got:
            last = max(self.got, key=Message.message_id)
            if self.alone:
                self.got = []
                self.start(self.ignoring(consumer.acknowledge_cumulative, last))
        elif name == "refuse" and self.got:
            message = self.got[number % len(self.got)]
            self.start(self.ignoring(consumer.negative_acknowledge, message))
        elif name == "cancel":
            pending = [task for task in self.tasks if not task.done()]
            if pending:
                pending[number % len(pending)].cancel()
        elif name == "break" and broker.subscribed is not None:
            self.comes_again()
            broker.breaks()
        elif name == "unload" and broker.subscribed is not None:
            self.comes_again()
            broker.close_consumer()
        elif name == "seek":
            self.comes_again()
            self.start(self.ignoring(self.seek, number))
        elif name == "redeliver":
            self.comes_again()
            consumer.redeliver_unacknowledged_messages()
        elif name == "refuse_request":
            broker.refusals = [server_response_error(pb.MetadataError, "not now")]
        elif name == "wait":
            self.comes_again()  # Refused messages may come.
            broker.clock.advance(WAITS[number % 2])

    async def seek(self, number: int) -> None:
        last = len(self.broker.entries)
        target = MessageId.earliest if number % 2 else MessageId(-1, 7, min(number, last))
        try:
            await self.consumer.seek(target)
        finally:
            self.comes_again()

    def check(self) -> None:
        (topic,) = self.consumer._topics.topics.values()
        incoming = topic.incoming
        assert self.broker.permits <= self.queue_size
        assert incoming.outstanding <= self.queue_size
        assert self.broker.memory.current_usage == incoming.received.queued_bytes
        assert incoming.received.queued == sum(one.messages for one in incoming.received._entries)
        assert self.consumer._inbox.queued == incoming.received.queued
        assert self.consumer._inbox.queued_bytes == incoming.received.queued_bytes

    def check_nobody_waits_in_vain(self) -> None:
        """Check, after all tasks ran, that no receive waits while a message is queued."""
        assert not (self.consumer._inbox.queued and self.consumer._inbox._waiters)

    async def end(self) -> None:
        """Receive and acknowledge until no message comes."""
        for task in self.tasks:
            task.cancel()
        await settle()
        self.broker.refusals = []
        self.broker.clock.advance(20)
        await settle()
        # An acknowledgement cancelled before its begin has no effect.
        self.consumer.redeliver_unacknowledged_messages()
        for _ in range(30):
            self.broker.clock.advance(20)
            await settle()
            self.comes_again()
            while (message := self.consumer.receive_nowait()) is not None:
                self.take(message)
                self.got.append(message)
                await settle()
            for message in self.got:
                await self.consumer.acknowledge(message)
            self.got.clear()
            self.broker.clock.advance(1)
            await settle()
            self.check()
        await self.consumer.close()
        for task in self.tasks:
            if task.done() and not task.cancelled():
                task.result()


async def run(
    steps: list[tuple[str, int]],
    queue_size: int,
    options: dict[str, Any],
    *,
    broker_by_index: bool = True,
) -> None:
    broker = ModelBroker(by_index=broker_by_index)
    history = History(broker, queue_size)
    await history.open(**options)
    for name, number in steps:
        if name == "turn":
            await asyncio.sleep(0)
        elif name == "settle":
            await settle()
            history.check_nobody_waits_in_vain()
        else:
            history.step(name, number)
        history.check()
    await settle()
    history.check_nobody_waits_in_vain()
    await history.end()
    assert broker.left == [], "a message was lost"
    assert broker.memory.current_usage == 0
    assert history.consumer.statistics().waiting == 0


CLOSED_WITHOUT_A_CONNECTION = [
    *[("publish", 0)] * 11,
    ("receive", 0),
    ("turn", 0),
    ("acknowledge", 0),
    ("break", 0),
]
OPERATION_SECONDS = 30
ONE_OF_TWO_THAT_WAIT_IS_CANCELLED_WHEN_IT_IS_WOKEN = [
    ("settle", 0),
    ("receive", 0),
    ("receive", 0),
    ("turn", 0),
    ("publish", 0),
    ("cancel", 0),
]
THE_REST_OF_A_BATCH_COMES_AGAIN = [
    ("publish", 2),
    ("settle", 0),
    ("receive", 0),
    ("turn", 0),
    ("refuse", 0),
    ("turn", 0),
    ("wait", 1),
]


@example(
    ONE_OF_TWO_THAT_WAIT_IS_CANCELLED_WHEN_IT_IS_WOKEN, 3, ConsumerType.Shared, False, True, False
)
@example(THE_REST_OF_A_BATCH_COMES_AGAIN, 3, ConsumerType.Shared, False, True, False)
@given(
    steps=STEPS,
    queue_size=st.integers(1, 6),
    kind=st.sampled_from(list(ConsumerType)),
    by_index=st.booleans(),
    broker_by_index=st.booleans(),
    receipts=st.booleans(),
)
@settings(max_examples=many(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_message_is_lost_and_no_memory_is_held_after_any_history(
    steps: list[tuple[str, int]],
    queue_size: int,
    kind: ConsumerType,
    by_index: bool,
    broker_by_index: bool,
    receipts: bool,
) -> None:
    options = {
        "consumer_type": kind,
        "batch_index_ack_enabled": by_index,
        "ack_receipt_enabled": receipts,
        "ack_group_time_ms": 0 if receipts else 100,
    }
    asyncio.run(run(steps, queue_size, options, broker_by_index=broker_by_index))


async def operation_seconds_pass(broker: ModelBroker) -> None:
    """Advance time: without a connection a close waits for the next one."""
    for _ in range(OPERATION_SECONDS):
        broker.clock.advance(1)
        await settle()


@example(CLOSED_WITHOUT_A_CONNECTION, 0)
@given(steps=STEPS, ticks=st.integers(0, 60))
@settings(max_examples=many(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_closing_a_consumer_at_any_moment_releases_everything(steps, ticks) -> None:
    async def close_meanwhile() -> None:
        broker = ModelBroker()
        history = History(broker, 4)
        await history.open(consumer_type=ConsumerType.Shared)
        for name, number in steps:
            if name == "turn":
                await asyncio.sleep(0)
            elif name != "settle":
                history.step(name, number)
        closing = asyncio.get_running_loop().create_task(history.consumer.close())
        for _ in range(ticks):
            await asyncio.sleep(0)
        if ticks % 2:
            closing.cancel()
        await operation_seconds_pass(broker)
        assert closing.done()
        assert broker.memory.current_usage == 0
        assert history.consumer.statistics().waiting == 0
        assert broker.subscribed is None
        for task in history.tasks:
            task.cancel()
        await settle()

    asyncio.run(close_meanwhile())
