"""Queues of fixed size, and of size zero."""

import pytest

from client.memory.receiver_queues import QueueOptions, ReceiverQueuePolicy, ReceiverQueues
from limiter.client_memory.memory_limit_controller import (
    DEFAULT_PRODUCER_SHARE,
    MemoryLimitController,
)
from tests.support.client_memory.scripted_consumer import ScriptedConsumer
from tests.support.clocks.manual_clock import ManualClock


def subscribed(
    size: int, producer_share: float = DEFAULT_PRODUCER_SHARE
) -> tuple[MemoryLimitController, ScriptedConsumer]:
    memory = MemoryLimitController(1_000, clock=ManualClock(), producer_share=producer_share)
    queues = ReceiverQueues(memory, ManualClock())
    consumer = ScriptedConsumer()
    consumer.queue = queues.opening(QueueOptions(ReceiverQueuePolicy.FIXED, size))(consumer, size)
    consumer.reattach()
    return memory, consumer


def test_permits_are_granted_when_half_of_the_queue_is_free() -> None:
    _, consumer = subscribed(10)
    assert consumer.granted == [10]
    consumer.publish(100, 1)
    consumer.deliver_all()
    for _ in range(4):
        consumer.take()
    assert consumer.granted == [10]
    consumer.take()
    assert consumer.granted == [10, 5]


def test_without_a_queue_each_message_is_requested_singly() -> None:
    memory, consumer = subscribed(0)
    assert consumer.granted == []
    consumer.publish(2, 100)
    assert not consumer.receive()
    assert consumer.deliver_all() == 1
    assert memory.current_usage == 100
    assert consumer.receive()
    assert consumer.granted == [1]


def test_without_a_queue_a_permit_is_granted_for_each_waiting_receive() -> None:
    _, consumer = subscribed(0)
    for consumer.waiting in range(3):
        consumer.receive()
    consumer.waiting = 3
    assert consumer.permits == 3
    consumer.reattach()
    assert consumer.permits == 3


def test_without_a_queue_a_permit_is_granted_again_after_a_whole_batch_is_taken() -> None:
    _, consumer = subscribed(0)
    consumer.publish(1, 100, 10)
    consumer.receive()
    consumer.deliver_all()
    while consumer.receive():
        assert consumer.permits <= 0
    assert consumer.permits == 1
    consumer.receive()
    assert consumer.permits == 1


def test_without_a_queue_a_dropped_message_returns_its_permit_to_the_waiting_receive() -> None:
    _, consumer = subscribed(0)
    consumer.publish(1, 100)
    consumer.receive()
    consumer.waiting = 1
    consumer.deliver_all()
    # When no receiver gets the message
    consumer.take()
    assert consumer.permits == 1


def test_without_a_queue_no_permit_is_granted_while_paused() -> None:
    _, consumer = subscribed(0)
    consumer.queue.pause()
    consumer.receive()
    consumer.waiting = 1
    granted = consumer.permits
    consumer.queue.resume()
    assert (granted, consumer.permits) == (0, 1)


def test_a_paused_queue_grants_permits_when_resumed() -> None:
    _, consumer = subscribed(2)
    consumer.publish(10, 1)
    consumer.deliver_all()
    consumer.queue.pause()
    consumer.take()
    assert consumer.granted == [2]
    consumer.queue.resume()
    assert consumer.granted == [2, 1]


def test_queued_messages_count_towards_memory_until_the_queue_closes() -> None:
    memory, consumer = subscribed(2)
    consumer.publish(2, 100)
    consumer.deliver_all()
    assert memory.current_usage == 200
    assert consumer.queue.current_size == 2
    consumer.close()
    assert memory.current_usage == memory.statistics().reservations == 0


@pytest.mark.parametrize("share", [0.0, DEFAULT_PRODUCER_SHARE])
def test_a_producer_share_prevents_prefetch_from_starving_producers(share: float) -> None:
    memory, consumer = subscribed(10, share)
    consumer.publish(5, 300)
    consumer.deliver_all()
    assert memory.current_usage_fraction > 1
    assert (memory.try_reserve(10) is not None) is (share > 0)
