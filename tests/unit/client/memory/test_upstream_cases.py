"""Upstream's tests of auto-scaled receiver queues and of a consumer's memory, by name."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from client.memory.receiver_queues import (
    ReceiverQueuePolicy,
    ReceiverQueues,
    receiver_queue_for,
    topics_queue_for,
)
from client.memory.upstream_receiver_queue import UpstreamReceiverQueue
from client.memory.upstream_topics_queue import UpstreamTopicsQueue
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from tests.support.client_memory.scripted_consumer import ScriptedConsumer
from tests.support.clocks.manual_clock import ManualClock

if TYPE_CHECKING:
    from client.memory.receiver_queue import TopicsQueue

PULSAR = ReceiverQueuePolicy.PULSAR
CASES = {
    "AutoScaledReceiverQueueSizeTest.testConsumerImpl",
    "AutoScaledReceiverQueueSizeTest.testConsumerImplBatchReceive",
    "AutoScaledReceiverQueueSizeTest.testMultiConsumerImpl",
    "AutoScaledReceiverQueueSizeTest.testMultiConsumerImplBatchReceive",
    "AutoScaledReceiverQueueSizeTest.testNegativeClientMemory",
    "AutoScaledReceiverQueueSizeTest.testMemoryLimitDisabled",
    "ConsumerMemoryLimitTest.testConsumerMemoryLimit",
    "ConsumerMemoryLimitTest.testMultiPulsarClientConsumerShareMemoryLimitController",
    "ConsumerImplTest.testUpdateAutoScaleReceiverQueueHintRaceWithConcurrentDrain",
    "DynamicReceiverQueueSizeTest.testMaxReceiverQueueSize",
}
"""Upstream's cases. Of testMemoryLimitDisabled and testMaxReceiverQueueSize only the changes'
descriptions are known, and the name of the former is ours."""


def new_memory(limit_bytes: int = 64 << 20) -> MemoryLimitController:
    """Upstream's rule: no share is kept for producers."""
    return MemoryLimitController(limit_bytes, clock=ManualClock(), producer_share=0.0)


def upstream_queue(consumer: ScriptedConsumer) -> UpstreamReceiverQueue:
    assert isinstance(consumer.queue, UpstreamReceiverQueue)
    return consumer.queue


def subscribed(
    memory: MemoryLimitController,
    max_size: int,
    batch: int = 0,
    client: ReceiverQueues | None = None,
) -> ScriptedConsumer:
    """Return an attached consumer with upstream's policy."""
    consumer = ScriptedConsumer()
    consumer.queue = receiver_queue_for(
        client or ReceiverQueues(memory, ManualClock()),
        consumer,
        policy=PULSAR,
        max_size=max_size,
        batch_receive_messages=batch,
    )
    consumer.reattach()
    return consumer


class Partitions:
    """A consumer of three partitions and its application."""

    def __init__(self, memory: MemoryLimitController, max_size: int, batch: int = 0) -> None:
        queues = ReceiverQueues(memory, ManualClock())
        common: TopicsQueue = topics_queue_for(
            queues, policy=PULSAR, max_size=max_size, batch_receive_messages=batch
        )
        assert isinstance(common, UpstreamTopicsQueue)
        self.common = common
        self.topics = [ScriptedConsumer() for _ in range(3)]
        for topic in self.topics:
            topic.queue = common.open(topic, max_size)
            topic.reattach()

    def arrive(self, messages: int, size: int = 100) -> None:
        """Let messages come, of each partition in turn."""
        for number in range(messages):
            topic = self.topics[number % 3]
            topic.publish(1, size)
            assert topic.deliver()

    def take(self, messages: int) -> None:
        for _ in range(messages):
            assert any(topic.take() for topic in self.topics)

    def receive_nothing(self) -> None:
        assert not any(topic.receive() for topic in self.topics)


# -- AutoScaledReceiverQueueSizeTest ----------------------------------------------------------


def test_a_queue_doubles_when_it_was_full_and_ran_empty() -> None:
    """Upstream: AutoScaledReceiverQueueSizeTest.testConsumerImpl"""
    # Given
    consumer = subscribed(new_memory(), max_size=3)
    queue = upstream_queue(consumer)
    assert not consumer.receive()
    assert queue.current_size == 1
    consumer.publish(100, 10)
    assert consumer.deliver_all() == 1
    assert queue.hint
    # When
    assert consumer.receive()
    assert not consumer.receive()
    # Then
    assert queue.current_size == 2
    assert not queue.hint
    for _ in range(5):
        assert consumer.deliver_all() == 2
        assert consumer.take()
        assert consumer.take()
    assert queue.current_size == 2
    consumer.deliver_all()
    assert queue.hint
    while consumer.take():
        pass
    assert not consumer.receive()
    assert queue.current_size == 3
    assert queue.growths == 2


def test_a_queue_is_large_enough_for_a_batch_from_the_start() -> None:
    """Upstream: AutoScaledReceiverQueueSizeTest.testConsumerImplBatchReceive"""
    # Given
    consumer = subscribed(new_memory(), max_size=20, batch=5)
    queue = upstream_queue(consumer)
    assert queue.current_size == 8
    # When
    for _ in range(10):
        consumer.publish(5, 10)
        assert consumer.deliver_all() == 5
        for _ in range(5):
            assert consumer.take()
    # Then
    assert queue.current_size == 8
    consumer.publish(20, 10)
    consumer.deliver_all()
    assert queue.hint
    while consumer.take():
        pass
    consumer.receive()
    assert queue.current_size == 16


def test_the_queue_of_partitions_doubles_when_it_was_full_and_ran_empty() -> None:
    """Upstream: AutoScaledReceiverQueueSizeTest.testMultiConsumerImpl"""
    # Given
    partitions = Partitions(new_memory(), max_size=10)
    common = partitions.common
    assert common.current_size == 3
    # When
    partitions.arrive(3)
    assert common.hint
    partitions.take(3)
    assert common.hint
    partitions.receive_nothing()
    # Then
    assert common.current_size == 6
    assert not common.hint
    for _ in range(5):
        partitions.arrive(6)
        partitions.take(6)
    assert common.hint
    assert common.current_size == 6
    partitions.receive_nothing()
    assert common.current_size == 10


def test_the_queue_of_partitions_is_large_enough_for_a_batch() -> None:
    """Upstream: AutoScaledReceiverQueueSizeTest.testMultiConsumerImplBatchReceive"""
    # Given
    partitions = Partitions(new_memory(), max_size=1_000, batch=5)
    assert partitions.common.current_size == 5
    # When
    for _ in range(10):
        partitions.arrive(5)
        partitions.take(5)
    # Then
    assert partitions.common.current_size == 5
    partitions.arrive(5)
    partitions.take(5)
    partitions.receive_nothing()
    assert partitions.common.current_size == 10


def test_usage_is_nothing_when_all_prefetched_messages_were_taken() -> None:
    """Upstream: AutoScaledReceiverQueueSizeTest.testNegativeClientMemory"""
    # Given
    memory = new_memory()
    partitions = Partitions(memory, max_size=1_000)
    for number in range(1_000):
        partitions.topics[number % 3].publish(1, 10)
    received = seen = 0
    # When
    while received < 1_000:
        for topic in partitions.topics:
            topic.deliver_all()
        seen = max(seen, memory.current_usage)
        while any(topic.take() for topic in partitions.topics):
            received += 1
        assert memory.current_usage >= 0
        partitions.receive_nothing()
    # Then
    assert seen > 0
    assert memory.current_usage == memory.current_usage_fraction == 0


def test_a_queue_grows_without_a_limit() -> None:
    """Upstream: AutoScaledReceiverQueueSizeTest.testMemoryLimitDisabled"""
    consumer = subscribed(new_memory(0), max_size=1_000)
    consumer.publish(1, 10)
    consumer.deliver()
    assert consumer.receive()
    assert not consumer.receive()
    assert consumer.queue.current_size == 2


# -- ConsumerMemoryLimitTest ------------------------------------------------------------------


def test_prefetched_messages_stop_growth_and_producers_and_shrink_queues() -> None:
    """Upstream: ConsumerMemoryLimitTest.testConsumerMemoryLimit"""
    # Given
    memory = new_memory(10 * 1024)
    client = ReceiverQueues(memory, ManualClock())
    first = subscribed(memory, 10, client=client)
    second = subscribed(memory, 10, client=client)
    upstream_queue(first).grow_to(10)
    assert first.queue.current_size == 10
    second.publish(1, 0)
    second.deliver()
    second.take()
    assert upstream_queue(second).hint
    # When
    first.publish(5, 3_000)
    first.deliver_all()
    # Then
    assert memory.current_usage == 15_000
    assert first.queue.current_size == 5
    assert first.queue.shrinks == 1
    assert not second.receive()
    assert second.queue.current_size == 1
    assert memory.try_reserve(10) is None


def test_the_producers_share_ends_that() -> None:
    """As testConsumerMemoryLimit, with a share kept for producers."""
    memory = MemoryLimitController(10 * 1024, clock=ManualClock())
    consumer = subscribed(memory, 10)
    upstream_queue(consumer).grow_to(10)
    consumer.publish(5, 3_000)
    consumer.deliver_all()
    assert memory.current_usage_fraction > 1
    assert memory.try_reserve(10) is not None


def test_clients_that_share_a_limit_shrink_together() -> None:
    """Upstream: ConsumerMemoryLimitTest.testMultiPulsarClientConsumerShareMemoryLimitController"""
    # Given
    memory = new_memory(300)
    first, second = subscribed(memory, 10), subscribed(memory, 10)
    for consumer in (first, second):
        consumer.publish(1, 100)
        consumer.deliver()
        consumer.take()
        assert not consumer.receive()
        assert consumer.queue.current_size == 2
    # When
    first.publish(2, 100)
    second.publish(1, 100)
    first.deliver_all()
    second.deliver_all()
    # Then
    assert memory.current_usage == 300
    assert first.queue.current_size == second.queue.current_size == 1
    upstream_queue(second).hint = True
    second.queue.found_nothing()
    assert second.queue.current_size == 1
    first.close()
    second.queue.found_nothing()
    assert second.queue.current_size == 2
    second.close()
    assert memory.current_usage == 0


# -- ConsumerImplTest -------------------------------------------------------------------------


def test_a_message_that_is_taken_at_once_was_in_the_queue() -> None:
    """Upstream: ConsumerImplTest.testUpdateAutoScaleReceiverQueueHintRaceWithConcurrentDrain"""
    # Given: nothing is queued when the queue learns of the arrival.
    consumer = subscribed(new_memory(), max_size=10)
    assert consumer.queued == 0
    # When
    consumer.queue.arrived(1, 10)
    consumer.queue.taken(1, 10)
    # Then
    assert upstream_queue(consumer).hint


def test_a_size_that_changes_grants_or_absorbs_permits() -> None:
    """Upstream: DynamicReceiverQueueSizeTest.testMaxReceiverQueueSize"""
    # Given
    consumer = subscribed(new_memory(), max_size=100)
    queue = upstream_queue(consumer)
    # When: growing grants the difference at once.
    queue.grow_to(10)
    assert consumer.granted == [1, 9]
    # Then: what is under way when it shrinks comes, and absorbs the permits.
    queue.shrink()
    assert queue.current_size == 5
    consumer.publish(20, 1)
    assert consumer.deliver_all() == 10
    for _ in range(6):
        consumer.take()
    assert consumer.granted == [1, 9]
    consumer.take()
    assert consumer.granted == [1, 9, 2]


def test_every_case_of_upstream_is_named() -> None:
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    tests = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    docstrings = [ast.get_docstring(test) or "" for test in tests]
    named = {name for text in docstrings for name in re.findall(r"Upstream: ([\w.]+)", text)}
    assert named == CASES
