"""Metrics of flow control: pending outbound bytes, pauses by cause, closed peers.

``pulsar_server_channel_write_buf_memory_used_bytes`` is from PIP-434 and was never released;
``pulsar_broker_throttled_connections`` counts, as in the release, paused publishers only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from limiter.flow.causes import PauseCause
from server.metrics.connections import counter, gauge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from enum import Enum

    from limiter.flow.totals import FlowTotals


def flow_metrics(cluster: str, totals: FlowTotals) -> Iterator[Metric]:
    """Yield the families common to broker and proxy."""
    outbound = totals.outbound
    queued = "Bytes queued for clients, not yet taken by the kernel"
    for name, documentation, value in (
        ("floodgate_outbound_pending_bytes", queued, outbound.pending_bytes),
        (
            "floodgate_outbound_pending_bytes_peak",
            "Most bytes ever queued for clients at once",
            outbound.peak_bytes,
        ),
        (
            "pulsar_server_channel_write_buf_memory_used_bytes",
            queued,
            outbound.pending_bytes,
        ),
        (
            "floodgate_outbound_unpaid_bytes",
            "Outbound bytes without a permit of the topic list limiter",
            outbound.unpaid_bytes,
        ),
        (
            "floodgate_parked_frames",
            "Requests read but not handled on paused connections",
            totals.parked_frames,
        ),
        ("floodgate_parked_bytes", "Bytes of parked requests", totals.parked_bytes),
        (
            "floodgate_in_flight_response_bytes",
            "Bytes of answers in the making",
            totals.response_bytes,
        ),
    ):
        yield gauge(name, documentation, {"cluster": cluster}, value)
    yield counter(
        "floodgate_oversized_commands",
        "Connections closed for an oversized command",
        {"cluster": cluster},
        totals.oversized_commands,
    )
    yield from _pauses(cluster, totals)


def throttled_connections(cluster: str, totals: FlowTotals) -> Metric:
    """Return the broker's gauge of connections paused for pending publishes."""
    return gauge(
        "pulsar_broker_throttled_connections",
        "Connections paused for too many pending publishes",
        {"cluster": cluster},
        totals.connections[PauseCause.PENDING_PUBLISHES],
    )


def _pauses(cluster: str, totals: FlowTotals) -> Iterator[Metric]:
    connections = GaugeMetricFamily(
        "floodgate_paused_connections", "Connections paused now", labels=["cluster", "cause"]
    )
    _fill(connections, cluster, totals.connections.items())
    yield connections
    for name, documentation, label, values in (
        ("floodgate_pauses", "Times a connection was paused", "cause", totals.pauses.items()),
        (
            "floodgate_paused_seconds",
            "Seconds of pauses, current ones included",
            "cause",
            totals.paused_seconds(),
        ),
        (
            "floodgate_closed_slow_peers",
            "Connections closed because the peer did not read",
            "reason",
            totals.closed.items(),
        ),
    ):
        family = CounterMetricFamily(name, documentation, labels=["cluster", label])
        _fill(family, cluster, values)
        yield family


def _fill(
    family: CounterMetricFamily | GaugeMetricFamily,
    cluster: str,
    values: Iterable[tuple[Enum, float]],
) -> None:
    for member, value in values:
        family.add_metric([cluster, str(member.value)], value)
