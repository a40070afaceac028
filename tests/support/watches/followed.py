"""A followed namespace in isolation: every step is the test's.

Store changes reach the follower on command; the filter and the store can be held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Literal

from broker.configuration.config import WatchSettings
from broker.listing.estimates import ListingEstimates
from broker.listing.lister import TopicLister
from broker.listing.rules import AnswerRules
from broker.patterns.backtracking import PatternWorkers
from broker.patterns.filter import PatternFilter, PatternRules
from broker.patterns.pattern import RegexImplementation
from broker.stores.changes import StoreError, TopicChanges
from broker.stores.memory import MemoryStore
from broker.stores.snapshots.snapshot import NamespaceSnapshot
from broker.topic_lists.sequence import TopicListing
from broker.watches.context import WatchContext, WatchTotals
from broker.watches.names.merging import changes_between
from broker.watches.names.sorted_names import SortedNames
from broker.watches.rules import FLOODGATE_WATCHES, PULSAR_WATCHES
from broker.watches.sets.namespace_watch import NamespaceWatch
from broker.watches.sets.watched_sets import WatchedSet
from broker.watches.update_permit import SetUpdate
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, MemoryLimit
from limiter.memory.response_memory import SharedMemory
from limiter.memory.size_estimate import SizeEstimate
from proto.names import NamespaceName
from proto.topic_hash import topics_hash
from server.tasks.cooperative import Steps
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.stepwise import finished

NAMESPACE = NamespaceName.parse("t/n")
ENGINE = RegexImplementation.RE2J_WITH_JDK_FALLBACK
HOUR_SECONDS = 3_600.0


def full(*texts: str) -> list[str]:
    """Full names of topics of the namespace."""
    return [f"persistent://t/n/{text}" for text in texts]


def watch_context(**parts: Any) -> WatchContext:
    """Return the context of a test's watches, with the given parts."""
    clock = parts.get("clock") or ManualClock()
    store = parts.get("store") or MemoryStore()
    lister = TopicLister(store)
    limit = MemoryLimit(10_000, 10, 25.0)
    others: dict[str, Any] = {
        "store": store,
        "lister": lister,
        "estimates": ListingEstimates(SizeEstimate.EXACT, lister, anyone_resets=False),
        "pattern_filter": PatternFilter(
            PatternRules(
                enabled=True,
                max_length=1_000,
                implementation=ENGINE,
                share=True,
                timeout_seconds=1.0,
            )
        ),
        "memory": SharedMemory(AsyncDualMemoryLimiter(limit, limit, clock)),
        "clock": clock,
        "answers": AnswerRules(private_buffers=False, max_frame_bytes=0),
        "profile": FLOODGATE_WATCHES,
        "settings": WatchSettings(max_bytes=0),
        "max_update_bytes": 10**6,
    }
    return WatchContext(**{**others, **parts})


class HeldStore(MemoryStore):
    """Answers or fails on command.

    Attributes:
        asked: Number of reads.
        go_on: Set to release readers.
        fails: Whether released readers get a store error.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.fails = False

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        self.asked += 1
        await self.go_on.wait()
        if self.fails:
            raise StoreError("the store is down")
        return await super().snapshot(namespace)


class HeldFilter(PatternFilter):
    """Evaluates a pattern without time limit, and answers on command.

    Attributes:
        asked: The requested patterns, in order.
        go_on: Set to release answers.
        workers: Processes for patterns with a backtracking engine: such tests have a block ``async
            with`` them.
    """

    def __init__(self) -> None:
        self.workers = PatternWorkers()
        rules = PatternRules(
            enabled=True,
            max_length=1_000,
            implementation=ENGINE,
            share=True,
            timeout_seconds=HOUR_SECONDS,
        )
        super().__init__(rules, workers=self.workers)
        self.asked: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def filter(self, listing: TopicListing, pattern: str) -> TopicListing:
        self.asked.append(pattern)
        kept = await super().filter(listing, pattern)
        await self.go_on.wait()
        return kept


class Arrivals(asyncio.Event):
    """A follower's signal for new work.

    Attributes:
        idle: Set while the follower waits.
    """

    def __init__(self) -> None:
        super().__init__()
        self.idle = asyncio.Event()

    def set(self) -> None:
        self.idle.clear()
        super().set()

    async def wait(self) -> Literal[True]:
        if not self.is_set():
            self.idle.set()
        return await super().wait()


class Listener:
    """Watches a set: applies each update and checks its hash."""

    def __init__(self, watched: WatchedSet, *, raises: bool = False) -> None:
        self.watched = watched
        self.raises = raises
        self.given_up = 0
        self.fallen_behind = 0
        self.updates: list[tuple[list[str], list[str]]] = []
        self.names = watched.names
        watched.watchers[self] = None

    def changed(self, update: SetUpdate) -> None:
        self._told(update.after)

    def fell_behind(self) -> None:
        self.fallen_behind += 1
        self._told(self.watched.names)

    def _told(self, after: SortedNames) -> None:
        if self.raises:
            raise RuntimeError("this watcher is broken")
        changes, _ = finished(changes_between(self.names, after, 1 << 30))
        self.names = after
        self.updates.append((texts(changes.added), texts(changes.removed)))
        assert after.hash == topics_hash(one.decode() for one in after.names())

    def give_up(self) -> None:
        self.given_up += 1

    def leave(self) -> None:
        del self.watched.watchers[self]


def texts(names: SortedNames | Iterable[bytes]) -> list[str]:
    """Return names without their common prefix."""
    listed = names.names() if isinstance(names, SortedNames) else names
    return [name.decode().removeprefix("persistent://t/n/") for name in listed]


class Followed:
    """A namespace, its store, and the feed in between."""

    def __init__(self, *, one_by_one: bool = False) -> None:
        self.store = HeldStore()
        self.filter = HeldFilter()
        self.clock = ManualClock()
        self.totals = WatchTotals()
        self.feed = self.store.changes()
        context = watch_context(
            store=self.store,
            pattern_filter=self.filter,
            totals=self.totals,
            clock=self.clock,
            profile=PULSAR_WATCHES if one_by_one else FLOODGATE_WATCHES,
            steps=Steps(0),  # Other tasks run after every step.
        )
        self.watch = NamespaceWatch(NAMESPACE, context)
        self._arrivals = self.watch._arrived = Arrivals()

    @classmethod
    async def of(cls, *names: str, one_by_one: bool = False) -> Followed:
        """Return a followed, still unread namespace with topics."""
        followed = cls(one_by_one=one_by_one)
        await followed.changed(added=names)
        return followed

    @classmethod
    async def with_listener(
        cls, *names: str, pattern: str = ".*", one_by_one: bool = False
    ) -> tuple[Followed, Listener]:
        """Return a followed namespace with topics, and a watcher of it."""
        followed = await cls.of(*names, one_by_one=one_by_one)
        return followed, await followed.listener(pattern)

    async def change(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> None:
        """Change the store; ``tell`` passes the change on."""
        await self.store.apply(
            NAMESPACE,
            TopicChanges([n.encode() for n in full(*added)], [n.encode() for n in full(*removed)]),
        )

    async def changed(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> None:
        """Change the store, and pass the change on."""
        await self.change(added, removed)
        await self.tell()

    async def tell(self, skip: int = 0) -> None:
        """Push the feed's changes, except the first few, and run all tasks."""
        while self.feed._queued:
            change = await anext(self.feed)
            if not skip:
                self.watch.push(change)
            skip = max(0, skip - 1)
        await settle()

    async def until_idle(self) -> None:
        """Run the follower until it is idle."""
        await self._arrivals.idle.wait()
        await settle()

    async def listener(self, pattern: str = ".*", *, raises: bool = False) -> Listener:
        """Return a watcher of a pattern's set."""
        return Listener(await self.watch.watched_set(pattern), raises=raises)

    async def passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await settle()
