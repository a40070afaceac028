"""The producer of a partitioned topic, made of one producer for each partition."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from client.exceptions import AlreadyClosed
from client.messages.enums import ProducerAccessMode
from client.patience import in_time
from client.producers.routing import Router
from client.producers.statistics import ProducerStatistics
from client.producers.topic_producer import TopicProducer
from limiter.clock import clock_sleep
from limiter.tasks import BackgroundTasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from client.context import ClientContext
    from client.producers.options import ProducerOptions
    from client.producers.sending.pending_message import PendingMessage

logger = logging.getLogger(__name__)

PARTITIONS_SECONDS = 60.0
"""Interval in seconds at which new partitions are looked up (upstream: autoUpdatePartitions)."""


class PartitionedProducer:
    """A producer of a partitioned topic, which passes each message to a partition's producer.

    Args:
        context: State that the client shares with all its producers and consumers.
        topic: Full name, without a partition's suffix.
        partitions: Number of partitions.
        options: Producer options.

    Attributes:
        topic: As given.

    Source: upstream PartitionedProducerImpl.
    """

    def __init__(
        self, context: ClientContext, topic: str, partitions: int, options: ProducerOptions
    ) -> None:
        self._context = context
        self.topic = topic
        self._partitions = partitions
        self._options = options_of_each(options, partitions)
        self._router = Router(options, topic, context.clock)
        self._started: dict[int, TopicProducer] = {}
        self._tasks = BackgroundTasks()
        self._closed = False

    async def open(self, due: float) -> None:
        """Attach to all partitions, or give up at ``due``; with lazy start, attach to none yet.

        Raises:
            PulsarException: A partition refused; no partition is attached.
        """
        if not self._is_lazy:
            await self._open_all(range(self._partitions), due)
        self._tasks.start(self._watch_partitions())

    @property
    def _is_lazy(self) -> bool:
        """True if partitions are attached with their first message.

        Exclusive access needs all partitions at once, and so excludes a lazy start.
        """
        shared = self._options.access_mode is ProducerAccessMode.Shared
        return self._options.lazy_start_partitioned_producers and shared

    async def _open_all(self, indexes: range, due: float) -> None:
        opened = {index: self._producer(index) for index in indexes}
        try:
            async with asyncio.TaskGroup() as tasks:
                for producer in opened.values():
                    tasks.create_task(producer.open(due))
        except BaseException as errors:
            await in_time(self._context.clock, due, _close_all(opened.values()))
            if isinstance(errors, BaseExceptionGroup):
                raise errors.exceptions[0] from None
            raise
        self._started.update(opened)

    def _producer(self, index: int) -> TopicProducer:
        return TopicProducer(self._context, f"{self.topic}-partition-{index}", self._options)

    def _start(self, index: int) -> TopicProducer:
        """Start attaching to a partition; messages wait in its producer's queue meanwhile."""
        producer = self._started[index] = self._producer(index)
        self._tasks.start(self._open_one(index, producer))
        return producer

    async def _open_one(self, index: int, producer: TopicProducer) -> None:
        try:
            await producer.open(self._context.due())
        except Exception as error:  # noqa: BLE001 - the program's schema may raise anything
            # Its messages have failed, too; the next message retries.
            logger.warning("%s was not opened: %s", producer.topic, error)
            if self._started.get(index) is producer:
                del self._started[index]
            await producer.close()

    async def _watch_partitions(self) -> None:
        """Look up new partitions periodically, and attach to them."""
        while True:
            await clock_sleep(self._context.clock, PARTITIONS_SECONDS)
            try:
                partitions = await self._context.cluster.partitions(self.topic, auto_create=False)
                if partitions > self._partitions:
                    if not self._is_lazy:
                        await self._open_all(
                            range(self._partitions, partitions), self._context.due()
                        )
                    self._partitions = partitions
            except Exception as error:  # noqa: BLE001 - the next lookup may succeed
                logger.info("%s: its partitions could not be looked up: %s", self.topic, error)

    # -- the program's side -------------------------------------------------------------------

    def submit(self, message: PendingMessage) -> None:
        """Choose a message's partition, and pass it to that partition's producer."""
        self._check_open()
        index = message.partition = self._router.partition(message, self._partitions)
        (self._started.get(index) or self._start(index)).submit(message)

    def withdraw(self, message: PendingMessage) -> None:
        """Remove the message of a cancelled ``send``, unless it was sent already."""
        if (producer := self._started.get(message.partition)) is not None:
            producer.withdraw(message)

    async def flush(self) -> None:
        """Wait until all messages submitted earlier have a receipt; raise their first error."""
        self._check_open()
        flushing = (producer.flush() for producer in self._started.values())
        for error in await asyncio.gather(*flushing, return_exceptions=True):
            if error is not None:
                raise error

    def _check_open(self) -> None:
        if self._closed:
            raise AlreadyClosed(f"the producer of {self.topic} was closed")

    async def close(self) -> None:
        """Close the producers of all partitions; further calls do nothing."""
        self._closed = True
        self._tasks.cancel()
        await _close_all(self._started.values(), self._tasks.finished())

    @property
    def name(self) -> str:
        """The name of the first attached partition's producer; "" if none is attached yet."""
        return next((one.name for _, one in sorted(self._started.items())), "")

    @property
    def last_sequence_id(self) -> int:
        """The largest sequence id acknowledged in any partition, or -1."""
        return max((one.last_sequence_id for one in self._started.values()), default=-1)

    @property
    def is_connected(self) -> bool:
        """True if all producers started so far are attached to their brokers."""
        return all(one.is_connected for one in self._started.values())

    def statistics(self) -> ProducerStatistics:
        """Return the current statistics, summed over the partitions."""
        start = ProducerStatistics(self.topic, self.name, is_connected=self.is_connected)
        return reduce(
            ProducerStatistics.plus,
            (one.statistics() for one in self._started.values()),
            start,
        )


async def _close_all(producers: Iterable[TopicProducer], *others: Awaitable[object]) -> None:
    """Close producers concurrently, and wait for tasks that were cancelled."""
    every = tuple(producers)
    try:
        closing = (producer.close() for producer in every)
        await asyncio.gather(*others, *closing, return_exceptions=True)
    finally:
        for producer in every:
            producer.end()  # Cancelled early, a close may not have started.


def options_of_each(options: ProducerOptions, partitions: int) -> ProducerOptions:
    """Return the options for the producer of a single partition.

    The queue slots are divided evenly between the partitions.

    Source: upstream PartitionedProducerImpl.
    """
    across = options.max_pending_messages_across_partitions
    if not across or not options.max_pending_messages:
        return options
    share = max(1, across // partitions)
    return replace(options, max_pending_messages=min(options.max_pending_messages, share))
