"""In-memory cache of a database store's snapshots, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.stores.snapshots.snapshot import NamespaceSnapshot
    from proto.names import NamespaceName


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
