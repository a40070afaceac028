"""The base class of the database stores, with a size-limited cache of namespace snapshots."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import TYPE_CHECKING

from broker.stores.changes import ChangeFeed, ChangeFeeds
from broker.stores.conditions import storable
from broker.stores.snapshots.snapshot import NamespaceSnapshot
from broker.topic_lists.sequence import EMPTY_LISTING, TopicListing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.stores.store import Mode
    from proto.names import NamespaceName


class CachedStore(ABC):
    """A database store with a cache of recently used namespace snapshots. See MetadataStore.

    Args:
        cache_bytes: Limit for cached snapshots in bytes; the least recently used is evicted first.
    """

    def __init__(self, cache_bytes: int) -> None:
        self._cache = SnapshotCache(cache_bytes)
        self._feeds = ChangeFeeds()

    @property
    def cached_bytes(self) -> int:
        """Total size of the cached snapshots in bytes."""
        return self._cache.held_bytes

    @abstractmethod
    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return the newest snapshot of a namespace; None if the namespace does not exist."""

    def estimated_bytes(self, namespace: NamespaceName, mode: Mode) -> int | None:
        """Return the estimated heap bytes of a topic list; None if no snapshot is cached."""
        cached = self._cache.peek(namespace)
        return cached.listing(mode).estimated_bytes if cached is not None else None

    def listing_at_once(self, namespace: NamespaceName, mode: Mode) -> TopicListing | None:
        """Return a mode's newest list of topics; None if no snapshot is cached."""
        cached = self._cache.get(namespace)
        return cached.listing(mode) if cached is not None else None

    async def version(self, namespace: NamespaceName) -> int:
        """Return a namespace's newest version; 0 if the namespace does not exist."""
        cached = self._cache.peek(namespace)
        return cached.version if cached is not None else await self._version(namespace)

    @abstractmethod
    async def _version(self, namespace: NamespaceName) -> int:
        """Read a namespace's newest version from the database."""

    async def select(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing:
        """Return the user topics of a mode, such as PERSISTENT, that have all given properties."""
        if not properties:
            snapshot = await self.snapshot(namespace)
            return snapshot.listing(mode) if snapshot is not None else EMPTY_LISTING
        if not storable(properties):
            return EMPTY_LISTING
        names = await self._names_with(namespace, properties)
        return await asyncio.to_thread(NamespaceSnapshot().selection, names, mode)

    @abstractmethod
    async def _names_with(
        self, namespace: NamespaceName, properties: Mapping[str, str]
    ) -> list[bytes]:
        """Return the names of topics that have every given property, in bytewise order.

        The database's index finds them; system topics are included.
        """

    def changes(self) -> ChangeFeed:
        """Return a new feed of changes, which delivers all that are committed from now on."""
        return self._feeds.open()


SNAPSHOT_BYTES = 1_000
"""Bytes counted for a snapshot beside its names: even an empty snapshot is several objects."""
PARTITIONED_BYTES = 60
"""Bytes counted for a partitioned topic beside its partitions."""


class SnapshotCache:
    """A cache of the most recently used namespace snapshots.

    Bound: ``max_bytes`` (floodgateSnapshotCacheMB); the least recently used is evicted first. One
    snapshot stays, however large.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._snapshots: OrderedDict[NamespaceName, NamespaceSnapshot] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._snapshots)

    @property
    def held_bytes(self) -> int:
        """Total size of the cached snapshots in bytes."""
        return self._bytes

    def peek(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return a namespace's cached snapshot without counting this as a use."""
        return self._snapshots.get(namespace)

    def get(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return a namespace's cached snapshot, which becomes the most recently used."""
        snapshot = self._snapshots.get(namespace)
        if snapshot is not None:
            self._snapshots.move_to_end(namespace)
        return snapshot

    def keep(self, namespace: NamespaceName, snapshot: NamespaceSnapshot) -> None:
        """Cache a namespace's newest snapshot in place of an older one."""
        self.forget(namespace)
        self._bytes += _weight(snapshot)
        self._snapshots[namespace] = snapshot
        while self._bytes > self._max_bytes and len(self._snapshots) > 1:
            _, oldest = self._snapshots.popitem(last=False)
            self._bytes -= _weight(oldest)

    def forget(self, namespace: NamespaceName) -> None:
        """Remove a namespace's snapshot from the cache; may be called repeatedly."""
        before = self._snapshots.pop(namespace, None)
        self._bytes -= _weight(before) if before is not None else 0


def _weight(snapshot: NamespaceSnapshot) -> int:
    partitioned = PARTITIONED_BYTES * len(snapshot.partitioned)
    return SNAPSHOT_BYTES + snapshot.wire_bytes + partitioned
