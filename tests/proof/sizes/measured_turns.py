"""The longest turn of the event loop while a broker of this process works, and its content."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.request import Request, urlopen

from broker.messages.metadata import MessageDigest
from broker.messages.subscriptions.subscription import Subscription
from broker.messages.topic import PersistentTopic
from broker.service import BrokerService
from proto.names import TopicName
from tests.proof.result import ProofResult
from tests.proof.sizes.consuming_client import ConsumingClient
from tests.support.processes.cluster import until
from tests.support.subscriptions.messages import message

BOUND_MILLIS = 20.0
TRIES = 3
ENTRIES_A_TURN = 1_000
KEYS = 1_000
NAMESPACE = "public/default"
PUBLISHED = 1_700_000_000_000


@dataclass(frozen=True)
class Sizes:
    """The sizes of all cases."""

    entries: int
    consumers: int
    unacked: int
    topics: int


class MeasuredTurns:
    """The measured cases on a store; mutable state: the result.

    Attributes:
        broker: Works on this loop.
        store: Its store of messages.
        sizes: The sizes of all cases.
        number: Of the try, for the names of topics.
    """

    def __init__(
        self,
        broker: BrokerService,
        store: str,
        sizes: Sizes,
        result: ProofResult,
        note: Callable[[str], None],
    ) -> None:
        self.broker = broker
        self.store = store
        self.sizes = sizes
        self._result = result
        self._note = note
        self.number = 0
        self._above = False
        self._least: dict[str, Turn] = {}

    async def repeat(self, group: Callable[[], Awaitable[None]]) -> None:
        """Measure a group of cases; repeat, on new topics, while a case is above the bound."""
        for self.number in range(TRIES):
            self._above = False
            await group()
            if not self._above:
                break

    def judge(self) -> None:
        """Put the least of each case into the result."""
        for name, turn in self._least.items():
            self._result.figures[f"{self.store}, {name}"] = round(turn.cpu_millis, 2)
            self._result.figures[f"{self.store}, {name}, by the clock"] = round(turn.millis, 2)
            self._result.check(
                f"{self.store}: {name}",
                turn.cpu_millis <= BOUND_MILLIS,
                f"{self.store}: {name}: the longest turn takes {turn.cpu_millis:.1f} ms of "
                f"processor time; allowed are {BOUND_MILLIS:g} ms",
            )

    async def measure(self, name: str, work: Awaitable[object]) -> None:
        """Do some work, and note the longest turn meanwhile."""
        turn = await longest_turn(work)
        self._note(f"{self.store}: {name}: {turn.cpu_millis:.1f} ms")
        self._above = self._above or turn.cpu_millis > BOUND_MILLIS
        self._least[name] = min(turn, self._least.get(name, turn))

    async def topic(
        self,
        name: str,
        entries: int,
        messages: int = 1,
        partition: int = -1,
        *,
        key: Callable[[int], str] = lambda number: f"key-{number % KEYS}",
        deliver_at: Callable[[int], int] = lambda _: 0,
    ) -> PersistentTopic:
        """Return a topic with entries published a millisecond apart.

        Args:
            name: The topic's, completed by the number of the try.
            entries: Number of entries.
            messages: In each entry.
            partition: Index of the partition, whose topic has exactly this name; -1: no partition.
            key: Returns the key of an entry by its number; default: 1,000 keys.
            deliver_at: Returns when an entry is due.
        """
        own = f"{name}-{self.number}" if partition < 0 else f"{name}-partition-{partition}"
        topic = await self.broker.messaging.loaded_topics.get(
            TopicName.parse(f"persistent://{NAMESPACE}/{own}"), create=True
        )
        of_key = lru_cache(KEYS)(partial(message, b"x" * 20))
        assert isinstance(topic, PersistentTopic)
        ledger = topic.ledger
        for first in range(0, entries, ENTRIES_A_TURN):
            for number in range(first, min(entries, first + ENTRIES_A_TURN)):
                digest = MessageDigest(messages, PUBLISHED + number, deliver_at(number))
                ledger.append(of_key(key=key(number)), digest)
            await ledger.flushed()
        return topic

    async def left(self, client: ConsumingClient, topic: PersistentTopic, remaining: int) -> None:
        await asyncio.to_thread(client.close)
        await until(lambda: len(only_subscription(topic).consumers) == remaining)


def only_subscription(topic: PersistentTopic) -> Subscription:
    (subscription,) = topic.subscriptions
    assert isinstance(subscription, Subscription)
    return subscription


class Turn(NamedTuple):
    """The longest turn, by the processor time of the loop's thread, and by the clock."""

    cpu_millis: float
    millis: float


async def longest_turn(work: Awaitable[object]) -> Turn:
    """Do some work; return the longest turn meanwhile."""
    task = asyncio.ensure_future(work)
    longest_cpu, last_cpu = 0.0, time.thread_time()
    longest, last = 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0)
        now_cpu, now = time.thread_time(), time.perf_counter()
        longest_cpu, last_cpu = max(longest_cpu, now_cpu - last_cpu), now_cpu
        longest, last = max(longest, now - last), now
    await task
    return Turn(1_000 * longest_cpu, 1_000 * longest)


def fetched(url: str, method: str = "GET", data: bytes | None = None) -> bytes:
    headers = {"Content-Type": "application/json"}
    asked = Request(url, data=data, method=method, headers=headers)
    with urlopen(asked, timeout=60) as answer:
        body: bytes = answer.read()
    return body


def posted(url: str) -> None:
    fetched(url, "POST", b"")


def deleted(url: str) -> None:
    fetched(url, "DELETE")
