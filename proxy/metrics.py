"""The proxy's metrics: connections, requests, pending lookups, unanswered requests, outbound bytes.

Names are upstream's ProxyService's; a counter scrapes as ``<name>_total``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from server.metrics.connections import counter, gauge, unanswered_metric
from server.metrics.flow import flow_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Sized

    from prometheus_client.core import Metric

    from limiter.flow.lookup_semaphore import LookupSemaphore
    from limiter.flow.totals import FlowTotals
    from proxy.listing.live_answers import LiveAnswers
    from server.connection.counters import ConnectionCounters, ProxyCounters
    from server.connection.unanswered_requests import UnansweredRequests

_COUNTERS = {
    "new_connections": "Client connections accepted",
    "rejected_connections": "Client connections refused: too many open",
    "binary_ops": "Commands handled",
    "lookup_requests": "Lookups forwarded",
    "rejected_lookup_requests": "Lookups refused: too many pending",
    "partitions_metadata_requests": "Partition metadata requests forwarded",
    "rejected_partitions_metadata_requests": "Partition requests refused: too many",
    "get_topics_of_namespace_requests": "Topic listings forwarded",
    "rejected_get_topics_of_namespace_requests": "Topic listings refused: too many",
    "get_schema_requests": "Schemas asked for",
}


class ProxyMetrics(Collector):
    """A collector that reads the proxy's counters at each scrape."""

    def __init__(  # noqa: PLR0913 - one for each part of the proxy that counts
        self,
        cluster: str,
        connections: ConnectionCounters,
        counters: ProxyCounters,
        lookups: LookupSemaphore,
        unanswered: UnansweredRequests,
        live: LiveAnswers,
        flow: FlowTotals,
        role_pools: Sized = (),
    ) -> None:
        self._cluster = cluster
        self._connections = connections
        self._counters = counters
        self._lookups = lookups
        self._unanswered = unanswered
        self._live = live
        self._flow = flow
        self._role_pools = role_pools

    def collect(self) -> Iterator[Metric]:
        """Return all families."""
        labels = {"cluster": self._cluster}
        yield gauge(
            "pulsar_proxy_active_connections",
            "Open client connections",
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
            self._lookups.pending_requests,
        )
        yield counter(
            "floodgate_proxy_reused_answers",
            "Topic lists sent from bytes already on their way to clients",
            labels,
            self._live.reused_total,
        )
        yield gauge(
            "floodgate_proxy_role_pools",
            "Roles with shared connections to brokers",
            labels,
            len(self._role_pools),
        )
        yield unanswered_metric(self._cluster, self._unanswered.total)
        yield from flow_metrics(self._cluster, self._flow)
