"""Several topics' queues that are emptied into one, as upstream has it."""

from __future__ import annotations

from client.memory.receiver_queues import ReceiverQueuePolicy, ReceiverQueues, topics_queue_for
from client.memory.upstream_topics_queue import UpstreamTopicsQueue
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from tests.support.client_memory.scripted_consumer import ScriptedConsumer
from tests.support.clocks.manual_clock import ManualClock


class Topics:
    """A consumer of several topics."""

    def __init__(self, number: int, max_size: int) -> None:
        self.memory = MemoryLimitController(10_000, clock=ManualClock())
        self.queues = ReceiverQueues(self.memory, ManualClock())
        common = topics_queue_for(self.queues, policy=ReceiverQueuePolicy.PULSAR, max_size=max_size)
        assert isinstance(common, UpstreamTopicsQueue)
        self.common = common
        self.topics = [ScriptedConsumer() for _ in range(number)]
        for topic in self.topics:
            topic.queue = common.open(topic, max_size)
            topic.reattach()


def test_a_topic_is_parked_while_the_common_queue_is_full() -> None:
    # Given
    topics = Topics(2, 100)
    busy, other = topics.topics
    busy.publish(50, 1)
    # When
    arrived = busy.deliver_all()
    # Then: two fill the common queue, and what its own permits brought on stays with the topic.
    assert topics.common.current_size == 2
    assert busy.queued == arrived > 2
    assert busy.permits == 0
    # When: it is parked until the common queue is half empty.
    busy.take()
    # Then
    assert busy.permits > 0
    assert other.permits == 1


def test_what_a_topic_had_is_not_counted_when_it_is_left() -> None:
    # Given
    topics = Topics(2, 100)
    left, stays = topics.topics
    left.publish(50, 100)
    left.deliver_all()
    assert topics.memory.current_usage
    # When
    left.close()
    # Then
    assert topics.memory.current_usage == 0
    stays.publish(1, 100)
    stays.deliver_all()
    assert stays.permits > 0


def test_a_topic_that_is_subscribed_to_again_begins_anew() -> None:
    # Given
    topics = Topics(1, 100)
    topic = topics.topics[0]
    topic.publish(10, 100)
    topic.deliver_all()
    # When
    topic.reattach()
    # Then
    assert topics.memory.current_usage == 0
    assert topic.deliver_all() > 0
    while topic.take():
        topic.deliver_all()
    assert topic.received == 10
    assert topics.memory.current_usage == 0


def test_a_common_queue_shrinks_when_memory_is_nearly_used_up() -> None:
    # Given
    topics = Topics(1, 100)
    topic = topics.topics[0]
    topic.publish(1, 1)
    topic.deliver()
    topic.take()
    topic.receive()
    assert topics.common.current_size == 2
    # When
    topics.memory.reserve_nowait(9_500)
    # Then
    assert topics.common.current_size == 1
    assert topics.common.shrinks == 1
    topics.common.close()
    topics.common.close()
