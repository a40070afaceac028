"""Metrics with a single sample, and the metric of unanswered requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from collections.abc import Mapping


def gauge(name: str, documentation: str, labels: Mapping[str, str], value: float) -> Metric:
    """Return a gauge with a single sample."""
    family = GaugeMetricFamily(name, documentation, labels=list(labels))
    family.add_metric(list(labels.values()), value)
    return family


def counter(
    name: str,
    documentation: str,
    labels: Mapping[str, str],
    value: float,
    created: float | None = None,
) -> Metric:
    """Return a counter with a single sample, ``<name>_total``, and its start, if given."""
    family = CounterMetricFamily(name, documentation, labels=list(labels))
    family.add_metric(list(labels.values()), value, created=created)
    return family


def unanswered_metric(cluster: str, total: int) -> Metric:
    """Return the metric of requests that profile pulsar left unanswered."""
    return counter(
        "floodgate_unanswered_requests",
        "Listings above a limit, never answered, as shipped",
        {"cluster": cluster},
        total,
    )
