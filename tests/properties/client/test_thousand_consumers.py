"""A thousand consumers and a large backlog under the default limit, on a clock moved by hand."""

import asyncio
from collections import deque

from client.memory.receiver_queues import QueueOptions, ReceiverQueuePolicy, ReceiverQueues
from limiter.client_memory.memory_limit_controller import DEFAULT_LIMIT_BYTES, MemoryLimitController
from tests.support.client_memory.scripted_consumer import ScriptedConsumer
from tests.support.clocks.manual_clock import ManualClock

TOPICS, CONSUMERS_EACH = 100, 10
MESSAGE_BYTES = 100 * 1024
STEP_SECONDS = 0.05


class SharedConsumer(ScriptedConsumer):
    """One of several consumers of a topic's backlog."""

    def __init__(self, backlog: deque[tuple[int, int]], takes_every: int) -> None:
        super().__init__()
        self.pending = backlog
        self.takes_every = takes_every
        self.first_at: float | None = None


class Simulation:
    """100 topics of ten Shared consumers each.

    Args:
        policy: Of all consumers.
        messages_each: The backlog of a topic.
        idle_topics: Topics without any.
    """

    def __init__(
        self, policy: ReceiverQueuePolicy, messages_each: int, idle_topics: int = 0
    ) -> None:
        self.clock = ManualClock()
        self.started = self.clock.now()
        self.memory = MemoryLimitController(clock=self.clock)
        self.queues = ReceiverQueues(self.memory, self.clock)
        self.consumers: list[SharedConsumer] = []
        self.highest_over_grants = 0
        for topic in range(TOPICS):
            messages = 0 if topic < idle_topics else messages_each
            backlog = deque([(1, MESSAGE_BYTES)] * messages)
            for number in range(CONSUMERS_EACH):
                self.consumers.append(SharedConsumer(backlog, 1 + number % 3))
        for consumer in self.consumers:
            consumer.queue = self.queues.opening(QueueOptions(policy))(consumer, 1_000)
            consumer.reattach()

    async def run(self, seconds: float) -> None:
        """Let applications take, and broker send, step by step."""
        for step in range(round(seconds / STEP_SECONDS)):
            for consumer in self.consumers:
                if step % consumer.takes_every == 0 and consumer.receive():
                    consumer.first_at = consumer.first_at or self.clock.now() - self.started
            await asyncio.sleep(0)
            for consumer in self.consumers:
                while consumer.deliver():
                    granted = sum(one.permits > 0 for one in self.consumers)
                    over = self.memory.current_usage - granted * MESSAGE_BYTES
                    self.highest_over_grants = max(self.highest_over_grants, over)
            self.clock.advance(STEP_SECONDS)
        for consumer in self.consumers:
            consumer.close()
        await self.queues.close()


async def test_with_byte_queues_a_large_backlog_stays_under_the_memory_limit() -> None:
    simulation = Simulation(ReceiverQueuePolicy.BYTES, messages_each=200)
    await simulation.run(10.0)
    figures = simulation.memory.statistics()
    assert figures.high_water_bytes <= DEFAULT_LIMIT_BYTES
    assert simulation.highest_over_grants <= DEFAULT_LIMIT_BYTES
    assert sum(consumer.received for consumer in simulation.consumers) == 200 * TOPICS
    assert all((consumer.first_at or 99) < 10 for consumer in simulation.consumers)
    assert figures.usage_bytes == figures.reservations == 0


async def test_consumers_with_messages_get_every_message_beside_idle_topics() -> None:
    simulation = Simulation(ReceiverQueuePolicy.BYTES, messages_each=40, idle_topics=90)
    await simulation.run(10.0)
    busy = simulation.consumers[90 * CONSUMERS_EACH :]
    assert simulation.memory.statistics().high_water_bytes <= DEFAULT_LIMIT_BYTES
    assert sum(consumer.received for consumer in busy) == 40 * 10
    assert max(consumer.first_at or 99 for consumer in busy) < 10


async def test_with_fixed_queues_a_large_backlog_exceeds_the_memory_limit() -> None:
    simulation = Simulation(ReceiverQueuePolicy.FIXED, messages_each=200)
    await simulation.run(1.0)
    assert simulation.memory.statistics().high_water_bytes > DEFAULT_LIMIT_BYTES
