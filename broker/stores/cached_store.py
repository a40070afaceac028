"""The database stores' cache of snapshots, bounded in bytes, and their reads of it."""

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
    """A store with a cache of recently used snapshots. See MetadataStore.

    Args:
        cache_bytes: Limit for cached snapshots in bytes; the least recently used is evicted first.
    """

    def __init__(self, cache_bytes: int) -> None:
        self._cache = SnapshotCache(cache_bytes)
        self._feeds = ChangeFeeds()

    @property
    def cached_bytes(self) -> int:
        """Bytes of the cached snapshots."""
        return self._cache.held_bytes

    @abstractmethod
    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return the newest version of a namespace; None if missing."""

    def estimated_bytes(self, namespace: NamespaceName, mode: Mode) -> int | None:
        """Return a listing's heap estimate if its snapshot is cached, else None."""
        cached = self._cache.peek(namespace)
        return cached.listing(mode).estimated_bytes if cached is not None else None

    def listing_at_once(self, namespace: NamespaceName, mode: Mode) -> TopicListing | None:
        """Return the newest listing of a mode if its snapshot is cached, else None."""
        cached = self._cache.get(namespace)
        return cached.listing(mode) if cached is not None else None

    async def version(self, namespace: NamespaceName) -> int:
        """Return the newest version; 0 for a missing namespace."""
        cached = self._cache.peek(namespace)
        return cached.version if cached is not None else await self._version(namespace)

    @abstractmethod
    async def _version(self, namespace: NamespaceName) -> int:
        """Read the newest version from the database."""

    async def select(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing:
        """Return the user topics of a mode that have every given property."""
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
        """Select topics, system topics included, by the database's index; in order."""

    def changes(self) -> ChangeFeed:
        """Return a new feed of all later changes, in order."""
        return self._feeds.open()


SNAPSHOT_BYTES = 1_000
"""Bytes counted for a snapshot beside its names: even an empty snapshot is several objects."""
PARTITIONED_BYTES = 60
"""Bytes counted for a partitioned topic beside its partitions."""


class SnapshotCache:
    """The most recently used snapshots.

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
        """Bytes of the snapshots in the cache."""
        return self._bytes

    def peek(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return a snapshot without marking it as used."""
        return self._snapshots.get(namespace)

    def get(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return a snapshot and mark it as used."""
        snapshot = self._snapshots.get(namespace)
        if snapshot is not None:
            self._snapshots.move_to_end(namespace)
        return snapshot

    def keep(self, namespace: NamespaceName, snapshot: NamespaceSnapshot) -> None:
        """Replace a namespace's snapshot by the newest version."""
        self.forget(namespace)
        self._bytes += _weight(snapshot)
        self._snapshots[namespace] = snapshot
        while self._bytes > self._max_bytes and len(self._snapshots) > 1:
            _, oldest = self._snapshots.popitem(last=False)
            self._bytes -= _weight(oldest)

    def forget(self, namespace: NamespaceName) -> None:
        """Drop a namespace's snapshot. Idempotent."""
        before = self._snapshots.pop(namespace, None)
        self._bytes -= _weight(before) if before is not None else 0


def _weight(snapshot: NamespaceSnapshot) -> int:
    partitioned = PARTITIONED_BYTES * len(snapshot.partitioned)
    return SNAPSHOT_BYTES + snapshot.wire_bytes + partitioned
