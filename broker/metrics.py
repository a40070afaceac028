"""The broker's own metrics: connections, lookups, stores, plug-ins, watches, load.

Names, types and labels are a real broker's where one has the metric; a real broker exports
connection counts as gauges with the labels of upstream's BrokerOperabilityMetrics.
"""

from __future__ import annotations

import math
import os
import resource
import time
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from limiter.flow.causes import PauseCause
from limiter.metrics.instruments import summary, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sized

    from broker.admin.listing_response import ListingResponses
    from broker.messages.loading.loaded_topics import LoadedTopics
    from broker.ownership.shared import SharedOwnership
    from broker.patterns.cache import ListingCache
    from broker.plugins.calls import ResourceCalls
    from broker.stores.store import MetadataStore
    from broker.topics.lookup import LookupOutcomes
    from broker.watches.service import TopicListService
    from limiter.clock import Clock
    from limiter.flow.lookup_semaphore import LookupSemaphore
    from limiter.flow.outbound_buffer import OutboundTotals
    from limiter.flow.totals import FlowTotals
    from limiter.metrics.instruments import Table
    from server.connection.counters import ConnectionCounters

REPORT_SECONDS = 60.0
"""Upstream's loadBalancerHostUsageCheckIntervalMinutes."""
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_RESIDENT = Path("/proc/self/statm")


class LoadUsage:
    """The percentages of processors, memory and outbound buffer that the broker uses now.

    Read at each scrape. Processor time is a mean over at least a minute, the interval of a real
    broker's load reports, independent of the number of scrapes.

    Args:
        outbound: Bytes waiting for clients, and their bound (floodgateMaxPendingOutboundMB).
        processor_seconds: Reads the processor time of the process.
    """

    def __init__(
        self,
        outbound: OutboundTotals,
        clock: Clock,
        processor_seconds: Callable[[], float] = time.process_time,
    ) -> None:
        self._outbound = outbound
        self._clock = clock
        self._processor_seconds = processor_seconds
        self._processors = os.cpu_count() or 1
        self._began = clock.now(), processor_seconds()
        self._processor_percent = 0.0

    def percent(self) -> dict[str, float]:
        """Return the used percentage of each resource whose capacity is known."""
        shares = {"cpu": self._processor_share()}
        whole = memory_limit_bytes()
        if whole > 0:
            shares["memory"] = 100 * resident_bytes() / whole
        most = self._outbound.max_unpaid_bytes
        if most > 0:
            shares["directMemory"] = 100 * self._outbound.unpaid_bytes / most
        return shares

    def _processor_share(self) -> float:
        now, used = self._clock.now(), self._processor_seconds()
        since, used_then = self._began
        if now - since >= REPORT_SECONDS:
            share = (used - used_then) / (now - since) / self._processors
            self._processor_percent = 100 * share
            self._began = now, used
        return self._processor_percent


def memory_limit_bytes() -> int:
    """Return the memory the process may use: the container's limit, or the machine's memory."""
    limits = [os.sysconf("SC_PHYS_PAGES") * resource.getpagesize()]
    texts = [path.read_text(encoding="ascii") for path in map(Path, _LIMITS) if path.exists()]
    return min(limits + [int(text) for text in texts if text.strip().isdecimal()])


def resident_bytes() -> int:
    """Return the process's resident memory in bytes, or 0 if the system does not report it."""
    if not _RESIDENT.exists():
        return 0
    return int(_RESIDENT.read_text(encoding="ascii").split()[1]) * resource.getpagesize()


CONNECTIONS: Table[ConnectionCounters] = table(
    "pulsar_",
    ("active_connections", "Open connections", "active"),
    ("connection_created_total_count", "Connections accepted", "created_total"),
    ("connection_create_success_count", "Connections answered with CONNECTED", "create_success"),
    ("connection_create_fail_count", "Connections refused at CONNECT", "create_fail"),
    ("connection_closed_total_count", "Connections closed", "closed_total"),
)
COMMAND_ERRORS: Table[ConnectionCounters] = table(
    "floodgate_command_",
    ("errors_total{error}", "Commands answered with ERROR, by Pulsar's code", "errors"),
)
PENDING_LOOKUPS: Table[LookupSemaphore] = table(
    "pulsar_broker_lookup_",
    ("pending_requests", "Lookups, metadata requests and listings in progress", "pending_requests"),
)
# As in the release: paused publishers only.
THROTTLED: Table[FlowTotals] = table(
    "pulsar_broker_",
    (
        "throttled_connections",
        "Connections paused for too many pending publishes",
        lambda flow: flow.connections[PauseCause.PENDING_PUBLISHES],
    ),
)

LOOKUP_TIMES: Table[LookupOutcomes] = (
    summary(
        "pulsar_broker_lookup",
        "Milliseconds until a lookup was answered",
        lambda outcomes: outcomes.times,
        (0.5, 0.99, 0.999, 1.0),
    ),
)
LOOKUPS: Table[LookupOutcomes] = table(
    "pulsar_broker_lookup_",
    ("answers_total", "Lookups answered with the topic's broker", "answers"),
    ("redirects_total", "Lookups redirected to another broker", "redirects"),
    ("failures_total", "Failed lookups", "failures"),
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


def load_figures(topics: LoadedTopics) -> dict[str, float]:
    """Return the times that topics took to load, in ms (quantiles, mean), and the failed loads."""
    times = topics.load_times
    millis = times.quantiles(tuple(_LOAD_QUANTILES.values()))
    mean = times.sum_millis / times.count if times.count else math.nan
    return dict(zip(_LOAD_QUANTILES, millis, strict=True)) | {
        "mean": mean,
        "failed": topics.failed_loads,
    }


TOPIC_LOADS: Table[Mapping[str, float]] = table(
    "pulsar_topic_load_",
    *((f"time_{name}_ms", _LOADED, itemgetter(name)) for name in (*_LOAD_QUANTILES, "mean")),
    ("failed_count", "Topics that failed to load", itemgetter("failed")),
)


def shares_of(percent: Mapping[str, float]) -> Table[Mapping[str, float]]:
    """Return a metric for each resource in ``percent``: the percentage that the broker uses."""
    rows = {
        "cpu": "Processor time of the last minute, in percent of all processors",
        "memory": "Resident memory, in percent of the container's or machine's memory",
        "directMemory": "Bytes queued for clients that no permit of a listing pays for, in percent "
        "of floodgateMaxPendingOutboundMB",
    }
    return table(
        "pulsar_lb_", *((f"{name}_usage", rows[name], itemgetter(name)) for name in percent)
    )


# In the form used by dashboards of a real broker.
VERSION: Table[object] = table("pulsar_", ("version_info", "The broker's version", lambda _: 1))

PLUGIN: Table[ResourceCalls] = table(
    "floodgate_resources_",
    ("calls", "Calls of the listing plug-in under way", "under_way"),
    ("overdue_calls", "Timed-out calls of the listing plug-in still running", "overdue"),
    ("failures_total", "Failed calls of the listing plug-in", "failures_total"),
)
SNAPSHOTS: Table[tuple[MetadataStore, int]] = table(
    "floodgate_snapshot_cache_",
    ("bytes", "Bytes of namespaces cached from the store", lambda it: it[0].cached_bytes),
    ("limit_bytes", "Limit of the cache of namespaces", lambda it: it[1]),
)
LISTING_CACHE: Table[ListingCache] = table(
    "floodgate_listing_cache_",
    (
        "bytes",
        "Bytes of the cache of listings' results and columns",
        lambda cache: cache.statistics().bytes,
    ),
    ("limit_bytes", "Limit of the listing cache; 0: off", "max_bytes"),
    (
        "entries",
        "Entries of the cache of listings' results and columns",
        lambda cache: cache.statistics().entries,
    ),
    ("hits_total", "Listing cache hits", lambda cache: cache.statistics().hits),
    ("misses_total", "Listing cache misses", lambda cache: cache.statistics().misses),
    ("evictions_total", "Listing cache evictions", lambda cache: cache.statistics().evictions),
)
POLICIES: Table[Sized] = table(
    "floodgate_policies_", ("documents", "Namespaces and topics with message policies", len)
)
ADMIN: Table[ListingResponses] = table(
    "floodgate_admin_", ("listings", "Topic lists being sent over HTTP", "active")
)
OWNERSHIP: Table[SharedOwnership] = table(
    "floodgate_",
    ("owned_bundles", "Bundles owned by this broker", "owned"),
    ("moved_bundles_total", "Bundles taken over without their messages", "moved_total"),
    ("lost_leases_total", "Leases lost, each with all owned bundles", "sessions_ended"),
)
WATCHES: Table[TopicListService] = table(
    "floodgate_topic_",
    ("watchers", "Open topic list watchers", "totals.watchers"),
    ("watch_sets", "Distinct sets of topics watched", "registry.sets"),
    ("watch_bytes", "Approximate memory of watches", "registry.held_bytes"),
    ("watch_limit_bytes", "Limit of watches' memory; 0: none", "registry.settings.max_bytes"),
    ("watchers_lagging", "Watchers without the newest version", "totals.lagging"),
    ("watch_updates_total", "Updates queued for watchers", "totals.updates"),
    (
        "watch_reconciling_updates_total",
        "Watch updates covering several changes",
        "totals.reconciling",
    ),
    (
        "watch_relistings_total",
        "Namespaces listed again after missed changes",
        "totals.relistings",
    ),
    ("watch_refused_total", "Watches refused for lack of memory", "totals.refused"),
    ("watch_retries_total", "Watches' repeated requests for memory", "totals.retries"),
)
