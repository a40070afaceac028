"""The topics that the broker has loaded for producers and consumers."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from broker.errors import Refusal, RefusedError
from broker.messages.compaction.compactor import Compactor
from broker.messages.errors import MessageStoreError, fenced, not_stored
from broker.messages.loading.topic_creation import (
    MOST_TOPICS,
    GrowingTopics,
    MadeTopics,
    TopicCreation,
)
from broker.messages.loading.topic_index import PastTopics, TopicIndex
from broker.messages.resting import RestingTopics
from broker.messages.subscriptions.context import SubscriptionRules
from broker.messages.topic import NonPersistentTopic, PersistentTopic, Topic, TopicContext
from broker.messages.unneeded import RoomMaker
from broker.policies.service import PolicyFollowers
from broker.stores.name_locks import NameLocks, to_its_end
from broker.topics.rules import partition_name
from limiter.metrics.wait_times import WaitTimes
from limiter.tasks import BackgroundTasks
from proto.names import TopicName
from server.configuration.addresses import NO_URLS, ServerUrls
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

    from broker.configuration.config import BrokerConfig
    from broker.messages.position import Position
    from broker.messages.stores.managed_ledger import MessageStore
    from broker.ownership.ownership import Ownership
    from broker.policies.effective import EffectivePolicies
    from broker.policies.service import PolicyService
    from broker.stores.store import MetadataStore
    from broker.topics.rules import TopicRules
    from broker.topics.service import TopicService
    from limiter.clock import Clock
    from proto.names import NamespaceName

logger = logging.getLogger(__name__)

CLOSED_AT_ONCE = 16
"""The number of topics closed simultaneously, so that they share waits for the disk."""


class TopicParts(NamedTuple):
    """The services and settings of the broker that loading and closing topics requires.

    Attributes:
        metadata: The metadata store with the names of topics.
        topics: Creates and deletes topics.
        topic_rules: Returns the rules for creating topics in a namespace.
        policies: The effective policies of topics.
        ownership: Knows the topics served by this broker.
        address: Returns host and port of the broker's admin API.
        instance: The number of this start of the broker, a part of generated producer names.
    """

    config: BrokerConfig
    clock: Clock
    metadata: MetadataStore
    topics: TopicService
    topic_rules: Callable[[NamespaceName], TopicRules]
    policies: PolicyService
    ownership: Ownership
    address: Callable[[], str]
    instance: int = 0


class LoadedTopics:
    """The broker's loaded topics by name; a topic is loaded for its first client.

    Bound: maxConcurrentTopicLoadRequest simultaneous loads; further loads wait.

    Attributes:
        clock: The broker's clock.
        opened_at: When the counters started at 0, in ms since 1970.
        load_times: Durations of successful loads.
        pending_loads: The number of topic loads in progress or waiting.
        failed_loads: The number of failed topic loads.
        made: Topics created since the start that no client has used yet.
        growing: Creates subscriptions on new partitions.
        past: Counters of unloaded topics.
        resting: The topics that periodic work may skip.
        locks: A lock for each name that is loaded, unloaded or deleted.

    Source: upstream BrokerService.topics.
    """

    def __init__(self, parts: TopicParts, store: MessageStore) -> None:
        self._parts = parts
        self._store = store
        self._ownership = parts.ownership
        self._creation = TopicCreation(
            parts.metadata, parts.topics, parts.topic_rules, parts.ownership.owns, parts.address
        )
        self.clock = parts.clock
        self.past = PastTopics()
        self.resting = RestingTopics(parts.clock)
        self._room = RoomMaker(self, store, parts.clock)
        self._context = TopicContext(
            parts.config,
            parts.clock,
            parts.policies.of,
            self._broken,
            self.resting.wake,
            self._room.make,
            SubscriptionRules.of(parts.config),
        )
        self._compactor = Compactor(store)
        self.made = MadeTopics(parts.clock)
        self.growing = GrowingTopics()
        parts.topics.on_made(self._note_made)
        parts.topics.on_deleted(self.made.deleted)
        self._topics = TopicIndex()
        self.locks: NameLocks[str] = NameLocks()
        self._most_loads = parts.config.max_concurrent_topic_loads
        self._loads = asyncio.Semaphore(self._most_loads)
        self._followers = PolicyFollowers()
        self._unloads = BackgroundTasks()
        self._loading: set[TopicName] = set()
        # Namespaces and partitioned topics with blocked loads, and the number of blocks.
        self._shut: Counter[str] = Counter()
        self.load_times = WaitTimes(parts.clock)
        self.opened_at = parts.clock.wall_ms()
        self.pending_loads = 0
        self.failed_loads = 0

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics)

    def stored(self) -> Iterator[PersistentTopic]:
        """Yield the loaded persistent topics that are not closing."""
        for topic in self:
            if isinstance(topic, PersistentTopic) and not topic.closing:
                yield topic

    @asynccontextmanager
    async def unloaded(self, name: str) -> AsyncIterator[bool]:
        """Prevent loading of a topic in a ``with`` block; yield False if it is loaded already."""
        async with self.locks.of(name):
            yield name not in self._topics

    def within(self, namespace: NamespaceName) -> Iterator[Topic]:
        """Yield the loaded topics of a namespace."""
        return iter(self._topics.within(namespace))

    def non_persistent_in_use(self, namespace: NamespaceName) -> list[bytes]:
        """Return the names of a namespace's non-persistent topics with producers or consumers."""
        return [
            topic.full_name.encode()
            for topic in self._topics.within(namespace)
            if not topic.name.persistent and not topic.closing and topic.in_use
        ]

    def policies_of(self, name: TopicName) -> EffectivePolicies:
        """Return the effective policies of a topic, loaded or not."""
        return self._parts.policies.of(name)

    def serves(self, name: TopicName) -> bool:
        """Return True while this broker serves a topic."""
        return self._ownership.alone or self._ownership.owns(name)

    def find(self, name: TopicName) -> Topic | None:
        """Return a topic if it is loaded, otherwise None; do not add it to the periodic work."""
        return self._topics.get(str(name))

    def discard(self, topic: Topic) -> None:
        """Remove a topic if it is loaded, and add its counters to those of unloaded topics."""
        self.resting.discard(topic)
        if self._topics.discard(topic):
            self.past.add(topic)

    def loaded(self, name: TopicName) -> Topic | None:
        """Return a topic if it is loaded, otherwise None; make periodic work visit it again."""
        found = self.find(name)
        if found is not None:
            found.touched()
        return found

    # -- loading ------------------------------------------------------------------------------

    async def get(self, name: TopicName, *, create: bool = True) -> Topic:
        """Return a topic after loading or creating it if necessary.

        Args:
            name: A topic, or one partition.
            create: Create a missing topic, if the operator allows auto-creation.

        Raises:
            RequestError: Another broker serves the topic, it is missing or may not be created, or
                the store failed.
        """
        found = self.loaded(name)
        if found is not None and not found.closing:
            return found
        return await to_its_end(self._got(name, create=create))

    async def _got(self, name: TopicName, *, create: bool) -> Topic:
        async with self.locks.of(str(name)):
            found = self.find(name)
            if found is not None and not found.closing:
                return found
            return await self._counted_load(name, found, create=create)

    async def _counted_load(self, name: TopicName, broken: Topic | None, *, create: bool) -> Topic:
        self.pending_loads += 1
        self._loading.add(name)
        began = self.clock.now()
        try:
            topic = await self._load(name, broken, create=create)
        except BaseException:
            self.failed_loads += 1
            raise
        finally:
            self.pending_loads -= 1
            self._loading.discard(name)
        self.load_times.record(self.clock.now() - began)
        return topic

    def _load_places(self) -> asyncio.Semaphore:
        """Return the semaphore that limits the topics loaded at the same time.

        If the limit has changed, the semaphore is new and all its slots are free, as upstream.
        """
        most = self._parts.config.max_concurrent_topic_loads
        if most != self._most_loads:
            self._most_loads, self._loads = most, asyncio.Semaphore(most)
        return self._loads

    async def _load(self, name: TopicName, broken: Topic | None, *, create: bool) -> Topic:
        if broken is not None:
            await self._unload(broken)
        async with self._load_places():
            if self._is_shut(name):
                raise fenced()
            made = await self._creation.ensure(name, create=create)
            made = made or name in self.made
            try:
                topic = await self._opened(name, made=made)
            except MessageStoreError as error:
                raise not_stored(error) from None
            # The bundle may be lost, or the namespace deleted, meanwhile.
            if not self._ownership.owns(name) or self._is_shut(name):
                if name.persistent:
                    self._store.close_ledger(str(name))
                raise fenced()
            self.made.loaded(name)
            self._topics.add(topic)
            self.resting.add(topic)
            return topic

    def _note_made(self, name: TopicName, partitions: int) -> None:
        """Remember a topic created without a client, so that it is deleted if it stays unused."""
        if not self._parts.policies.of(name).inactive_topics.delete:
            return
        names = [name]
        if partitions:
            self.made.add_partitioned(name)
            all_go = self._parts.config.publishing.deletes_unused_partitioned
            indices = range(min(partitions, MOST_TOPICS) if all_go else 0)
            names = [TopicName.parse(partition_name(name, index)) for index in indices]
        for one in names:
            # Another broker's topics are skipped: their use is unknown here.
            if self.serves(one):
                self.made.add(one)

    async def _opened(self, name: TopicName, *, made: bool) -> Topic:
        if not name.persistent:
            direct = NonPersistentTopic(name, self._context)
            direct.made_by_use = made
            return direct
        ledger = await self._store.open_ledger(str(name))
        topic = PersistentTopic(name, self._context, ledger)
        if made:
            topic.mark_made_by_use()
        await topic.compaction.open(self._compactor)
        await topic.recover()
        self.growing.give(topic)
        return topic

    def policies_changed(self, scope: NamespaceName | TopicName | None) -> None:
        """Apply changed policies to one topic, to the topics of a namespace, or to all topics.

        The first topics are updated immediately, the rest in later event-loop turns.
        """
        self._followers.follow(self._topics.within(scope))

    # -- closing ------------------------------------------------------------------------------

    async def unload(self, name: TopicName, new_owner: ServerUrls = NO_URLS) -> bool:
        """Close a topic, and remove it from memory; return False if it is not loaded.

        The clients reconnect and load the topic again, or connect to the new owner.
        """
        return await to_its_end(self._unload_named(name, new_owner))

    async def _unload_named(self, name: TopicName, new_owner: ServerUrls) -> bool:
        async with self.locks.of(str(name)):
            topic = self.find(name)
            if topic is not None:
                await self._unload(topic, new_owner)
            return topic is not None

    def let_go(self, belongs: Callable[[TopicName], bool]) -> Awaitable[object]:
        """Close the topics that this broker no longer serves; publishing stops immediately.

        Args:
            belongs: Returns True for the name of a topic to close.

        Returns:
            An awaitable that ends when all these topics are closed.
        """
        loop = asyncio.get_running_loop()
        if self._ownership.alone:
            return loop.create_task(self._unload_all(self, belongs))
        self.made.clear()  # Other brokers may use the topics from now on.
        gone = [topic for topic in self if belongs(topic.name)]
        for topic in gone:
            topic.closing = True
            topic.producers.disconnect(fenced())
        return loop.create_task(self._unload_all(gone, belongs))

    async def _unload_all(
        self, topics: Iterable[Topic], belongs: Callable[[TopicName], bool]
    ) -> None:
        async for topic in in_turns(topics):
            if belongs(topic.name):
                await self._closed(topic.name)

    async def _closed(self, name: TopicName, new_owner: ServerUrls = NO_URLS) -> None:
        """Unload a topic; log an unexpected error, which does not affect the other topics."""
        try:
            await self.unload(name, new_owner)
        except Exception:
            logger.exception("%s was not unloaded as it should", name)

    async def _unload(self, topic: Topic, new_owner: ServerUrls = NO_URLS) -> None:
        topic.closing = True
        try:
            topic.producers.disconnect(fenced(), new_owner)
            topic.rate.stop()  # Connections paused by the topic's rate may publish to other topics.
            topic.subscriptions.close_consumers(new_owner)
            if isinstance(topic, PersistentTopic):
                await self._keep(topic)
        finally:
            self.discard(topic)

    async def _keep(self, topic: PersistentTopic) -> None:
        topic.subscriptions.close()
        try:
            await topic.compaction.close()
            # First saved before the last entries, since on a full disk only cursors are stored.
            for _ in range(2):
                topic.deduplication.save()
                topic.subscriptions.save()
                await topic.ledger.flushed()
        except MessageStoreError as error:
            logger.warning("the last writes of %s may be lost: %s", topic.name, error)
        finally:
            topic.forget_pending()
            topic.ledger.listener = None
            self._store.close_ledger(topic.full_name)
            topic.subscriptions.forget()

    def _broken(self, topic: Topic) -> None:
        """Unload a topic in a background task, because its ledger failed."""
        if not topic.closing:
            topic.closing = True
            self._unloads.start(self._unload_broken(topic))

    async def _unload_broken(self, topic: Topic) -> None:
        async with self.locks.of(topic.full_name):
            if self._topics.get(topic.full_name) is topic:  # Else the next client was faster.
                await self._unload(topic)

    @asynccontextmanager
    async def shut(self, *names: NamespaceName | TopicName) -> AsyncIterator[None]:
        """Prevent loading topics of the given namespaces or partitioned topics in a ``with`` block.

        The block starts once all loads of such topics that are in progress have ended.
        """
        keys = list(map(str, names))
        self._shut.update(keys)
        try:
            for loading in [one for one in self._loading if self._is_shut(one)]:
                async with self.locks.of(str(loading)):
                    pass
            yield
        finally:
            self._shut.subtract(keys)
            self._shut += Counter()  # Drops zero counts.

    def _is_shut(self, name: TopicName) -> bool:
        shut = self._shut
        return str(name.namespace) in shut or str(name.partitioned_name) in shut

    async def terminate(self, name: TopicName) -> Position:
        """Permanently refuse further messages of a topic; return its last message's position.

        Raises:
            RequestError: See ``get``.
            RefusedError: The topic is non-persistent.
            MessageStoreError: The termination could not be stored.
        """
        topic = await self.get(name, create=False)
        if not isinstance(topic, PersistentTopic):
            text = "Termination of a non-persistent topic is not allowed"
            raise RefusedError(Refusal.NOT_ACCEPTABLE, text)
        topic.terminate()
        await topic.ledger.flushed()
        return topic.ledger.last_confirmed

    async def flushed(self) -> None:
        """Wait until all messages published to loaded topics are stored."""
        for topic in self:
            if isinstance(topic, PersistentTopic):
                with suppress(MessageStoreError):
                    await topic.ledger.flushed()

    async def close(self, new_owner: Callable[[TopicName], ServerUrls] = lambda _: NO_URLS) -> None:
        """Close all topics, because the broker shuts down; their clients reconnect.

        Args:
            new_owner: Returns the addresses of a topic's new broker; if they are empty, clients
                look the topic up.
        """
        await self._room.close()
        names = [topic.name for topic in self]
        for begin in range(0, len(names), CLOSED_AT_ONCE):
            some = names[begin : begin + CLOSED_AT_ONCE]
            await asyncio.gather(*[self._closed(name, new_owner(name)) for name in some])
