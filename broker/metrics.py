"""The broker's own metrics: connections, pending lookups, unanswered requests, outbound bytes.

Names, types and labels are those of a real broker, which exports its connection counts as
gauges with the labels of upstream's BrokerOperabilityMetrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from server.metrics.connections import counter, gauge, unanswered_metric
from server.metrics.flow import flow_metrics, throttled_connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric

    from broker.patterns.cache import ListingCache
    from broker.plugins.calls import ResourceCalls
    from broker.stores.store import MetadataStore
    from limiter.flow.totals import FlowTotals
    from server.connection.counters import ConnectionCounters


class BrokerMetrics(Collector):
    """The metrics of connections, lookups and outbound bytes, read at each scrape.

    Args:
        cluster: The value of the label ``cluster``.
        advertised_address: The value of the label ``broker``.
        connections: Counted by the connections.
        lookup_pending_requests: Returns how many requests hold a place of the lookup semaphore.
        unanswered_requests: Returns how many listings were left without an answer.
        flow: Bytes that wait to leave the process, and connections that are paused for them.
    """

    def __init__(
        self,
        cluster: str,
        advertised_address: str,
        connections: ConnectionCounters,
        lookup_pending_requests: Callable[[], int],
        unanswered_requests: Callable[[], int],
        flow: FlowTotals,
    ) -> None:
        self._cluster = cluster
        self._advertised_address = advertised_address
        self._connections = connections
        self._lookup_pending_requests = lookup_pending_requests
        self._unanswered_requests = unanswered_requests
        self._flow = flow

    def collect(self) -> Iterator[Metric]:
        """Return all families."""
        yield from self._connection_gauges()
        yield gauge(
            "pulsar_broker_lookup_pending_requests",
            "Lookups, metadata requests and listings in progress",
            {"cluster": self._cluster},
            self._lookup_pending_requests(),
        )
        yield unanswered_metric(self._cluster, self._unanswered_requests())
        yield from flow_metrics(self._cluster, self._flow)
        yield throttled_connections(self._cluster, self._flow)

    def _connection_gauges(self) -> Iterator[Metric]:
        counts = self._connections
        labels = {
            "cluster": self._cluster,
            "broker": self._advertised_address,
            "metric": "broker_connection",
        }
        for name, documentation, value in (
            ("active_connections", "Connections that are open", counts.active),
            ("connection_created_total_count", "Connections accepted", counts.created_total),
            ("connection_create_success_count", "Answered CONNECTED", counts.create_success),
            ("connection_create_fail_count", "Refused at CONNECT", counts.create_fail),
            ("connection_closed_total_count", "Connections that ended", counts.closed_total),
        ):
            yield gauge(f"pulsar_{name}", documentation, labels, value)


class ResourceMetrics(Collector):
    """The metrics of a listing plug-in, read at each scrape.

    Args:
        cluster: The value of the label ``cluster``.
        calls: Its calls.
    """

    def __init__(self, cluster: str, calls: ResourceCalls) -> None:
        self._labels = {"cluster": cluster}
        self._calls = calls

    def collect(self) -> Iterator[Metric]:
        """Return all families."""
        yield gauge(
            "floodgate_resources_calls",
            "Calls of the listing plug-in that requests wait for",
            self._labels,
            self._calls.under_way,
        )
        yield gauge(
            "floodgate_resources_overdue_calls",
            "Calls of the listing plug-in that were given up and still run",
            self._labels,
            self._calls.overdue,
        )
        yield counter(
            "floodgate_resources_failures",
            "Calls of the listing plug-in that raised, took too long or answered nonsense",
            self._labels,
            self._calls.failures_total,
        )


class StoreMetrics(Collector):
    """The metrics of a store's snapshots in memory, read at each scrape.

    Args:
        cluster: The value of the label ``cluster``.
        store: The store.
        max_bytes: floodgateSnapshotCacheMB, in bytes.
    """

    def __init__(self, cluster: str, store: MetadataStore, max_bytes: int) -> None:
        self._labels = {"cluster": cluster}
        self._store = store
        self._max_bytes = max_bytes

    def collect(self) -> Iterator[Metric]:
        """Return all families."""
        for name, documentation, value in (
            ("bytes", "Bytes of namespaces read from the store and kept", self._store.cached_bytes),
            ("limit_bytes", "Their limit", self._max_bytes),
        ):
            yield gauge(f"floodgate_snapshot_cache_{name}", documentation, self._labels, value)


class ListingCacheMetrics(Collector):
    """The metrics of the listing cache, read at each scrape.

    Args:
        cluster: The value of the label ``cluster``.
        cache: The cache.
    """

    def __init__(self, cluster: str, cache: ListingCache) -> None:
        self._labels = {"cluster": cluster}
        self._cache = cache

    def collect(self) -> Iterator[Metric]:
        """Return all families."""
        held = self._cache.statistics()
        for name, documentation, value in (
            ("bytes", "Bytes of results and columns remembered of listings", held.bytes),
            ("limit_bytes", "Their limit; 0 remembers nothing", self._cache.max_bytes),
            ("entries", "Results and columns remembered of listings", held.entries),
        ):
            yield gauge(f"floodgate_listing_cache_{name}", documentation, self._labels, value)
        for name, documentation, value in (
            ("hits", "Results and columns that were remembered when asked for", held.hits),
            ("misses", "Results and columns that had to be made", held.misses),
            ("evictions", "Results and columns that gave way to others", held.evictions),
        ):
            yield counter(f"floodgate_listing_cache_{name}", documentation, self._labels, value)
