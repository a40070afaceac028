"""Metrics of one sample, and the one of unanswered requests that broker and proxy share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from collections.abc import Mapping


def gauge(name: str, documentation: str, labels: Mapping[str, str], value: float) -> Metric:
    """Make a gauge of one sample."""
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
    """Make a counter of one sample, ``<name>_total``, and since when it counts, if given."""
    family = CounterMetricFamily(name, documentation, labels=list(labels))
    family.add_metric(list(labels.values()), value, created=created)
    return family


def unanswered_metric(cluster: str, total: int) -> Metric:
    """Return the requests that profile pulsar left without an answer."""
    return counter(
        "floodgate_unanswered_requests",
        "Listings above a limit, never answered, as shipped",
        {"cluster": cluster},
        total,
    )
