"""The receiver queues of one client: which there are, and which kind each consumer gets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from client.memory.bytes_receiver_queue import BytesReceiverQueue
from client.memory.counted_bytes import CountedBytes
from client.memory.fixed_receiver_queue import FixedReceiverQueue
from client.memory.pending_questions import PendingQuestions
from client.memory.topics_queue import EachTopicsQueue
from client.memory.upstream_receiver_queue import UpstreamReceiverQueue
from client.memory.upstream_topics_queue import EmptiedQueue, UpstreamTopicsQueue

if TYPE_CHECKING:
    from client.memory.receiver_queue import Granting, ReceiverQueue, TopicsQueue
    from limiter.client_memory.memory_limit_controller import MemoryLimitController
    from limiter.clock import Clock

SHRINK_AGAIN_SECONDS = 1.0
"""Between two shrinks of the queues by bytes, while memory is nearly used up."""


class ReceiverQueuePolicy(Enum):
    """A policy of the size of a consumer's receiver queue."""

    BYTES = "bytes"
    PULSAR = "pulsar"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The options of a consumer's receiver queues.

    Attributes:
        policy: How their size is decided.
        max_size: The most messages they may have; 0 for one whenever the application asks.
        batch_receive_messages: How many messages ``batch_receive`` waits for at most; 0 if never.
        until_acknowledged: Count messages until they are acknowledged, not until they are taken.
    """

    policy: ReceiverQueuePolicy = ReceiverQueuePolicy.BYTES
    max_size: int = 1_000
    batch_receive_messages: int = 0
    until_acknowledged: bool = False

    @property
    def min_size(self) -> int:
        """The first size of one topic's queue: 1, or what ``batch_receive`` needs.

        While a batch is gathered, half of the permits less one may be held back.
        """
        size = min(1, self.max_size)
        if self.batch_receive_messages > 0:
            size = max(size, 2 * self.batch_receive_messages - 2)
        return size


class ReceiverQueues:
    """The receiver queues of one client, and who shrinks when its memory is nearly used up.

    Args:
        memory: The client's limit; several clients may share one.
        clock: Where time comes from.
    """

    def __init__(self, memory: MemoryLimitController, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self._by_bytes: dict[BytesReceiverQueue, None] = {}
        self._as_upstream: dict[UpstreamReceiverQueue | UpstreamTopicsQueue, None] = {}
        self._questions: set[asyncio.Task[None]] = set()
        again = SHRINK_AGAIN_SECONDS
        self._triggers = (
            memory.register_trigger(self._shrink_by_bytes, repeat_seconds=again),
            memory.register_trigger(self._shrink_as_upstream),
        )

    def _shrink_by_bytes(self) -> None:
        for queue in tuple(self._by_bytes):
            queue.shrink()

    def _shrink_as_upstream(self) -> None:
        for queue in tuple(self._as_upstream):
            queue.shrink()

    async def close(self) -> None:
        """End what is under way; the consumers are closed already. Once more is harmless."""
        for trigger in self._triggers:
            trigger.remove()
        for task in self._questions:
            task.cancel()
        if self._questions:
            await asyncio.wait(self._questions)

    def open(self, consumer: Granting, options: QueueOptions) -> ReceiverQueue:
        """Return the queue of a consumer of one topic; its ``close`` is the caller's duty.

        By bytes means fixed without a limit, and for a size of 0.
        """
        if options.max_size and options.policy is ReceiverQueuePolicy.PULSAR:
            return self._upstream(options, consumer)
        if self._goes_by_bytes(options):
            questions = PendingQuestions(self._clock, self._questions)
            return self._by_bytes_queue(options, questions, consumer, options.max_size)
        return self._fixed(options, consumer, options.max_size)

    def open_topics(self, options: QueueOptions, *, single: bool = False) -> TopicsQueue:
        """Return the queues of a consumer of several topics; ``close`` is the caller's duty.

        With ``single`` there will be one topic, whose queue is that of ``open``.
        """
        if single:
            return EachTopicsQueue(
                lambda consumer, size: self.open(consumer, replace(options, max_size=size))
            )
        if options.max_size and options.policy is ReceiverQueuePolicy.PULSAR:
            make = partial(self._emptied, options)
            number = options.batch_receive_messages
            topics = UpstreamTopicsQueue(self._memory, make, number, options.max_size, self._forget)
            self._as_upstream[topics] = None
            return topics
        if self._goes_by_bytes(options):
            questions = PendingQuestions(self._clock, self._questions)
            return EachTopicsQueue(partial(self._by_bytes_queue, options, questions))
        return EachTopicsQueue(partial(self._fixed, options))

    # -- one kind each ------------------------------------------------------------------------

    def _goes_by_bytes(self, options: QueueOptions) -> bool:
        if not options.max_size or not self._memory.is_memory_limited:
            return False
        return options.policy is ReceiverQueuePolicy.BYTES

    def _counted(self, options: QueueOptions) -> CountedBytes:
        return CountedBytes(self._memory, until_acknowledged=options.until_acknowledged)

    def _forget(
        self, queue: BytesReceiverQueue | UpstreamReceiverQueue | UpstreamTopicsQueue
    ) -> None:
        if isinstance(queue, BytesReceiverQueue):
            self._by_bytes.pop(queue, None)
        else:
            self._as_upstream.pop(queue, None)

    def _fixed(self, options: QueueOptions, consumer: Granting, max_size: int) -> ReceiverQueue:
        return FixedReceiverQueue(consumer, self._counted(options), max_size)

    def _upstream(self, options: QueueOptions, consumer: Granting) -> ReceiverQueue:
        queue = UpstreamReceiverQueue(
            consumer,
            self._counted(options),
            options.min_size,
            options.max_size,
            self._forget,
        )
        self._as_upstream[queue] = None
        return queue

    def _emptied(
        self, options: QueueOptions, common: UpstreamTopicsQueue, consumer: Granting, max_size: int
    ) -> EmptiedQueue:
        counted = self._counted(options)
        queue = EmptiedQueue(common, consumer, counted, max_size, self._forget)
        self._as_upstream[queue] = None
        return queue

    def _by_bytes_queue(
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


def receiver_queue_for(
    queues: ReceiverQueues,
    consumer: Granting,
    *,
    policy: ReceiverQueuePolicy = ReceiverQueuePolicy.BYTES,
    max_size: int,
    batch_receive_messages: int = 0,
    until_acknowledged: bool = False,
) -> ReceiverQueue:
    """Return the queue of a consumer of one topic; its ``close`` is the caller's duty.

    By bytes means fixed without a limit, and for a size of 0.

    Args:
        queues: The client's.
        consumer: Whose queue it is.
        policy: How large it is.
        max_size: The most messages it may have; 0 for one whenever the application asks.
        batch_receive_messages: How many messages ``batch_receive`` waits for at most; 0 if never.
        until_acknowledged: Count messages until they are acknowledged, not until they are taken.
    """
    options = QueueOptions(policy, max_size, batch_receive_messages, until_acknowledged)
    return queues.open(consumer, options)


def topics_queue_for(
    queues: ReceiverQueues,
    *,
    policy: ReceiverQueuePolicy = ReceiverQueuePolicy.BYTES,
    max_size: int,
    batch_receive_messages: int = 0,
    until_acknowledged: bool = False,
) -> TopicsQueue:
    """Return the queues of a consumer of several topics; arguments as for one."""
    options = QueueOptions(policy, max_size, batch_receive_messages, until_acknowledged)
    return queues.open_topics(options)
