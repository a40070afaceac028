"""The proxy's own samples."""

import dataclasses

from prometheus_client import CollectorRegistry

from limiter.flow.lookup_semaphore import LookupSemaphore
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, MemoryLimit
from limiter.metrics.prometheus import Instruments
from proxy import metrics
from proxy.listing.live_answers import LiveAnswers
from proxy.metrics import ProxyCounters
from server.connection.counters import ConnectionCounters
from server.connection.unanswered_requests import UnansweredRequests
from server.instruments import UNANSWERED
from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.samples import exposition, read_samples

REAL_COUNTERS = frozenset(
    f"pulsar_proxy_{name}"
    for name in (
        "new_connections",
        "rejected_connections",
        "binary_ops",
        "lookup_requests",
        "rejected_lookup_requests",
        "partitions_metadata_requests",
        "rejected_partitions_metadata_requests",
        "get_topics_of_namespace_requests",
        "rejected_get_topics_of_namespace_requests",
        "get_schema_requests",
    )
)
"""Metric names in the classes of a proxy 4.2.4, which also has pulsar_proxy_binary_bytes."""


def test_counters_are_named_as_the_metrics_of_a_pulsar_proxy() -> None:
    names = {f"pulsar_proxy_{field.name}" for field in dataclasses.fields(ProxyCounters)}
    assert names == REAL_COUNTERS


def test_every_counter_is_exported_with_its_total() -> None:
    # A distinct number for each counter
    fields = [field.name for field in dataclasses.fields(ProxyCounters)]
    counters = ProxyCounters(**{name: number for number, name in enumerate(fields, start=1)})
    connections = ConnectionCounters()
    connections.opened()
    clock = ManualClock()
    unanswered = UnansweredRequests(clock)
    lookups = LookupSemaphore(10)
    for _ in range(9):
        lookups.try_acquire("client")
    limit = MemoryLimit(1, 1, 1.0)
    live = LiveAnswers(AsyncDualMemoryLimiter(limit, limit, clock), remembers=True)
    unanswered.total, live.reused_total = 4, 5
    registry = CollectorRegistry()
    sources = {
        metrics.CONNECTIONS: connections,
        metrics.REQUESTS: counters,
        metrics.LOOKUPS: lookups,
        metrics.LIVE_ANSWERS: live,
        metrics.ROLE_POOLS: "12",
        UNANSWERED: unanswered,
    }
    for table, source in sources.items():
        registry.register(Instruments(table, lambda source=source: source, {"cluster": "c1"}))
    samples = {sample.name: sample for sample in read_samples(exposition(registry).decode())}
    for number, name in enumerate(fields, start=1):
        sample = samples.pop(f"pulsar_proxy_{name}_total")
        assert (sample.type, sample.value) == ("counter", number)
    assert {name: sample.value for name, sample in samples.items()} == {
        "pulsar_proxy_active_connections": 1,
        "floodgate_proxy_lookup_pending_requests": 9,
        "floodgate_proxy_role_pools": 2,
        "floodgate_unanswered_requests_total": 4,
        "floodgate_proxy_reused_answers_total": 5,
    }
    assert all(sample.labels["cluster"] == "c1" for sample in samples.values())
