"""Figures of a client: its memory, its producers and consumers, and who waits for what."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from client.consumers.statistics import ConsumerStatistics
from client.producers.statistics import ProducerStatistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from client.context import Part
    from limiter.client_memory.memory_limit_controller import MemoryLimitController
    from limiter.client_memory.reservation import MemoryLimitStatistics

ANSWER_SECONDS = 5.0
"""The time, in seconds, that another thread waits for the client's loop."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that does not go on now.

    Attributes:
        who: The producer or consumer.
        what: The thing it waits for.
        count: How many wait: sends, receives, or 1.
    """

    who: str
    what: str
    count: int

    def __str__(self) -> str:
        return f"{self.who} waits for {self.what} ({self.count})"


@dataclass(frozen=True, slots=True)
class ClientStatistics:
    """A snapshot of a client.

    Attributes:
        memory: Its limit; of all clients together that share it.
        producers: Its producers.
        consumers: Its consumers and readers, and those below table views.
    """

    memory: MemoryLimitStatistics
    producers: tuple[ProducerStatistics, ...]
    consumers: tuple[ConsumerStatistics, ...]

    def waiting(self) -> Iterator[Waiting]:
        """Say who waits for what, producers first."""
        for producer in self.producers:
            yield from _producer_waiting(producer)
        for consumer in self.consumers:
            yield from _consumer_waiting(consumer)


def _producer_waiting(producer: ProducerStatistics) -> Iterator[Waiting]:
    who = f"producer {producer.producer_name!r} of {producer.topic}"
    if not producer.is_connected:
        yield Waiting(who, "a connection", 1)
    if producer.waiting_sends:
        yield Waiting(who, "a place in its queue, or memory", producer.waiting_sends)
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
    """Return the figures of this moment."""
    found = [part.statistics() for part in tuple(parts)]
    return ClientStatistics(
        memory=memory.statistics(),
        producers=tuple(one for one in found if isinstance(one, ProducerStatistics)),
        consumers=tuple(one for one in found if isinstance(one, ConsumerStatistics)),
    )


class HasStatistics(Protocol):
    """A client, as far as its figures are concerned."""

    def statistics(self) -> ClientStatistics:
        """Return the figures of this moment."""


_names: WeakKeyDictionary[HasStatistics, str] = WeakKeyDictionary()
_numbers = count(1)


def client_name(client: HasStatistics) -> str:
    """Return the name of a client that was given none: ``client-1`` and so on, in a process."""
    if client not in _names:
        _names[client] = f"client-{next(_numbers)}"
    return _names[client]


class StatisticsReader:
    """Reads a client's figures from any thread; to be made in the client's loop.

    Those who collect metrics have threads of their own, and a client belongs to one: its loop's.
    """

    def __init__(self, client: HasStatistics) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def read(self) -> ClientStatistics:
        """Return the figures of this moment.

        Raises:
            TimeoutError: The loop has ended, or did not answer for seconds.
        """
        if threading.get_ident() == self._thread:
            return self._client.statistics()
        answer: Future[ClientStatistics] = Future()

        def ask() -> None:
            try:
                answer.set_result(self._client.statistics())
            except Exception as error:  # noqa: BLE001 - it is the asker's
                answer.set_exception(error)

        try:
            self._loop.call_soon_threadsafe(ask)
        except RuntimeError:
            raise TimeoutError("the client's loop has ended") from None
        return answer.result(ANSWER_SECONDS)
