"""The receiver queues of all of a client's consumers, and the choice of their policy."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from client.memory.bytes_receiver_queue import BytesReceiverQueue, PendingQuestions
from client.memory.receiver_queue import CountedBytes, FixedReceiverQueue

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from client.memory.receiver_queue import Granting, ReceiverQueue
    from limiter.client_memory.memory_limit_controller import MemoryLimitController
    from limiter.clock import Clock

    OpenQueue: TypeAlias = Callable[[Granting, int], ReceiverQueue]
    """A function that creates a topic's queue with a maximum size; the caller must close it."""

SHRINK_AGAIN_SECONDS = 1.0
"""Seconds after which queues shrink again while memory is nearly used up."""


class ReceiverQueuePolicy(Enum):
    """The policies for the size of a consumer's receiver queue."""

    BYTES = "bytes"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The options for the receiver queues of one consumer.

    Attributes:
        policy: How the size of the queues is chosen.
        max_size: Maximum number of messages; 0 fetches one message for each that is waited for.
        batch_receive_messages: Maximum number of messages that ``batch_receive`` waits for; 0 if it
            is not used.
        until_acknowledged: Whether messages count as memory until they are acknowledged.
    """

    policy: ReceiverQueuePolicy = ReceiverQueuePolicy.BYTES
    max_size: int = 1_000
    batch_receive_messages: int = 0
    until_acknowledged: bool = False

    @property
    def min_size(self) -> int:
        """The initial size of a topic's queue in messages: 1, or enough for ``batch_receive``.

        While a batch is gathered, half of the permits less one may be held back.
        """
        size = min(1, self.max_size)
        if self.batch_receive_messages > 0:
            size = max(size, 2 * self.batch_receive_messages - 2)
        return size


class ReceiverQueues:
    """The receiver queues of a client, which shrink when its memory is nearly used up.

    Args:
        memory: The client's memory limit, which other clients may share.
        clock: The source of time.
    """

    def __init__(self, memory: MemoryLimitController, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self._by_bytes: dict[BytesReceiverQueue, None] = {}
        self._questions: set[asyncio.Task[None]] = set()
        self._trigger = memory.register_trigger(self._shrink, repeat_seconds=SHRINK_AGAIN_SECONDS)

    def _shrink(self) -> None:
        for queue in tuple(self._by_bytes):
            queue.shrink()

    async def close(self) -> None:
        """Cancel pending requests to brokers, after the consumers were closed.

        Further calls do nothing.
        """
        self._trigger.remove()
        for task in self._questions:
            task.cancel()
        if self._questions:
            await asyncio.wait(self._questions)

    def opening(self, options: QueueOptions) -> OpenQueue:
        """Return a function that creates the receiver queue for a topic of a consumer.

        Without a memory limit, or at size 0, the policy "bytes" acts like "fixed".
        """
        by_bytes = options.policy is ReceiverQueuePolicy.BYTES and self._memory.is_memory_limited
        if by_bytes and options.max_size:
            questions = PendingQuestions(self._clock, self._questions)
            return partial(self._queue_by_bytes, options, questions)
        return partial(self._fixed, options)

    def _counted(self, options: QueueOptions) -> CountedBytes:
        return CountedBytes(self._memory, until_acknowledged=options.until_acknowledged)

    def _fixed(self, options: QueueOptions, consumer: Granting, max_size: int) -> ReceiverQueue:
        return FixedReceiverQueue(consumer, self._counted(options), max_size)

    def _queue_by_bytes(
        self, options: QueueOptions, questions: PendingQuestions, consumer: Granting, max_size: int
    ) -> BytesReceiverQueue:
        queue = BytesReceiverQueue(
            consumer,
            self._counted(options),
            questions,
            min(options.min_size, max_size),
            max_size,
            self._forget,
        )
        self._by_bytes[queue] = None
        return queue

    def _forget(self, queue: BytesReceiverQueue) -> None:
        self._by_bytes.pop(queue, None)
