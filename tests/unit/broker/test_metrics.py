"""The broker's own samples agree with those of a real broker."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry

from broker.metrics import broker_metrics, listing_cache_metrics, store_metrics
from broker.patterns.cache import ListingCache
from broker.stores.snapshots.cache import SNAPSHOT_BYTES
from broker.stores.sqlite.store import SqliteStore
from broker.topic_lists.sequence import TopicSequence
from limiter.flow.totals import FlowTotals
from proto.names import NamespaceName
from server.connection.counters import ConnectionCounters
from server.metrics.flow import flow_metrics
from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.samples import exposition, read_samples

GOLDEN = Path(__file__).parents[2] / "golden" / "metrics.txt"


def test_samples_have_recorded_names_types_and_labels_and_counted_values() -> None:
    # Given
    connections = ConnectionCounters()
    flow = FlowTotals(ManualClock())
    registry = CollectorRegistry()
    registry.register(broker_metrics("c1", "10.0.0.1", connections, lambda: 9, lambda: 4, flow))
    # When
    for _ in range(5):
        connections.opened()
    for _ in range(3):
        connections.create_success += 1
    connections.create_fail += 1
    connections.closed()
    flow.outbound.change(500)
    flow.outbound.change(-400)
    samples = {sample.name: sample for sample in read_samples(exposition(registry).decode())}
    # Then
    recorded = [line.split(" | ") for line in GOLDEN.read_text().splitlines()]
    for name, kind, labels in recorded:
        if "topic_list" not in name:
            assert samples[name].type == kind
            assert sorted(samples[name].labels) == labels.split(", ")
    of_flow = {family.name for family in flow_metrics("c1", flow)}
    assert {
        name: sample.value
        for name, sample in samples.items()
        if name.removesuffix("_total") not in of_flow
    } == {
        "pulsar_active_connections": 4,
        "pulsar_connection_created_total_count": 5,
        "pulsar_connection_create_success_count": 3,
        "pulsar_connection_create_fail_count": 1,
        "pulsar_connection_closed_total_count": 1,
        "pulsar_broker_lookup_pending_requests": 9,
        "pulsar_broker_throttled_connections": 0,
        "floodgate_unanswered_requests_total": 4,
    }
    assert samples["pulsar_active_connections"].labels == {
        "cluster": "c1",
        "broker": "10.0.0.1",
        "metric": "broker_connection",
    }


async def test_what_a_store_keeps_in_memory_is_exported(tmp_path: Path) -> None:
    # Given
    store = SqliteStore(tmp_path / "topics.sqlite", 10_000)
    registry = CollectorRegistry()
    registry.register(store_metrics("c1", store, 10_000))
    await store.open()
    try:
        await store.create_namespace(NamespaceName.parse("a/b"))
        await store.snapshot(NamespaceName.parse("a/b"))
        # When
        samples = list(read_samples(exposition(registry).decode()))
    finally:
        await store.close()
    # Then
    assert {sample.name: sample.value for sample in samples} == {
        "floodgate_snapshot_cache_bytes": SNAPSHOT_BYTES,
        "floodgate_snapshot_cache_limit_bytes": 10_000,
    }


def test_what_is_remembered_of_listings_is_exported() -> None:
    # Given
    cache, scope = ListingCache(10_000), TopicSequence()
    registry = CollectorRegistry()
    registry.register(listing_cache_metrics("c1", cache))
    for key in range(20):
        cache.put(scope, key, "value", 100)
    for key in range(20):
        cache.get(scope, key)
    # When
    samples = {sample.name: sample for sample in read_samples(exposition(registry).decode())}
    # Then
    held = cache.statistics()
    assert held.evictions > 0
    assert {name: sample.value for name, sample in samples.items()} == {
        "floodgate_listing_cache_bytes": held.bytes,
        "floodgate_listing_cache_limit_bytes": 10_000,
        "floodgate_listing_cache_entries": held.entries,
        "floodgate_listing_cache_hits_total": held.entries,
        "floodgate_listing_cache_misses_total": 20 - held.entries,
        "floodgate_listing_cache_evictions_total": held.evictions,
    }
    assert {frozenset(sample.labels.items()) for sample in samples.values()} == {
        frozenset({("cluster", "c1")})
    }
