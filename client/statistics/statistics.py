"""Statistics of a client's memory, producers and consumers, and their periodic logging."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from client.consumers.statistics import ConsumerStatistics
from client.producers.statistics import ProducerStatistics
from limiter.clock import clock_sleep
from limiter.tasks import ended

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from client.context import Part
    from limiter.client_memory.memory_limit_controller import MemoryLimitController
    from limiter.client_memory.reservation import MemoryLimitStatistics
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0
"""Longest time in seconds for which another thread waits for the client's event loop."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A producer or consumer with calls that wait, and what they wait for.

    Attributes:
        who: The producer or consumer.
        what: What the calls wait for.
        count: Number of waiting sends or receives; 1 for any other operation.
    """

    who: str
    what: str
    count: int

    def __str__(self) -> str:
        return f"{self.who} waits for {self.what} ({self.count})"


@dataclass(frozen=True, slots=True)
class ClientStatistics:
    """The current statistics of a client.

    Attributes:
        memory: The memory limit, with the usage of all clients that share it.
        producers: Statistics of the producers.
        consumers: Statistics of the consumers and readers, including those of table views.
    """

    memory: MemoryLimitStatistics
    producers: tuple[ProducerStatistics, ...]
    consumers: tuple[ConsumerStatistics, ...]

    def waiting(self) -> Iterator[Waiting]:
        """Yield the producers and then the consumers that have waiting calls."""
        for producer in self.producers:
            yield from _producer_waiting(producer)
        for consumer in self.consumers:
            yield from _consumer_waiting(consumer)


def _producer_waiting(producer: ProducerStatistics) -> Iterator[Waiting]:
    who = f"producer {producer.producer_name!r} of {producer.topic}"
    if not producer.is_connected:
        yield Waiting(who, "a connection", 1)
    if producer.waiting_sends:
        yield Waiting(who, "a slot in its queue, or memory", producer.waiting_sends)
    if producer.pending_messages:
        yield Waiting(who, "receipts", producer.pending_messages)


def _consumer_waiting(consumer: ConsumerStatistics) -> Iterator[Waiting]:
    who = f"consumer {consumer.consumer_name!r} of {consumer.subscription!r}"
    if consumer.waiting:
        yield Waiting(who, "messages", consumer.waiting)
    for topic in consumer.topics:
        if not topic.connected:
            yield Waiting(f"{who} on {topic.topic}", "a connection", 1)


def client_statistics(parts: Iterable[Part], memory: MemoryLimitController) -> ClientStatistics:
    """Return the current statistics of producers, consumers and memory."""
    found = [part.statistics() for part in tuple(parts)]
    return ClientStatistics(
        memory=memory.statistics(),
        producers=tuple(one for one in found if isinstance(one, ProducerStatistics)),
        consumers=tuple(one for one in found if isinstance(one, ConsumerStatistics)),
    )


class HasStatistics(Protocol):
    """Interface (typing Protocol) of a client whose statistics are exported as metrics."""

    def statistics(self) -> ClientStatistics:
        """Return the current statistics of the client."""


_names: WeakKeyDictionary[HasStatistics, str] = WeakKeyDictionary()
_numbers = count(1)


def client_name(client: HasStatistics) -> str:
    """Return a name for a client: ``client-1`` and so on, counted in this process."""
    if client not in _names:
        _names[client] = f"client-{next(_numbers)}"
    return _names[client]


class StatisticsReader:
    """A reader of a client's statistics that any thread may use.

    Create it in the client's event loop. Metrics collectors have threads of their own; a client
    belongs to its loop's thread.
    """

    def __init__(self, client: HasStatistics) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def read(self) -> ClientStatistics:
        """Return the client's current statistics, read in its event loop.

        Raises:
            TimeoutError: The event loop has ended, or did not answer within some seconds.
        """
        if threading.get_ident() == self._thread:
            return self._client.statistics()
        answer: Future[ClientStatistics] = Future()

        def ask() -> None:
            try:
                answer.set_result(self._client.statistics())
            except Exception as error:  # noqa: BLE001 - raised in the caller
                answer.set_exception(error)

        try:
            self._loop.call_soon_threadsafe(ask)
        except RuntimeError:
            raise TimeoutError("the client's loop has ended") from None
        return answer.result(ANSWER_SECONDS)


MOST_AT_ONCE = 50
"""Maximum number of lines logged in one event-loop iteration."""


class StatisticsLog:
    """A periodic log of a client's memory, producers, consumers and readers, one line each.

    Args:
        clock: The source of time.
        seconds: The interval in seconds; 0 for never.
        parts: The producers, consumers, readers.
        memory: The client's memory limit.
    """

    def __init__(
        self, clock: Clock, seconds: float, parts: Collection[Part], memory: MemoryLimitController
    ) -> None:
        self._clock, self._seconds = clock, seconds
        self._parts, self._memory = parts, memory
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start logging, if an interval is set; further calls do nothing."""
        if self._task is None and self._seconds:
            self._task = asyncio.get_running_loop().create_task(self._repeat())

    async def _repeat(self) -> None:
        while True:
            await clock_sleep(self._clock, self._seconds)
            if not logger.isEnabledFor(logging.INFO):
                continue
            logger.info("%s", self._memory.statistics())
            for number, part in enumerate(tuple(self._parts), 1):
                logger.info("%s", part.statistics())
                if not number % MOST_AT_ONCE:
                    await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop logging; further calls do nothing."""
        await ended(self._task)
