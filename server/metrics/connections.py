"""Metrics that broker and proxy have in common: bytes that wait to leave, unanswered requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from limiter.flow.outbound_buffer import OutboundTotals


def gauge(name: str, documentation: str, labels: Mapping[str, str], value: float) -> Metric:
    """Make a gauge of one sample."""
    family = GaugeMetricFamily(name, documentation, labels=list(labels))
    family.add_metric(list(labels.values()), value)
    return family


def counter(name: str, documentation: str, labels: Mapping[str, str], value: float) -> Metric:
    """Make a counter of one sample, ``<name>_total``."""
    family = CounterMetricFamily(name, documentation, labels=list(labels))
    family.add_metric(list(labels.values()), value)
    return family


def unanswered_metric(cluster: str, total: int) -> Metric:
    """Return the requests that profile pulsar left without an answer."""
    return counter(
        "floodgate_unanswered_requests",
        "Listings never answered because they exceed a limit, as shipped",
        {"cluster": cluster},
        total,
    )


def outbound_metrics(cluster: str, totals: OutboundTotals) -> Iterator[Metric]:
    """Yield the bytes that wait for the kernel, now and at the most."""
    labels = {"cluster": cluster}
    yield gauge(
        "floodgate_outbound_pending_bytes",
        "Bytes queued for clients that the kernel has not taken yet",
        labels,
        totals.pending_bytes,
    )
    yield gauge(
        "floodgate_outbound_pending_bytes_peak",
        "Most bytes ever queued for clients at once",
        labels,
        totals.peak_bytes,
    )
