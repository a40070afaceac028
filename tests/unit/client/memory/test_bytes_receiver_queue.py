"""Receiver queues sized by bytes: growth, permits and waits."""

import pytest

from client.exceptions import NotConnected
from client.memory.bytes_receiver_queue import UNKNOWN_ENTRY_BYTES, BytesReceiverQueue
from client.memory.receiver_queues import QueueOptions, ReceiverQueues
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from tests.support.client_memory.scripted_consumer import ScriptedConsumer
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle

MIB = 1 << 20


class Client:
    """A client with a limit, on a manual clock."""

    def __init__(self, limit_bytes: int = 64 * MIB, producer_share: float = 0.25) -> None:
        self.clock = ManualClock()
        self.memory = MemoryLimitController(
            limit_bytes, clock=self.clock, producer_share=producer_share
        )
        self.queues = ReceiverQueues(self.memory, self.clock)

    def subscribe(
        self, max_size: int = 1_000, batch: int = 0, *, until_acknowledged: bool = False
    ) -> ScriptedConsumer:
        consumer = ScriptedConsumer()
        options = QueueOptions(
            max_size=max_size,
            batch_receive_messages=batch,
            until_acknowledged=until_acknowledged,
        )
        consumer.queue = self.queues.opening(options)(consumer, max_size)
        assert isinstance(consumer.queue, BytesReceiverQueue)
        consumer.reattach()
        return consumer


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def consumer(client: Client) -> ScriptedConsumer:
    return client.subscribe()


async def receives(consumer: ScriptedConsumer) -> bool:
    """Receive, and have a question about the backlog answered."""
    found = consumer.receive()
    await settle()
    return found


def drain(consumer: ScriptedConsumer) -> None:
    """Deliver all entries, and take all messages."""
    consumer.deliver_all()
    while consumer.take():
        pass


async def grow(client: Client, consumer: ScriptedConsumer, size: int, entry_bytes: int) -> None:
    """Grow a queue to a size, with entries of a given size."""
    while consumer.queue.current_size < size:
        consumer.publish(1_000, entry_bytes)
        drain(consumer)
        await receives(consumer)
        client.clock.advance(1.0)
    consumer.pending.clear()


# -- growth -----------------------------------------------------------------------------------


async def test_a_queue_does_not_grow_while_receives_find_messages(client, consumer) -> None:
    assert consumer.granted == [1]
    consumer.publish(100, 10)
    for _ in range(50):
        consumer.deliver_all()
        assert consumer.receive()
        client.clock.advance(1.0)
        await settle()
    assert consumer.queue.current_size == 1
    assert consumer.questions == 0


async def test_a_queue_grows_when_a_receive_finds_nothing_and_more_is_pending(consumer) -> None:
    consumer.publish(1, 10)
    assert not await receives(consumer)
    assert consumer.questions == 1
    assert consumer.queue.current_size == 2
    assert consumer.queue.growths == 1
    assert consumer.permits == 2


async def test_a_queue_does_not_grow_when_nothing_is_pending(consumer: ScriptedConsumer) -> None:
    await receives(consumer)
    assert consumer.questions == 1
    assert consumer.queue.current_size == 1


async def test_the_backlog_is_queried_once_per_second_with_a_single_query_in_flight() -> None:
    client = Client()
    consumer = client.subscribe()
    for _ in range(10):
        consumer.receive()
    await settle()
    assert consumer.questions == 1
    client.clock.advance(0.99)
    await receives(consumer)
    assert consumer.questions == 1
    client.clock.advance(0.01)
    await receives(consumer)
    assert consumer.questions == 2


async def test_a_filled_queue_grows_repeatedly_while_a_backlog_answer_is_valid(consumer) -> None:
    consumer.publish(1_000, 10)
    await receives(consumer)
    for _ in range(20):
        drain(consumer)
        consumer.receive()
    assert consumer.questions == 1
    assert consumer.queue.current_size >= 256


async def test_a_queue_not_filled_since_its_growth_does_not_grow_without_a_new_answer() -> None:
    consumer = Client().subscribe()
    consumer.publish(1, 10)
    await receives(consumer)
    assert consumer.queue.current_size == 2
    consumer.deliver_all()
    assert consumer.receive()
    consumer.receive()
    assert consumer.queue.current_size == 2


async def test_a_failed_backlog_query_does_not_grow_the_queue(client, consumer) -> None:

    async def fail() -> bool:
        raise NotConnected("gone")

    consumer.more_is_pending = fail  # type: ignore[method-assign]
    await receives(consumer)
    assert consumer.queue.current_size == 1
    await client.queues.close()


async def test_a_queue_does_not_grow_at_three_quarters_of_the_memory_limit() -> None:
    client = Client(10 * MIB, producer_share=0.0)
    consumer = client.subscribe()
    consumer.answer = True
    client.memory.reserve_nowait(int(7.5 * MIB))
    await receives(consumer)
    assert consumer.questions == 0
    assert consumer.queue.current_size == 1


async def test_a_queue_grows_to_at_most_its_maximum_size(client: Client) -> None:
    consumer = client.subscribe(max_size=3)
    await grow(client, consumer, 3, 10)
    await receives(consumer)
    assert consumer.queue.current_size == 3


def test_a_queue_starts_large_enough_for_a_batch_receive() -> None:
    assert Client().subscribe(batch=5).queue.current_size == 8


async def test_only_the_topic_of_the_last_message_is_queried_among_several_topics(client) -> None:
    open_queue = client.queues.opening(QueueOptions(max_size=100))
    consumers = [ScriptedConsumer() for _ in range(3)]
    for consumer in consumers:
        consumer.queue = open_queue(consumer, 100)
        consumer.answer = True
        consumer.reattach()
    consumers[1].publish(1, 10)
    consumers[1].deliver()
    consumers[1].take()
    for consumer in consumers:
        consumer.receive()
    await settle()
    assert [consumer.questions for consumer in consumers] == [0, 1, 0]
    assert [consumer.queue.current_size for consumer in consumers] == [1, 2, 1]
    # The topic remains.
    consumers[1].close()
    client.clock.advance(1.0)
    for consumer in consumers[::2]:
        consumer.receive()
    await settle()
    # One question a second, whatever the number of topics.
    assert [consumer.questions for consumer in consumers] == [1, 1, 0]


# -- shrinking --------------------------------------------------------------------------------


async def test_every_queue_shrinks_repeatedly_while_memory_is_nearly_exhausted() -> None:
    client = Client(10 * MIB)
    first, second = client.subscribe(), client.subscribe()
    await grow(client, first, 64, 10)
    await grow(client, second, 16, 10)
    held = client.memory.reserve_nowait(int(9.6 * MIB))
    assert (first.queue.current_size, second.queue.current_size) == (32, 8)
    client.clock.advance(1.0)
    assert (first.queue.current_size, second.queue.current_size) == (16, 4)
    client.clock.advance(10.0)
    assert (first.queue.current_size, second.queue.current_size) == (1, 1)
    assert first.queue.shrinks == 6
    held.release()
    await client.queues.close()
    fired = client.memory.statistics().triggers_fired_total
    client.memory.reserve_nowait(int(9.6 * MIB))
    assert client.memory.statistics().triggers_fired_total == fired


async def test_messages_in_flight_at_a_shrink_arrive_and_absorb_permits(client, consumer) -> None:
    await grow(client, consumer, 8, 10)
    assert isinstance(consumer.queue, BytesReceiverQueue)
    consumer.queue.shrink()
    consumer.publish(20, 10)
    assert consumer.deliver_all() == 8
    consumer.granted.clear()
    for _ in range(5):
        consumer.take()
    assert consumer.granted == []
    consumer.take()
    assert consumer.granted == [2]


# -- permits ----------------------------------------------------------------------------------


async def test_permits_are_limited_by_the_free_bytes() -> None:
    # Three quarters of 4 MiB, entries of 100 KiB.
    client = Client(4 * MIB)
    consumer = client.subscribe()
    await grow(client, consumer, 1_000, 100 * 1024)
    consumer.publish(1_000, 100 * 1024)
    consumer.deliver_all()
    # At least half, the rest being left to other queues in halves.
    assert 3 * 1024 // 200 <= consumer.queued <= 3 * 1024 // 100
    assert client.memory.current_usage <= 3 * MIB


async def test_a_batch_takes_the_room_of_a_single_entry() -> None:
    # Batches of 100 messages in 100 KiB; a permit brings a whole batch.
    client = Client(4 * MIB)
    consumer = client.subscribe()
    while consumer.queue.current_size < 1_000:
        consumer.publish(20, 100 * 1024, 100)
        drain(consumer)
        await receives(consumer)
        client.clock.advance(1.0)
    # 1,000 messages are 1,000 KiB and fit.
    assert consumer.permits > 900


async def test_the_estimated_entry_size_rises_immediately_and_falls_slowly(consumer) -> None:
    queue = consumer.queue
    assert isinstance(queue, BytesReceiverQueue)
    assert queue.entry_bytes == UNKNOWN_ENTRY_BYTES
    sizes = []
    for size in (1_600, 3_200, 1_600, 1_600):
        consumer.publish(1, size)
        consumer.deliver()
        sizes.append(queue.entry_bytes)
        consumer.take()
    assert sizes == [1_600, 3_200, 3_100, 3_006]


def test_consumers_beyond_the_memory_limit_hold_no_permits_and_take_turns() -> None:
    # Capacity for three unknown entries.
    client = Client(4 * UNKNOWN_ENTRY_BYTES)
    consumers = [client.subscribe() for _ in range(5)]
    assert [consumer.permits for consumer in consumers] == [1, 1, 1, 0, 0]
    consumers[0].publish(1, UNKNOWN_ENTRY_BYTES)
    consumers[0].deliver()
    assert [consumer.permits for consumer in consumers] == [0, 1, 1, 0, 0]
    consumers[0].take()
    assert [consumer.permits for consumer in consumers] == [0, 1, 1, 1, 0]


async def test_every_consumer_with_a_message_receives_within_ten_seconds() -> None:
    # 1 byte for 200 consumers; the first 150 have no messages.
    client = Client(1)
    consumers = [client.subscribe() for _ in range(200)]
    for consumer in consumers:
        consumer.queue.found_nothing()
    for consumer in consumers[150:]:
        consumer.publish(1, 1_000)
    for _ in range(100):
        client.clock.advance(0.1)
        for consumer in consumers:
            consumer.deliver_all()
            consumer.take()
    assert [consumer.received for consumer in consumers] == [0] * 150 + [1] * 50


def test_a_paused_consumer_does_not_block_other_consumers() -> None:
    client = Client(1)
    holder, paused, other = (client.subscribe() for _ in range(3))
    paused.queue.pause()
    holder.close()
    assert (paused.permits, other.permits) == (0, 1)
    other.close()
    assert paused.permits == 0
    paused.queue.resume()
    assert paused.permits == 1


def test_without_a_memory_limit_the_queue_is_fixed() -> None:
    client = Client(0)
    consumer = ScriptedConsumer()
    consumer.queue = client.queues.opening(QueueOptions())(consumer, 1_000)
    consumer.reattach()
    assert consumer.granted == [1_000]


# -- counting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("until_acknowledged", [False, True])
def test_messages_count_towards_memory_until_taken_or_acknowledged(
    *, until_acknowledged: bool
) -> None:
    client = Client()
    consumer = client.subscribe(until_acknowledged=until_acknowledged)
    consumer.publish(2, 100)
    consumer.deliver()
    assert client.memory.current_usage == 100
    consumer.take()
    assert client.memory.current_usage == (100 if until_acknowledged else 0)
    consumer.deliver()
    consumer.reattach()
    assert client.memory.current_usage == (100 if until_acknowledged else 0)
    consumer.queue.acknowledged(100)
    assert client.memory.current_usage == 0
    consumer.close()
    consumer.queue.close()
    assert client.memory.statistics().reservations == 0


async def test_a_backlog_query_ends_when_its_consumer_closes(client, consumer) -> None:
    consumer.answer = True
    consumer.receive()
    consumer.close()
    await settle()
    assert consumer.questions == 0
    assert consumer.queue.current_size == 1
    await client.queues.close()
    assert consumer.granted == [1]
