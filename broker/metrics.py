"""The broker's own metrics: connections, lookups, stores, plug-ins, watches, admin listings.

Names, types and labels are a real broker's where one has the metric; a real broker exports
connection counts as gauges with the labels of upstream's BrokerOperabilityMetrics.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from limiter.metrics.prometheus import wait_summary
from proto.version import FLOODGATE_VERSION
from server.metrics.connections import counter, gauge, unanswered_metric
from server.metrics.flow import flow_metrics, throttled_connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from prometheus_client.core import Metric

    from broker.load_usage import LoadUsage
    from broker.messages.loading.loaded_topics import LoadedTopics
    from broker.ownership.shared import SharedOwnership
    from broker.patterns.cache import ListingCache
    from broker.plugins.calls import ResourceCalls
    from broker.policies.service import PolicyService
    from broker.stores.store import MetadataStore
    from broker.topics.lookup_outcomes import LookupOutcomes
    from broker.watches.service import TopicListService
    from limiter.flow.totals import FlowTotals
    from server.connection.counters import ConnectionCounters

    _Rows: TypeAlias = tuple[tuple[str, str, float], ...]
    """Name without the prefix, documentation and value of families of one sample."""


_LOOKUP_QUANTILES = (0.5, 0.99, 0.999, 1.0)
_LOAD_QUANTILES = {
    "median": 0.5,
    "75percentile": 0.75,
    "95percentile": 0.95,
    "99_percentile": 0.99,
    "99_9_percentile": 0.999,
    "99_99_percentile": 0.9999,
}
"""The summary's quantiles by the words in the names of equivalent gauges."""
_SHARES = {
    "cpu": "Processor time of the last minute, in percent of all processors",
    "memory": "Resident memory, in percent of the container's or machine's",
    "directMemory": "Bytes queued for clients that no permit of a listing pays for, in percent of "
    "floodgateMaxPendingOutboundMB",
}


class Families(Collector):
    """Families of metrics, read at each scrape."""

    def __init__(self, read: Callable[[], Iterator[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Return all families."""
        return self._read()


def _rows(cluster: str, prefix: str, gauges: _Rows, counters: _Rows = ()) -> Iterator[Metric]:
    labels = {"cluster": cluster}
    for name, documentation, value in gauges:
        yield gauge(f"{prefix}_{name}", documentation, labels, value)
    for name, documentation, value in counters:
        yield counter(f"{prefix}_{name}", documentation, labels, value)


def broker_metrics(
    cluster: str,
    advertised_address: str,
    connections: ConnectionCounters,
    lookup_pending_requests: Callable[[], int],
    unanswered_requests: Callable[[], int],
    flow: FlowTotals,
) -> Families:
    """Return the metrics of connections, lookups, unanswered listings and outbound bytes."""
    labels = {"cluster": cluster, "broker": advertised_address, "metric": "broker_connection"}

    def read() -> Iterator[Metric]:
        counts = connections
        for name, documentation, value in (
            ("active_connections", "Open connections", counts.active),
            ("connection_created_total_count", "Connections accepted", counts.created_total),
            ("connection_create_success_count", "Answered CONNECTED", counts.create_success),
            ("connection_create_fail_count", "Refused at CONNECT", counts.create_fail),
            ("connection_closed_total_count", "Connections closed", counts.closed_total),
        ):
            yield gauge(f"pulsar_{name}", documentation, labels, value)
        pending = "Lookups, metadata requests and listings in progress"
        row = ("lookup_pending_requests", pending, lookup_pending_requests())
        yield from _rows(cluster, "pulsar_broker", (row,))
        yield unanswered_metric(cluster, unanswered_requests())
        yield from flow_metrics(cluster, flow)
        yield throttled_connections(cluster, flow)

    return Families(read)


def lookup_metrics(cluster: str, outcomes: LookupOutcomes) -> Families:
    """Return the metrics of lookups: durations and outcomes."""
    labels = {"cluster": cluster}

    def read() -> Iterator[Metric]:
        name, took = "pulsar_broker_lookup", "Milliseconds until lookups were answered"
        yield wait_summary(name, took, labels, outcomes.times, _LOOKUP_QUANTILES)
        for ended, documentation, total in (
            ("answers", "Lookups answered with the topic's broker", outcomes.answers),
            ("redirects", "Lookups redirected to another broker", outcomes.redirects),
            ("failures", "Lookups failed", outcomes.failures),
        ):
            yield counter(f"{name}_{ended}", documentation, labels, total, outcomes.since)

    return Families(read)


def topic_load_metrics(cluster: str, address: str, topics: LoadedTopics) -> Families:
    """Return the metrics of loaded topics: the loading time, in two forms, as recorded."""
    name = "pulsar_topic_load_times"
    labels = {"cluster": cluster, "broker": address, "metric": name}

    def read() -> Iterator[Metric]:
        times, quantiles = topics.load_times, tuple(_LOAD_QUANTILES.values())
        took, since = "Milliseconds until topics were loaded", topics.opened_at / 1000
        yield wait_summary(name, took, {"cluster": cluster}, times, quantiles, since)
        millis = dict(zip(_LOAD_QUANTILES, times.quantiles(quantiles), strict=True))
        millis["mean"] = times.sum_millis / times.count if times.count else math.nan
        for which, value in millis.items():
            yield gauge(f"pulsar_topic_load_time_{which}_ms", took, labels, value)
        failed = "Topics that failed to load"
        yield gauge("pulsar_topic_load_failed_count", failed, labels, topics.failed_loads)

    return Families(read)


def load_metrics(cluster: str, address: str, usage: LoadUsage) -> Families:
    """Return a broker's shares of its machine, in percent."""
    labels = {"cluster": cluster, "broker": address, "metric": "loadBalancing"}

    def read() -> Iterator[Metric]:
        for what, percent in usage.percent().items():
            yield gauge(f"pulsar_lb_{what}_usage", _SHARES[what], labels, percent)

    return Families(read)


def version_metrics(cluster: str) -> Families:
    """Return the version in the form used by dashboards of a real broker."""
    labels = {"cluster": cluster, "version": FLOODGATE_VERSION, "commit": ""}
    return Families(lambda: iter([gauge("pulsar_version_info", "The version", labels, 1)]))


def plugin_metrics(cluster: str, calls: ResourceCalls) -> Families:
    """Return the metrics of a listing plug-in."""

    def read() -> Iterator[Metric]:
        waited = "Calls of the listing plug-in under way"
        given_up = "Timed-out calls of the listing plug-in still running"
        failed = "Failed calls of the listing plug-in"
        return _rows(
            cluster,
            "floodgate_resources",
            (("calls", waited, calls.under_way), ("overdue_calls", given_up, calls.overdue)),
            (("failures", failed, calls.failures_total),),
        )

    return Families(read)


def store_metrics(cluster: str, store: MetadataStore, max_bytes: int) -> Families:
    """Return the metrics of a store's snapshots in memory; floodgateSnapshotCacheMB in bytes."""

    def read() -> Iterator[Metric]:
        kept = "Bytes of namespaces read from the store and kept"
        rows = (
            ("bytes", kept, store.cached_bytes),
            ("limit_bytes", "Limit of the snapshot cache", max_bytes),
        )
        return _rows(cluster, "floodgate_snapshot_cache", rows)

    return Families(read)


def listing_cache_metrics(cluster: str, cache: ListingCache) -> Families:
    """Return the metrics of the listing cache."""

    def read() -> Iterator[Metric]:
        held = cache.statistics()
        return _rows(
            cluster,
            "floodgate_listing_cache",
            (
                ("bytes", "Bytes of results and columns remembered of listings", held.bytes),
                ("limit_bytes", "Limit of the listing cache; 0: off", cache.max_bytes),
                ("entries", "Results and columns remembered of listings", held.entries),
            ),
            (
                ("hits", "Listing cache hits", held.hits),
                ("misses", "Listing cache misses", held.misses),
                ("evictions", "Listing cache evictions", held.evictions),
            ),
        )

    return Families(read)


def admin_metrics(cluster: str, active_listings: Callable[[], int]) -> Families:
    """Return the metrics of the admin REST, absent upstream."""

    def read() -> Iterator[Metric]:
        written = "Listings being written over HTTP"
        return _rows(cluster, "floodgate_admin", (("listings", written, active_listings()),))

    return Families(read)


def policy_metrics(cluster: str, policies: PolicyService) -> Families:
    """Return the metrics of message policies, absent upstream."""

    def read() -> Iterator[Metric]:
        kept = "Namespaces and topics with message policies"
        return _rows(cluster, "floodgate_policies", (("documents", kept, len(policies)),))

    return Families(read)


def watch_metrics(cluster: str, watches: TopicListService) -> Families:
    """Return the metrics of topic list watches, absent upstream."""

    def read() -> Iterator[Metric]:
        registry, totals = watches.registry, watches.totals
        gauges = (
            ("watchers", "Open topic list watchers", totals.watchers),
            ("watch_sets", "Distinct sets watched", registry.sets),
            ("watch_bytes", "Approximate memory of watches", registry.held_bytes),
            ("watch_limit_bytes", "Limit of watches; 0: unlimited", registry.settings.max_bytes),
            ("watchers_lagging", "Lagging watchers", totals.lagging),
        )
        counters = (
            ("watch_updates", "Updates queued for watchers", totals.updates),
            (
                "watch_reconciling_updates",
                "Watch updates covering several changes",
                totals.reconciling,
            ),
            (
                "watch_relistings",
                "Listings of a namespace after a missed change",
                totals.relistings,
            ),
            ("watch_refused", "Watches refused for want of memory", totals.refused),
            ("watch_retries", "Permits asked for again", totals.retries),
        )
        return _rows(cluster, "floodgate_topic", gauges, counters)

    return Families(read)


def ownership_metrics(cluster: str, ownership: SharedOwnership) -> Families:
    """Return the metrics of bundles divided among several brokers."""

    def read() -> Iterator[Metric]:
        gauges = (("owned_bundles", "Bundles owned by this broker", ownership.owned),)
        counters = (
            (
                "moved_bundles",
                "Bundles taken over without messages",
                ownership.moved_total,
            ),
            (
                "lost_leases",
                "Losses of all bundles at once",
                ownership.sessions_ended,
            ),
        )
        yield from _rows(cluster, "floodgate", gauges, counters)

    return Families(read)
