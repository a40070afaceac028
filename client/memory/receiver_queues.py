"""The receiver queues of one client: which there are, and which kind each consumer gets."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from client.memory.counted_bytes import CountedBytes
from client.memory.fixed_receiver_queue import FixedReceiverQueue
from client.memory.topics_queue import EachTopicsQueue
from client.memory.upstream_receiver_queue import UpstreamReceiverQueue, min_receiver_queue_size

if TYPE_CHECKING:
    from client.memory.receiver_queue import Granting, ReceiverQueue, TopicsQueue
    from limiter.client_memory.memory_limit_controller import MemoryLimitController
    from limiter.clock import Clock


class ReceiverQueuePolicy(Enum):
    """How large a consumer's receiver queue is."""

    BYTES = "bytes"
    PULSAR = "pulsar"
    FIXED = "fixed"


class ReceiverQueues:
    """The receiver queues of one client.

    Args:
        memory: The client's limit; several clients may share one.
        clock: Where time comes from.
    """

    def __init__(self, memory: MemoryLimitController, clock: Clock) -> None:
        self.memory = memory
        self.clock = clock

    async def close(self) -> None:
        """Forget everything; the consumers are closed already."""


def receiver_queue_for(
    queues: ReceiverQueues,
    consumer: Granting,
    *,
    policy: ReceiverQueuePolicy = ReceiverQueuePolicy.BYTES,
    max_size: int,
    batch_receive_messages: int = 0,
    until_acknowledged: bool = False,
) -> ReceiverQueue:
    """Return the receiver queue of a topic's consumer; its ``close`` is the caller's duty.

    Without a limit, and of size 0, it is a fixed one, unless upstream's policy is asked for.

    Args:
        queues: The client's.
        consumer: Whose queue it is.
        policy: How large it is.
        max_size: The most messages it may have; 0 for one whenever the application asks.
        batch_receive_messages: How many messages ``batch_receive`` waits for at most; 0 if never.
        until_acknowledged: Count messages until they are acknowledged, not until they are taken.
    """
    counted = CountedBytes(queues.memory, until_acknowledged=until_acknowledged)
    if max_size and policy is ReceiverQueuePolicy.PULSAR:
        min_size = min_receiver_queue_size(max_size, batch_receive_messages)
        return UpstreamReceiverQueue(consumer, queues.memory, counted, min_size, max_size)
    return FixedReceiverQueue(consumer, max_size, counted)


def topics_queue_for(
    queues: ReceiverQueues,
    *,
    policy: ReceiverQueuePolicy = ReceiverQueuePolicy.BYTES,
    max_size: int,
    batch_receive_messages: int = 0,
    until_acknowledged: bool = False,
) -> TopicsQueue:
    """Return the receiver queues of a consumer of several topics; arguments as for one."""
    return EachTopicsQueue(
        lambda consumer, size: receiver_queue_for(
            queues,
            consumer,
            policy=policy,
            max_size=size,
            batch_receive_messages=batch_receive_messages,
            until_acknowledged=until_acknowledged,
        )
    )
