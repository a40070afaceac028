"""Metrics of the whole broker: sums over all its topics, and the message store's metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.message_metrics.figures import add_up, sent_figures
from broker.messages.compaction.topic_compaction import SUBSCRIPTION
from broker.messages.loading.topic_index import IN_BYTES, OUT_BYTES, SYSTEM, is_system
from broker.messages.statistics import LATENCY_BUCKETS_MS, Histogram
from limiter.metrics.instruments import table
from limiter.metrics.prometheus import family

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.messages.loading.loaded_topics import LoadedTopics
    from broker.messages.loading.topic_index import PastTopics
    from broker.messages.stores.room import StoreFigures
    from broker.messages.subscriptions.consumer import AnySubscription
    from broker.messages.topic import Topic
    from limiter.metrics.instruments import Table
    from server.metrics.exposition import Families, SampleTable

_SUMS = (
    "subscriptions_count",
    "producers_count",
    "consumers_count",
    "rate_in",
    "rate_out",
    "throughput_in",
    "throughput_out",
    "storage_size",
    "storage_logical_size",
    "storage_write_rate",
    "storage_read_rate",
    "storage_read_cache_misses_rate",
    "msg_backlog",
)
_QUANTILES = ("0.0", "0.5", "0.95", "0.99", "0.999", "0.9999", "1.0")


class BrokerSums:
    """Sums of metrics over all topics, and the distribution of their publish latencies."""

    def __init__(self, past: PastTopics) -> None:
        # Copied at the start: the walk itself counts topics unloaded meanwhile.
        self._sums: dict[str, float] = dict(past.totals)
        self._latency = Histogram(LATENCY_BUCKETS_MS.values())
        self._latency.add_all(past.latency)

    def add(self, topic: Topic, figures: Mapping[str, float]) -> None:
        """Add a topic's metric values, including its removed subscriptions' values, to the sums."""
        add_up(self._sums, figures)
        self._latency.add_all(topic.latency)
        if is_system(topic):
            add_up(self._sums, {SYSTEM + IN_BYTES: topic.statistics.size_bytes})

    def add_sent(self, subscription: AnySubscription) -> None:
        """Add the messages and bytes sent to a subscription's consumers to the sums."""
        sent = sent_figures(subscription)
        if subscription.name == SUBSCRIPTION:
            sent[SYSTEM + OUT_BYTES] = sent[OUT_BYTES]
        add_up(self._sums, sent)

    def add_closing(self, topic: Topic, totals: Mapping[str, float]) -> None:
        """Add the messages and bytes of a topic that is being unloaded to the sums."""
        add_up(self._sums, totals)
        self._latency.add_all(topic.latency)

    def show(self, table: SampleTable, cluster: dict[str, str], topics: LoadedTopics) -> None:
        """Add the broker's samples, which are sums over all topics, to ``table``.

        Args:
            table: The table to which the samples are added.
            cluster: The label common to all samples.
            topics: The loaded topics.
        """
        sums, prefix = self._sums, "pulsar_broker"
        table.gauge(f"{prefix}_topics_count", cluster, len(topics))
        for name in _SUMS:
            table.gauge(f"{prefix}_{name}", cluster, sums.get(name, 0))
        for label, name in (("system_topic", IN_BYTES), ("system_subscription", OUT_BYTES)):
            own = sums.get(SYSTEM + name, 0)
            for said, value in (("false", sums.get(name, 0) - own), ("true", own)):
                table.gauge(f"{prefix}_{name}", {**cluster, label: said}, value)
        for quota in ("size", "time"):
            name = f"{prefix}_storage_backlog_quota_exceeded_evictions_total"
            table.gauge(name, {**cluster, "quota_type": quota}, sums.get(f"evictions_{quota}", 0))
        table.gauge(f"{prefix}_topic_load_pending_requests", cluster, topics.pending_loads)
        since = topics.opened_at / 1000
        table.counter("topic_load_failed", cluster, topics.failed_loads, created=since)
        self._show_latency(table, cluster)

    def _show_latency(self, table: SampleTable, cluster: dict[str, str]) -> None:
        all_of_it = self._latency
        quantiles = {one: all_of_it.quantile(float(one)) for one in _QUANTILES}
        name = "pulsar_broker_publish_latency"
        table.summary(name, cluster, quantiles, all_of_it.count, all_of_it.total)


STORE: Table[StoreFigures] = table(
    "floodgate_message_store_",
    ("entries", "Stored entries", "entries"),
    ("data_bytes", "Bytes of stored entries", "data_bytes"),
    ("bytes", "Bytes of stored entries, including overhead", "charged_bytes"),
    ("limit_bytes", "Limit of the message store's bytes; 0: none", "bounds.process"),
    ("refused_total", "Messages refused at a bound of stored bytes", "refused"),
)
"""The contents and counters of the message store."""

DATABASE: Table[StoreFigures] = table(
    "floodgate_message_database_",
    ("file_bytes", "Bytes of the database, write-ahead log included", "file_bytes"),
    ("recent_bytes", "Bytes of the newest entries, kept in memory", "recent_bytes"),
    ("unwritten_bytes", "Bytes not yet written to the database", "unwritten_bytes"),
    ("longest_transaction_seconds", "Longest transaction's time", "writing.longest_seconds"),
    ("fetched_entries_total", "Entries read from the database", "fetched_entries"),
    ("transactions_total", "Database transactions", "writing.transactions"),
    ("written_bytes_total", "Bytes written to the database", "writing.written_bytes"),
    ("transaction_seconds_total", "Total time of database transactions", "writing.seconds"),
    ("failures_total", "Failed transactions; repeated if the disk is full", "writing.failures"),
)


def store_families(figures: StoreFigures, cluster: dict[str, str]) -> Families:
    """Return the metrics of the message store, and of its database if it has one."""
    rows = STORE if figures.writing is None else (*STORE, *DATABASE)
    return [family(row, figures, cluster) for row in rows]
