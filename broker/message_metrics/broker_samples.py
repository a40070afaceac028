"""The samples of the whole broker: sums over its topics, and figures of the message store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.message_metrics.subscription_figures import sent_figures
from broker.messages.compaction.topic_compaction import SUBSCRIPTION
from broker.messages.loading.topic_index import IN_BYTES, OUT_BYTES, SYSTEM, is_system
from broker.messages.publishing.statistics import LATENCY_BUCKETS_MS, Histogram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.message_metrics.subscription_figures import AnySubscription
    from broker.messages.loading.loaded_topics import LoadedTopics
    from broker.messages.loading.topic_index import PastTopics
    from broker.messages.stores.room import StoreFigures, WriteFigures
    from broker.messages.topic import Topic
    from server.metrics.sample_table import SampleTable

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
    """Sums over the topics, and publish latencies."""

    def __init__(self, past: PastTopics) -> None:
        # Copied at the start: the walk itself counts topics unloaded meanwhile.
        self._sums: dict[str, float] = dict(past.totals)
        self._latency = Histogram(LATENCY_BUCKETS_MS.values())
        self._latency.add_all(past.latency)

    def add(self, topic: Topic, figures: Mapping[str, float]) -> None:
        """Count a topic and its figures, which include removed subscriptions."""
        add_up(self._sums, figures)
        self._latency.add_all(topic.latency)
        if is_system(topic):
            add_up(self._sums, {SYSTEM + IN_BYTES: topic.statistics.size_bytes})

    def add_sent(self, subscription: AnySubscription) -> None:
        """Count the messages sent to a subscription's consumers."""
        sent = sent_figures(subscription)
        if subscription.name == SUBSCRIPTION:
            sent[SYSTEM + OUT_BYTES] = sent[OUT_BYTES]
        add_up(self._sums, sent)

    def add_closing(self, topic: Topic, totals: Mapping[str, float]) -> None:
        """Count the past traffic of a topic being unloaded."""
        add_up(self._sums, totals)
        self._latency.add_all(topic.latency)

    def show(self, table: SampleTable, cluster: dict[str, str], topics: LoadedTopics) -> None:
        """Add the broker's samples, independent of the topics shown.

        Args:
            table: Takes the samples.
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


def add_up(sums: dict[str, float], figures: Mapping[str, float]) -> None:
    """Add figures to sums of the same names."""
    for name, value in figures.items():
        sums[name] = sums.get(name, 0) + value


def add_store_samples(table: SampleTable, cluster: dict[str, str], figures: StoreFigures) -> None:
    """Add the contents and counters of the message store."""
    prefix = "floodgate_message_store"
    for name, value in (
        ("entries", figures.entries),
        ("data_bytes", figures.data_bytes),
        ("bytes", figures.charged_bytes),
        ("limit_bytes", figures.bounds.process),
    ):
        table.gauge(f"{prefix}_{name}", cluster, value)
    table.counter(f"{prefix}_refused", cluster, figures.refused)
    if figures.writing is not None:
        _add_database_samples(table, cluster, figures, figures.writing)


def _add_database_samples(
    table: SampleTable, cluster: dict[str, str], figures: StoreFigures, writing: WriteFigures
) -> None:
    prefix = "floodgate_message_database"
    for name, value in (
        ("file_bytes", figures.file_bytes),
        ("recent_bytes", figures.recent_bytes),
        ("unwritten_bytes", figures.unwritten_bytes),
        ("longest_transaction_seconds", writing.longest_seconds),
    ):
        table.gauge(f"{prefix}_{name}", cluster, value)
    for name, value in (
        ("fetched_entries", figures.fetched_entries),
        ("transactions", writing.transactions),
        ("written_bytes", writing.written_bytes),
        ("transaction_seconds", writing.seconds),
        ("failures", writing.failures),
    ):
        table.counter(f"{prefix}_{name}", cluster, value)
