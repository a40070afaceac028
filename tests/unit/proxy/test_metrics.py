"""The proxy's own samples."""

from __future__ import annotations

import dataclasses

from prometheus_client import CollectorRegistry

from limiter.outbound import OutboundTotals
from proxy.metrics import ProxyMetrics
from server.counters import ConnectionCounters, ProxyCounters
from server.exposition import exposition
from tests.support.samples import read_samples


def test_every_counter_is_exported_with_its_total() -> None:
    # Given: each counter its own number
    fields = [field.name for field in dataclasses.fields(ProxyCounters)]
    counters = ProxyCounters(**{name: number for number, name in enumerate(fields, start=1)})
    connections = ConnectionCounters()
    connections.opened()
    registry = CollectorRegistry()
    registry.register(
        ProxyMetrics("c1", connections, counters, lambda: 9, lambda: 4, OutboundTotals())
    )
    # When
    samples = {sample.name: sample for sample in read_samples(exposition(registry).decode())}
    # Then
    for number, name in enumerate(fields, start=1):
        sample = samples.pop(f"pulsar_proxy_{name}_total")
        assert (sample.type, sample.value) == ("counter", number)
    assert {name: sample.value for name, sample in samples.items()} == {
        "pulsar_proxy_active_connections": 1,
        "floodgate_proxy_lookup_pending_requests": 9,
        "floodgate_unanswered_requests_total": 4,
        "floodgate_outbound_pending_bytes": 0,
        "floodgate_outbound_pending_bytes_peak": 0,
    }
    assert all(sample.labels == {"cluster": "c1"} for sample in samples.values())
