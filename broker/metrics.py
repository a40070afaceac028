"""The broker's own instruments: connections, lookups, stores, plug-ins, watches, admin listings.

Names, types and labels are a real broker's where one has the metric; a real broker exports
connection counts as gauges with the labels of upstream's BrokerOperabilityMetrics.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from limiter.flow.causes import PauseCause
from limiter.metrics.instruments import counter, gauge, summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sized

    from broker.admin.listing_response import ListingResponses
    from broker.messages.loading.loaded_topics import LoadedTopics
    from broker.ownership.shared import SharedOwnership
    from broker.patterns.cache import ListingCache
    from broker.plugins.calls import ResourceCalls
    from broker.stores.store import MetadataStore
    from broker.topics.lookup import LookupOutcomes
    from broker.watches.service import TopicListService
    from limiter.flow.lookup_semaphore import LookupSemaphore
    from limiter.flow.totals import FlowTotals
    from limiter.metrics.instruments import Instrument, Table
    from limiter.metrics.wait_times import WaitTimes
    from server.connection.counters import ConnectionCounters

CONNECTIONS: Table[ConnectionCounters] = (
    gauge("pulsar_active_connections", "Open connections", lambda it: it.active),
    gauge(
        "pulsar_connection_created_total_count", "Connections accepted", lambda it: it.created_total
    ),
    gauge(
        "pulsar_connection_create_success_count", "Answered CONNECTED", lambda it: it.create_success
    ),
    gauge("pulsar_connection_create_fail_count", "Refused at CONNECT", lambda it: it.create_fail),
    gauge("pulsar_connection_closed_total_count", "Connections closed", lambda it: it.closed_total),
)
PENDING_LOOKUPS: Table[LookupSemaphore] = (
    gauge(
        "pulsar_broker_lookup_pending_requests",
        "Lookups, metadata requests and listings in progress",
        lambda lookups: lookups.pending_requests,
    ),
)
THROTTLED: Table[FlowTotals] = (
    # As in the release: paused publishers only.
    gauge(
        "pulsar_broker_throttled_connections",
        "Connections paused for too many pending publishes",
        lambda flow: flow.connections[PauseCause.PENDING_PUBLISHES],
    ),
)

LOOKUP_TIMES: Table[LookupOutcomes] = (
    summary(
        "pulsar_broker_lookup",
        "Milliseconds until lookups were answered",
        lambda outcomes: outcomes.times,
        (0.5, 0.99, 0.999, 1.0),
    ),
)
LOOKUPS: Table[LookupOutcomes] = (
    counter(
        "pulsar_broker_lookup_answers",
        "Lookups answered with the topic's broker",
        lambda outcomes: outcomes.answers,
    ),
    counter(
        "pulsar_broker_lookup_redirects",
        "Lookups redirected to another broker",
        lambda outcomes: outcomes.redirects,
    ),
    counter("pulsar_broker_lookup_failures", "Lookups failed", lambda outcomes: outcomes.failures),
)

_LOAD_QUANTILES = {
    "median": 0.5,
    "75percentile": 0.75,
    "95percentile": 0.95,
    "99_percentile": 0.99,
    "99_9_percentile": 0.999,
    "99_99_percentile": 0.9999,
}
"""The summary's quantiles by the words in the names of equivalent gauges."""
_LOADED = "Milliseconds until topics were loaded"
TOPIC_LOAD_TIMES: Table[LoadedTopics] = (
    summary(
        "pulsar_topic_load_times",
        _LOADED,
        lambda topics: topics.load_times,
        tuple(_LOAD_QUANTILES.values()),
    ),
)


def _loaded_in(name: str, quantile: float) -> Instrument[LoadedTopics]:
    return gauge(
        f"pulsar_topic_load_time_{name}_ms",
        _LOADED,
        lambda topics: topics.load_times.quantiles((quantile,))[0],
    )


def _mean_millis(times: WaitTimes) -> float:
    return times.sum_millis / times.count if times.count else math.nan


TOPIC_LOADS: Table[LoadedTopics] = (
    *(_loaded_in(name, quantile) for name, quantile in _LOAD_QUANTILES.items()),
    gauge(
        "pulsar_topic_load_time_mean_ms", _LOADED, lambda topics: _mean_millis(topics.load_times)
    ),
    gauge(
        "pulsar_topic_load_failed_count",
        "Topics that failed to load",
        lambda topics: topics.failed_loads,
    ),
)

SHARES: dict[str, Instrument[Mapping[str, float]]] = {
    "cpu": gauge(
        "pulsar_lb_cpu_usage",
        "Processor time of the last minute, in percent of all processors",
        lambda percent: percent["cpu"],
    ),
    "memory": gauge(
        "pulsar_lb_memory_usage",
        "Resident memory, in percent of the container's or machine's",
        lambda percent: percent["memory"],
    ),
    "directMemory": gauge(
        "pulsar_lb_directMemory_usage",
        "Bytes queued for clients that no permit of a listing pays for, in percent of "
        "floodgateMaxPendingOutboundMB",
        lambda percent: percent["directMemory"],
    ),
}
"""A broker's shares of its machine, by resource."""

# In the form used by dashboards of a real broker.
VERSION: Table[object] = (gauge("pulsar_version_info", "The version", lambda _: 1),)

PLUGIN: Table[ResourceCalls] = (
    gauge(
        "floodgate_resources_calls",
        "Calls of the listing plug-in under way",
        lambda calls: calls.under_way,
    ),
    gauge(
        "floodgate_resources_overdue_calls",
        "Timed-out calls of the listing plug-in still running",
        lambda calls: calls.overdue,
    ),
    counter(
        "floodgate_resources_failures",
        "Failed calls of the listing plug-in",
        lambda calls: calls.failures_total,
    ),
)

SNAPSHOTS: Table[tuple[MetadataStore, int]] = (
    gauge(
        "floodgate_snapshot_cache_bytes",
        "Bytes of namespaces read from the store and kept",
        lambda found: found[0].cached_bytes,
    ),
    gauge(
        "floodgate_snapshot_cache_limit_bytes",
        "Limit of the snapshot cache",
        lambda found: found[1],
    ),
)

LISTING_CACHE: Table[ListingCache] = (
    gauge(
        "floodgate_listing_cache_bytes",
        "Bytes of results and columns remembered of listings",
        lambda cache: cache.statistics().bytes,
    ),
    gauge(
        "floodgate_listing_cache_limit_bytes",
        "Limit of the listing cache; 0: off",
        lambda cache: cache.max_bytes,
    ),
    gauge(
        "floodgate_listing_cache_entries",
        "Results and columns remembered of listings",
        lambda cache: cache.statistics().entries,
    ),
    counter(
        "floodgate_listing_cache_hits", "Listing cache hits", lambda cache: cache.statistics().hits
    ),
    counter(
        "floodgate_listing_cache_misses",
        "Listing cache misses",
        lambda cache: cache.statistics().misses,
    ),
    counter(
        "floodgate_listing_cache_evictions",
        "Listing cache evictions",
        lambda cache: cache.statistics().evictions,
    ),
)

POLICIES: Table[Sized] = (
    gauge("floodgate_policies_documents", "Namespaces and topics with message policies", len),
)
ADMIN: Table[ListingResponses] = (
    gauge(
        "floodgate_admin_listings",
        "Listings being written over HTTP",
        lambda listings: listings.active,
    ),
)

OWNERSHIP: Table[SharedOwnership] = (
    gauge(
        "floodgate_owned_bundles", "Bundles owned by this broker", lambda ownership: ownership.owned
    ),
    counter(
        "floodgate_moved_bundles",
        "Bundles taken over without messages",
        lambda ownership: ownership.moved_total,
    ),
    counter(
        "floodgate_lost_leases",
        "Losses of all bundles at once",
        lambda ownership: ownership.sessions_ended,
    ),
)

WATCHES: Table[TopicListService] = (
    gauge("floodgate_topic_watchers", "Open topic list watchers", lambda it: it.totals.watchers),
    gauge("floodgate_topic_watch_sets", "Distinct sets watched", lambda it: it.registry.sets),
    gauge(
        "floodgate_topic_watch_bytes",
        "Approximate memory of watches",
        lambda it: it.registry.held_bytes,
    ),
    gauge(
        "floodgate_topic_watch_limit_bytes",
        "Limit of watches; 0: unlimited",
        lambda it: it.registry.max_bytes,
    ),
    gauge("floodgate_topic_watchers_lagging", "Lagging watchers", lambda it: it.totals.lagging),
    counter(
        "floodgate_topic_watch_updates", "Updates queued for watchers", lambda it: it.totals.updates
    ),
    counter(
        "floodgate_topic_watch_reconciling_updates",
        "Watch updates covering several changes",
        lambda it: it.totals.reconciling,
    ),
    counter(
        "floodgate_topic_watch_relistings",
        "Listings of a namespace after a missed change",
        lambda it: it.totals.relistings,
    ),
    counter(
        "floodgate_topic_watch_refused",
        "Watches refused for want of memory",
        lambda it: it.totals.refused,
    ),
    counter(
        "floodgate_topic_watch_retries", "Permits asked for again", lambda it: it.totals.retries
    ),
)
