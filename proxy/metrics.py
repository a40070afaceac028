"""The proxy's own metrics: connections, requests, pending lookups, silent requests, outbound bytes.

Names are upstream's ProxyService's; a counter scrapes as ``<name>_total``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from server.metrics.connections import counter, gauge, unanswered_metric
from server.metrics.flow import flow_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric

    from limiter.flow.totals import FlowTotals
    from server.connection.counters import ConnectionCounters, ProxyCounters

_COUNTERS = {
    "new_connections": "Client connections accepted",
    "rejected_connections": "Client connections refused because too many were open",
    "binary_ops": "Commands handled",
    "lookup_requests": "Lookups forwarded",
    "rejected_lookup_requests": "Lookups refused because too many were pending",
    "partitions_metadata_requests": "Partition metadata requests forwarded",
    "rejected_partitions_metadata_requests": "Those refused because too many were pending",
    "get_topics_requests": "Topic listings forwarded",
    "rejected_get_topics_requests": "Topic listings refused because too many were pending",
}


@dataclass(frozen=True, slots=True)
class ProxyFigures:
    """Figures that other parts of the proxy keep.

    Attributes:
        lookup_pending_requests: How many requests hold a place of the lookup semaphore.
        unanswered_requests: How many listings were left without an answer.
        reused_answers: How many listings were bytes on their way to other clients already.
    """

    lookup_pending_requests: Callable[[], int]
    unanswered_requests: Callable[[], int]
    reused_answers: Callable[[], int]


class ProxyMetrics(Collector):
    """A collector that reads the proxy's counters at each scrape.

    Args:
        cluster: The value of the label ``cluster``.
        connections: Counted by the client connections.
        counters: The requests that the proxy served and refused.
        figures: Read from other parts at each scrape.
        flow: Bytes that wait to leave the process, and connections paused for them.
    """

    def __init__(
        self,
        cluster: str,
        connections: ConnectionCounters,
        counters: ProxyCounters,
        figures: ProxyFigures,
        flow: FlowTotals,
    ) -> None:
        self._cluster = cluster
        self._connections = connections
        self._counters = counters
        self._figures = figures
        self._flow = flow

    def collect(self) -> Iterator[Metric]:
        """Return all families."""
        labels = {"cluster": self._cluster}
        yield gauge(
            "pulsar_proxy_active_connections",
            "Client connections that are open",
            labels,
            self._connections.active,
        )
        for name, documentation in _COUNTERS.items():
            yield counter(
                f"pulsar_proxy_{name}", documentation, labels, getattr(self._counters, name)
            )
        yield gauge(
            "floodgate_proxy_lookup_pending_requests",
            "Lookups, metadata requests and listings in progress",
            labels,
            self._figures.lookup_pending_requests(),
        )
        yield counter(
            "floodgate_proxy_reused_answers",
            "Topic lists that were sent from bytes on their way to other clients already",
            labels,
            self._figures.reused_answers(),
        )
        yield unanswered_metric(self._cluster, self._figures.unanswered_requests())
        yield from flow_metrics(self._cluster, self._flow)
