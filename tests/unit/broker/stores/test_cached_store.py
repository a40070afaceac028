"""Snapshots in memory, within a bound of bytes."""

from broker.stores.cached_store import PARTITIONED_BYTES, SNAPSHOT_BYTES, SnapshotCache
from broker.stores.snapshots.partition_counts import PartitionCounts
from broker.stores.store import NamespaceSnapshot
from proto.names import NamespaceName

SPACES = [NamespaceName.parse(f"tenant/n{number}") for number in range(4)]


def test_empty_namespaces_count_towards_the_cache_bound() -> None:
    cache = SnapshotCache(2 * SNAPSHOT_BYTES)
    for space in SPACES[:3]:
        cache.keep(space, NamespaceSnapshot())
    assert cache.peek(SPACES[0]) is None
    assert cache.held_bytes == 2 * SNAPSHOT_BYTES


def test_partition_counts_count_towards_the_cache_size() -> None:
    cache = SnapshotCache(0)
    cache.keep(SPACES[0], NamespaceSnapshot(partitioned=PartitionCounts.of({"a": 1, "b": 2})))
    assert cache.held_bytes == SNAPSHOT_BYTES + 2 * PARTITIONED_BYTES


def test_a_get_refreshes_a_cached_snapshot_and_a_peek_does_not() -> None:
    cache = SnapshotCache(2 * SNAPSHOT_BYTES)
    for space in SPACES[:2]:
        cache.keep(space, NamespaceSnapshot())
    cache.get(SPACES[0])
    cache.peek(SPACES[1])
    cache.keep(SPACES[2], NamespaceSnapshot())
    assert cache.peek(SPACES[0]) is not None
    assert cache.peek(SPACES[1]) is None


def test_forgotten_and_replaced_snapshots_are_no_longer_counted() -> None:
    cache = SnapshotCache(10 * SNAPSHOT_BYTES)
    cache.keep(SPACES[0], NamespaceSnapshot(partitioned=PartitionCounts.of({"a": 1})))
    cache.keep(SPACES[0], NamespaceSnapshot())
    cache.forget(SPACES[1])
    assert cache.held_bytes == SNAPSHOT_BYTES
    cache.forget(SPACES[0])
    cache.forget(SPACES[0])
    assert (cache.held_bytes, len(cache)) == (0, 0)
