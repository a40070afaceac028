"""The broker's samples agree with those of a real broker."""

import math
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from broker.messages.loading.loaded_topics import LoadedTopics
from broker.metrics import (
    COMMAND_ERRORS,
    CONNECTIONS,
    LISTING_CACHE,
    LOOKUP_TIMES,
    LOOKUPS,
    PENDING_LOOKUPS,
    SNAPSHOTS,
    TOPIC_LOAD_TIMES,
    TOPIC_LOADS,
    load_figures,
)
from broker.ownership.ownership import Owner
from broker.patterns.cache import ListingCache
from broker.stores.cached_store import SNAPSHOT_BYTES
from broker.stores.sqlite.store import SqliteStore
from broker.topic_lists.sequence import TopicSequence
from broker.topics.lookup import LookupOutcomes
from limiter.flow.lookup_semaphore import LookupSemaphore
from limiter.metrics.prometheus import Instruments
from limiter.metrics.wait_times import WaitTimes
from proto.names import NamespaceName
from server.configuration.addresses import NO_URLS
from server.connection.counters import ConnectionCounters
from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.samples import SampleLine, exposition, prometheus_type, read_samples

GOLDEN = Path(__file__).parents[2] / "golden" / "metrics.txt"


def assert_as_recorded(samples: Iterable[SampleLine]) -> None:
    """Compare type and labels of samples known to a real broker."""
    recorded = {
        name: (kind, labels.split(", "))
        for name, kind, labels in (
            line.split(" | ") for line in GOLDEN.read_text(encoding="utf-8").splitlines()
        )
    }
    for one in samples:
        if one.name in recorded:
            kind, labels = recorded[one.name]
            assert (one.type, sorted(one.labels)) == (prometheus_type(one.name, kind), labels)


def test_connection_metrics_have_the_recorded_shape_and_counted_values() -> None:
    connections = ConnectionCounters()
    lookups, registry = LookupSemaphore(10), CollectorRegistry()
    labels = {"cluster": "c1", "broker": "10.0.0.1", "metric": "broker_connection"}
    registry.register(Instruments(CONNECTIONS, lambda: connections, labels))
    registry.register(Instruments(COMMAND_ERRORS, lambda: connections, {}))
    registry.register(Instruments(PENDING_LOOKUPS, lambda: lookups, {"cluster": "c1"}))
    for _ in range(9):
        lookups.try_acquire("client")
    for _ in range(5):
        connections.opened()
    for _ in range(3):
        connections.create_success += 1
    connections.create_fail += 1
    connections.errors["ConsumerBusy"] += 2
    connections.closed()
    samples = {sample.name: sample for sample in read_samples(exposition(registry).decode())}
    assert_as_recorded(samples.values())
    assert {name: sample.value for name, sample in samples.items()} == {
        "pulsar_active_connections": 4,
        "pulsar_connection_created_total_count": 5,
        "pulsar_connection_create_success_count": 3,
        "pulsar_connection_create_fail_count": 1,
        "pulsar_connection_closed_total_count": 1,
        "floodgate_command_errors_total": 2,
        "pulsar_broker_lookup_pending_requests": 9,
    }
    assert samples["floodgate_command_errors_total"].labels == {"error": "ConsumerBusy"}
    assert samples["pulsar_active_connections"].labels == labels


async def test_lookup_metrics_have_the_recorded_shape_and_measured_values() -> None:
    clock, registry = ManualClock(), CollectorRegistry()
    outcomes = LookupOutcomes(clock, clock.now)
    labels = {"cluster": "c1"}
    registry.register(Instruments(LOOKUP_TIMES, lambda: outcomes, labels))
    registry.register(Instruments(LOOKUPS, lambda: outcomes, labels, outcomes.since))

    async def here() -> Owner:
        clock.advance(0.0004)
        return Owner(NO_URLS, here=True)

    before = list(read_samples(exposition(registry).decode()))
    for _ in range(3):
        await outcomes.counted(here())
    after = list(read_samples(exposition(registry).decode()))
    assert_as_recorded(before)
    assert [one.labels.get("quantile") for one in before][:4] == ["0.5", "0.99", "0.999", "1.0"]
    assert all(math.isnan(one.value) for one in before[:4])
    assert [one.value for one in after[:5]] == [0.4, 0.4, 0.4, 0.4, 3]
    values = {one.name: one.value for one in after}
    assert values["pulsar_broker_lookup_sum"] == pytest.approx(1.2)
    assert values["pulsar_broker_lookup_answers_total"] == 3
    assert values["pulsar_broker_lookup_redirects_total"] == 0
    assert values["pulsar_broker_lookup_failures_created"] == outcomes.since


def test_topic_load_metrics_have_the_recorded_shape_and_measured_values() -> None:
    times = WaitTimes(ManualClock())
    topics = SimpleNamespace(load_times=times, failed_loads=2)
    registry = CollectorRegistry()
    loaded, labels = cast("LoadedTopics", topics), {"cluster": "c1"}
    registry.register(Instruments(TOPIC_LOAD_TIMES, lambda: loaded, labels, 5))
    labels = {**labels, "broker": "10.0.0.1", "metric": "pulsar_topic_load_times"}
    registry.register(Instruments(TOPIC_LOADS, lambda: load_figures(loaded), labels))
    before = list(read_samples(exposition(registry).decode()))
    for millis in (10, 20, 30):
        times.record(millis / 1000)
    values = {one.name: one.value for one in read_samples(exposition(registry).decode())}
    assert_as_recorded(before)
    assert math.isnan(before[0].value)
    assert values["pulsar_topic_load_time_median_ms"] == 20
    assert values["pulsar_topic_load_time_mean_ms"] == 20
    assert values["pulsar_topic_load_time_99_99_percentile_ms"] == 30
    assert values["pulsar_topic_load_times_created"] == 5
    assert values["pulsar_topic_load_failed_count"] == 2


async def test_the_size_and_limit_of_the_snapshot_cache_are_exported(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "topics.sqlite", 10_000)
    registry = CollectorRegistry()
    registry.register(Instruments(SNAPSHOTS, lambda: (store, 10_000), {"cluster": "c1"}))
    await store.open()
    try:
        await store.create_namespace(NamespaceName.parse("a/b"))
        await store.snapshot(NamespaceName.parse("a/b"))
        samples = list(read_samples(exposition(registry).decode()))
    finally:
        await store.close()
    assert {sample.name: sample.value for sample in samples} == {
        "floodgate_snapshot_cache_bytes": SNAPSHOT_BYTES,
        "floodgate_snapshot_cache_limit_bytes": 10_000,
    }


def test_size_hits_misses_and_evictions_of_the_listing_cache_are_exported() -> None:
    cache, scope = ListingCache(10_000), TopicSequence()
    registry = CollectorRegistry()
    registry.register(Instruments(LISTING_CACHE, lambda: cache, {"cluster": "c1"}))
    for key in range(20):
        cache.put(scope, key, "value", 100)
    for key in range(20):
        cache.get(scope, key)
    samples = {sample.name: sample for sample in read_samples(exposition(registry).decode())}
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
