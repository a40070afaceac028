"""A task that consumes a message and then produces one never waits for itself."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.memory.receiver_queues import QueueOptions, ReceiverQueuePolicy, ReceiverQueues
from limiter.client_memory.memory_limit_controller import (
    DEFAULT_PRODUCER_SHARE,
    MemoryLimitController,
)
from tests.support.client_memory.scripted_consumer import ScriptedConsumer
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.examples import many

MESSAGES = 12


async def produced(
    limit: int,
    sizes: tuple[int, int],
    policy: ReceiverQueuePolicy,
    producer_share: float = DEFAULT_PRODUCER_SHARE,
) -> int:
    """Return the number of messages produced by a task that consumes one before each.

    Args:
        limit: Of the client that consumes and produces.
        sizes: Of consumed and of produced messages.
        policy: Of its receiver queue, of 10 messages.
        producer_share: Of the limit.
    """
    clock = ManualClock()
    memory = MemoryLimitController(limit, clock=clock, producer_share=producer_share)
    consumer = ScriptedConsumer()
    queues = ReceiverQueues(memory, clock)
    consumer.queue = queues.opening(QueueOptions(policy, 10))(consumer, 10)
    consumer.publish(MESSAGES, sizes[0])
    consumer.reattach()
    done = 0

    async def work() -> None:
        nonlocal done
        while done < MESSAGES:
            while not consumer.receive():
                await settle()
            consumer.deliver_all()  # Prefetched before the task sends.
            reservation = await memory.reserve(sizes[1])
            done += 1
            # A receipt comes later, whatever the task does meanwhile.
            asyncio.get_running_loop().call_soon(reservation.release)

    task = asyncio.create_task(work())
    for _ in range(3 * MESSAGES):
        consumer.deliver_all()
        await settle()
        clock.advance(0.5)
    task.cancel()
    await asyncio.wait([task])
    consumer.close()
    await queues.close()
    return done


async def test_without_a_producer_share_the_task_waits_for_itself() -> None:
    """Receiving frees memory, and the receiver waits in ``send`` for it."""
    assert await produced(1, (10, 10), ReceiverQueuePolicy.FIXED, producer_share=0.0) < MESSAGES


@pytest.mark.parametrize("policy", list(ReceiverQueuePolicy))
@pytest.mark.parametrize("limit", [1, 100])
async def test_with_a_producer_share_the_task_does_not_wait_for_itself(policy, limit) -> None:
    assert await produced(limit, (10, 10), policy) == MESSAGES


@settings(max_examples=many(150), deadline=None)
@given(
    limit=st.integers(1, 64) | st.integers(1, 10_000_000),
    sizes=st.tuples(st.integers(1, 200_000), st.integers(1, 200_000)),
    policy=st.sampled_from(list(ReceiverQueuePolicy)),
    producer_share=st.sampled_from([DEFAULT_PRODUCER_SHARE, 0.01, 0.5, 1.0]),
)
def test_with_any_limit_and_sizes_the_task_does_not_wait_for_itself(
    limit, sizes, policy, producer_share
) -> None:
    assert asyncio.run(produced(limit, sizes, policy, producer_share)) == MESSAGES
