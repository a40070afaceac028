"""Entries of any size stay under the limit, except for unpredictable sizes.

A permit is granted for the entries' moving size and cannot be revoked. So usage exceeds the limit
by at most an entry of each consumer, and by the entries' excess over the expected size.
"""

import asyncio
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.memory.bytes_receiver_queue import BytesReceiverQueue
from client.memory.receiver_queues import QueueOptions, ReceiverQueues
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from limiter.client_memory.prefetch import Prefetch
from tests.support.client_memory.scripted_consumer import ScriptedConsumer
from tests.support.clocks.manual_clock import ManualClock
from tests.support.examples import many

SIZES = st.sampled_from([1, 10, 1_000, 20_000, 100_000, 500_000])
LIMITS = st.sampled_from([1, 1_000, 200_000, 4_000_000])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 2), st.lists(SIZES, max_size=12)),
        st.tuples(st.just("deliver"), st.integers(0, 2), st.just([])),
        st.tuples(st.just("receive"), st.integers(0, 2), st.lists(st.none(), max_size=12)),
        st.tuples(st.just("wait"), st.just(0), st.just([])),
    ),
    min_size=20,
    max_size=80,
)


class Uneven(ScriptedConsumer):
    """Records each permit's expected size and each message's actual size."""

    def __init__(self) -> None:
        super().__init__()
        self.expected: deque[int] = deque()
        self.excess: deque[int] = deque()
        self.largest = 0

    def grant(self, permits: int) -> None:
        super().grant(permits)
        self.expected.extend([self.moving_size] * permits)

    @property
    def moving_size(self) -> int:
        assert isinstance(self.queue, BytesReceiverQueue)
        return self.queue._message_bytes

    def deliver(self) -> bool:
        size = self.pending[0][1] if self.pending else 0
        # First: arrivals permit further grants.
        if self.permits > 0 and self.pending:
            self.largest = max(self.largest, size)
            self.excess.append(max(0, size - self.expected.popleft()))
        if not super().deliver():
            return False
        # The promise for the rest falls with the moving size.
        self.expected = deque(min(one, self.moving_size) for one in self.expected)
        return True

    def take(self) -> bool:
        if not super().take():
            return False
        self.excess.popleft()
        return True


async def run(  # noqa: C901 - a table of steps
    memory: MemoryLimitController, clock: ManualClock, steps: list[tuple[str, int, list[int]]]
) -> None:
    """Take the steps and compare usage with the bound after each."""
    queues = ReceiverQueues(memory, clock)
    consumers = [Uneven() for _ in range(3)]
    for consumer in consumers:
        consumer.queue = queues.opening(QueueOptions(max_size=50))(consumer, 50)
        consumer.reattach()
    for name, index, sizes in steps:
        consumer = consumers[index]
        if name == "publish":
            consumer.pending.extend((1, size) for size in sizes)
        elif name == "deliver":
            consumer.deliver_all()
        elif name == "receive":
            for _ in sizes:
                consumer.receive()
            for _ in range(3):
                await asyncio.sleep(0)
        else:
            clock.advance(1)
        known = sum(one.largest for one in consumers)
        unknown = sum(sum(one.excess) for one in consumers)
        assert memory.current_usage == sum(one.queued_bytes for one in consumers)
        assert memory.current_usage <= memory.statistics().limit_bytes + known + unknown
    for consumer in consumers:
        consumer.close()
    await queues.close()
    assert memory.current_usage == memory.statistics().reservations == 0


@given(limit=LIMITS, steps=STEPS)
@settings(max_examples=many(100), deadline=None)
def test_usage_exceeds_the_limit_only_by_unpredictable_entry_sizes(limit, steps) -> None:
    clock = ManualClock()
    asyncio.run(run(MemoryLimitController(limit, clock=clock), clock, steps))


class HasRoomForAll(Prefetch):
    def _room(self) -> int:
        return 1 << 30


def test_the_usage_check_detects_a_memory_that_grants_without_a_bound() -> None:
    steps: list[tuple[str, int, list[int]]] = []
    for _ in range(12):
        steps += [("publish", 0, [100_000] * 10), ("deliver", 0, []), ("receive", 0, [0] * 10)]
        steps += [("wait", 0, [])]
    steps += [("publish", 0, [100_000] * 50), ("deliver", 0, [])]
    clock = ManualClock()
    memory = MemoryLimitController(1_000_000, clock=clock)
    memory.prefetch.__class__ = HasRoomForAll
    with pytest.raises(AssertionError):
        asyncio.run(run(memory, clock, steps))
