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


def test_permits_come_free_in_halves() -> None:
    _, consumer = subscribed(10)
    assert consumer.granted == [10]
    consumer.publish(100, 1)
    consumer.deliver_all()
    for _ in range(4):
        consumer.take()
    assert consumer.granted == [10]
    consumer.take()
    assert consumer.granted == [10, 5]


def test_without_a_queue_each_message_is_asked_for() -> None:
    memory, consumer = subscribed(0)
    assert consumer.granted == []
    consumer.publish(2, 100)
    assert not consumer.receive()
    assert consumer.deliver_all() == 1
    assert memory.current_usage == 100
    assert consumer.receive()
    assert consumer.granted == [1]


def test_without_a_queue_as_many_are_granted_as_wait() -> None:
    _, consumer = subscribed(0)
    for consumer.waiting in range(3):
        consumer.receive()
    consumer.waiting = 3
    assert consumer.permits == 3
    consumer.reattach()
    assert consumer.permits == 3


def test_without_a_queue_a_batch_is_granted_again_when_it_is_taken() -> None:
    _, consumer = subscribed(0)
    consumer.publish(1, 100, 10)
    consumer.receive()
    consumer.deliver_all()
    while consumer.receive():
        assert consumer.permits <= 0
    assert consumer.permits == 1
    consumer.receive()
    assert consumer.permits == 1


def test_without_a_queue_what_is_dropped_is_granted_again_to_who_waits() -> None:
    _, consumer = subscribed(0)
    consumer.publish(1, 100)
    consumer.receive()
    consumer.waiting = 1
    consumer.deliver_all()
    # When no receiver gets the message
    consumer.take()
    assert consumer.permits == 1


def test_without_a_queue_nothing_is_granted_until_it_goes_on() -> None:
    _, consumer = subscribed(0)
    consumer.queue.pause()
    consumer.receive()
    consumer.waiting = 1
    granted = consumer.permits
    consumer.queue.resume()
    assert (granted, consumer.permits) == (0, 1)


def test_a_paused_queue_grants_when_it_goes_on() -> None:
    _, consumer = subscribed(2)
    consumer.publish(10, 1)
    consumer.deliver_all()
    consumer.queue.pause()
    consumer.take()
    assert consumer.granted == [2]
    consumer.queue.resume()
    assert consumer.granted == [2, 1]


def test_what_it_holds_is_counted_until_it_closes() -> None:
    memory, consumer = subscribed(2)
    consumer.publish(2, 100)
    consumer.deliver_all()
    assert memory.current_usage == 200
    assert consumer.queue.current_size == 2
    consumer.close()
    assert memory.current_usage == memory.statistics().reservations == 0


@pytest.mark.parametrize("share", [0.0, DEFAULT_PRODUCER_SHARE])
def test_a_share_for_producers_keeps_prefetch_from_starving_them(share: float) -> None:
    memory, consumer = subscribed(10, share)
    consumer.publish(5, 300)
    consumer.deliver_all()
    assert memory.current_usage_fraction > 1
    assert (memory.try_reserve(10) is not None) is (share > 0)
