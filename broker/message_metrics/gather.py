"""Message metrics, read from the loaded topics at each scrape.

With exposeTopicLevelMetricsInPrometheus, topics and subscriptions have separate samples; otherwise
namespaces have. The broker always has samples.

Bound: floodgateMaxMetricSubjects topics, subscriptions, consumers and producers with separate
samples. A topic beyond the bound is included in samples of its namespace, without the label
``topic``, so that sums stay right.

Source: upstream NamespaceStatsAggregator; names, types and labels as recorded from Pulsar 4.2.4.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from broker.message_metrics.broker_samples import BrokerSums, store_families
from broker.message_metrics.figures import (
    add_subscription,
    add_up,
    consumer_figures,
    own_figures,
    producer_figures,
    sent_figures,
    subscription_figures,
    topic_figures,
)
from broker.messages.loading.topic_index import OUT_BYTES, OUT_MESSAGES, SYSTEM, totals_of
from broker.messages.statistics import LATENCY_BUCKETS_MS, SIZE_BUCKETS
from server.metrics.exposition import SampleTable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator
    from typing import TypeAlias

    from broker.configuration.config import MetricKeys
    from broker.messages.loading.loaded_topics import LoadedTopics
    from broker.messages.stores.room import StoreFigures
    from broker.messages.subscriptions.consumer import AnySubscription
    from broker.messages.topic import Topic
    from server.metrics.exposition import Families

    Steps: TypeAlias = Generator[None, None, None]

_BUCKET = re.compile(r"pulsar_(?:storage_write_latency|entry_size)_(?:le_)?(\w+)")
_OWNER = re.compile(r"^(?:subscription|consumer|producer)_(?:msg_)?")

_SENTENCES = {
    "topics_count": "Loaded topics",
    "producers_count": "Connected producers",
    "subscriptions_count": "Subscriptions",
    "consumers_count": "Connected consumers",
    "rate_in": "Messages published a second",
    "rate_out": "Messages delivered a second",
    "throughput_in": "Bytes published a second",
    "throughput_out": "Bytes delivered a second",
    "in_messages_total": "Messages published since the topics were loaded",
    "in_bytes_total": "Bytes published since the topics were loaded",
    "out_messages_total": "Messages delivered since the topics were loaded",
    "out_bytes_total": "Bytes delivered since the topics were loaded",
    "msg_backlog": "Entries unacknowledged by subscriptions",
    "storage_size": "Bytes of stored entries",
    "storage_logical_size": "Bytes of stored entries, without replicas",
    "storage_offloaded_size": "Bytes of offloaded entries: always 0",
    "storage_backlog_size": "Bytes of the topic's largest backlog",
    "storage_write_rate": "Entries stored a second",
    "storage_read_rate": "Entries read from disk a second",
    "storage_read_cache_misses_rate": "Cache misses a second: the read rate",
    "storage_backlog_quota_limit": "Backlog quota in bytes; -1: no limit",
    "storage_backlog_quota_limit_time": "Backlog quota in seconds; -1: no limit",
    "storage_backlog_age_seconds": "Age of the oldest message in a backlog; -1: unknown",
    "storage_backlog_quota_exceeded_evictions_total": "Evictions of messages by a backlog quota",
    "delayed_message_index_size_bytes": "Memory for the index of delayed messages",
    "publish_rate_limit_times": "Messages that exceeded the publish rate",
    "average_msg_size": "Mean bytes of a message",
    "ack_rate": "Acknowledgements a second",
    "rate_redeliver": "Messages redelivered a second",
    "consumer_available_permits": "Messages that the consumer permits the broker to send",
    "unacked_messages": "Messages delivered and not acknowledged",
    "blocked_on_unacked_messages": "1 if unacknowledged messages block delivery",
    "producer_msg_average_Size": "Mean bytes of a message",
    "subscription_last_consumed_timestamp": "Time of the last delivery, ms since 1970",
    "subscription_last_acked_timestamp": "Time of the last acknowledgement, ms since 1970",
    "subscription_back_log": "Unacknowledged entries",
    "subscription_back_log_no_delayed": "Unacknowledged entries, not counting delayed ones",
    "subscription_delayed": "Delayed messages",
    "subscription_in_replay": "Entries that wait for redelivery",
    "subscription_total_msg_expired": "Entries expired since the topic was loaded",
    "subscription_last_expire_timestamp": "Time of the last expiry, ms since 1970",
    "subscription_last_consumed_flow_timestamp": "Time of the last FLOW command, ms since 1970",
    "subscription_last_mark_delete_advanced_timestamp": "Time of last mark-delete, ms since 1970",
    "topic_load_pending_requests": "Topics being loaded, or waiting to be loaded",
    "publish_latency": "Milliseconds until messages were stored; quantiles are bounds of buckets",
    "topic_load_failed": "Topics that failed to load",
    "floodgate_metrics_topics_left_out": "Topics without samples of their own, above the limit",
}
"""The sentence of each metric, which also describes the metric with ``_OWNER`` before its name."""


def documentation(name: str) -> str:
    """Return the help text of a metric."""
    short = name.removeprefix("pulsar_").removeprefix("broker_")
    found = _SENTENCES.get(short) or _SENTENCES.get(_OWNER.sub("", short))
    return found or _of_bucket(name)


def _of_bucket(name: str) -> str:
    bucket = _BUCKET.fullmatch(name)
    if bucket is None:
        raise KeyError(name)
    times = "latency" in name
    what = "Milliseconds to store" if times else "Bytes of entries"
    bounds = LATENCY_BUCKETS_MS if times else SIZE_BUCKETS
    if bucket[1] in bounds:
        return f"{what}: up to {bounds[bucket[1]]:g}"
    ends = {"sum": "sum", "count": "count"}
    return f"{what}: {ends.get(bucket[1], 'above all bounds')}"


_NOT_OF_TOPICS = frozenset(
    ("consumer_msg_ack_rate", "subscription_delayed", "subscription_in_replay")
)
"""Metrics that subscriptions and consumers have, but not topics."""


class MetricSource(NamedTuple):
    """The loaded topics, message store and settings that message metrics are read from.

    Attributes:
        period_seconds: Interval of rate updates.
        store_figures: Returns the contents and counters of the store.
    """

    cluster: str
    keys: MetricKeys
    period_seconds: float
    topics: LoadedTopics
    store_figures: Callable[[], StoreFigures]


class MessageMetrics:
    """Collects message metrics in short steps, so that clients are served meanwhile."""

    def __init__(self, source: MetricSource) -> None:
        self._source = source

    def gather(self) -> Generator[None, None, Families]:
        """Read all loaded topics in steps, and return their metrics."""
        walk = _Walk(self._source)
        for topic in self._source.topics:
            if topic.closing:
                walk.take_closing(topic)
            else:
                yield from walk.take(topic)
            yield
        return (yield from walk.families())


class _Walk:
    def __init__(self, source: MetricSource) -> None:
        self._source = source
        self._cluster = {"cluster": source.cluster}
        self._table = SampleTable(documentation)
        self._room = source.keys.most_subjects if source.keys.topics else 0
        self._left_out = 0
        self._topics: Counter[str] = Counter()
        self._namespaces: dict[str, dict[str, float]] = {}
        past = source.topics.past
        self._past = {} if source.keys.topics else dict(past.by_namespace)
        self._broker = BrokerSums(past)

    def take(self, topic: Topic) -> Steps:
        """Add a topic to the sums, and create its own samples unless the limit is reached."""
        shown: dict[AnySubscription, dict[str, float]] = {}
        sums, gone = defaultdict[str, float](float), _sent_by_gone(topic)
        for one in topic.subscriptions:
            shown[one] = subscription_figures(one)
            add_subscription(sums, one, shown[one])
            self._broker.add_sent(one)
            yield
        figures = topic_figures(topic, sums, self._source.period_seconds)
        figures |= {f"evictions_{quota}": count for quota, count in topic.evictions.items()}
        namespace = str(topic.name.namespace)
        self._topics[namespace] += 1
        self._broker.add(topic, {**figures, **gone})
        if self._has_room(topic, shown):
            yield from self._show(topic, figures, shown)
            return
        self._left_out += 1
        of_namespace = self._namespaces.setdefault(namespace, {})
        add_up(of_namespace, {**figures, **gone})
        for one in shown:
            add_up(of_namespace, sent_figures(one))
            yield

    def take_closing(self, topic: Topic) -> None:
        """Add the messages and bytes of a topic that is being unloaded to the sums."""
        totals = totals_of(topic)
        self._broker.add_closing(topic, totals)
        if not self._source.keys.topics:
            add_up(self._namespaces.setdefault(str(topic.name.namespace), {}), totals)

    def _has_room(self, topic: Topic, subscriptions: Collection[AnySubscription]) -> bool:
        keys = self._source.keys
        subjects = 1 + len(subscriptions)
        if keys.consumers:
            subjects += topic.subscriptions.consumer_count
        if keys.producers:
            subjects += len(topic.producers)
        if subjects > self._room:
            return False
        self._room -= subjects
        return True

    # -- one by one ---------------------------------------------------------------------------

    def _show(
        self,
        topic: Topic,
        figures: dict[str, float],
        subscriptions: dict[AnySubscription, dict[str, float]],
    ) -> Steps:
        gauge, keys = self._table.gauge, self._source.keys
        labels = {**self._cluster, "namespace": str(topic.name.namespace)}
        labels["topic"] = topic.full_name
        self._add_figures(labels, {**figures, **own_figures(topic)}, leave_out=_NOT_OF_TOPICS)
        for subscription, own in subscriptions.items():
            yield
            with_name = {**labels, "subscription": subscription.name}
            for name, value in own.items():
                gauge(f"pulsar_subscription_{name}", with_name, value)
            for name, value in sent_figures(subscription).items():
                gauge(f"pulsar_{name}", with_name, value)
            for consumer in list(subscription.consumers) if keys.consumers else ():
                yield
                of_one = {**with_name, "consumer_name": consumer.name}
                of_one["consumer_id"] = str(consumer.consumer_id)
                for name, value in consumer_figures(consumer).items():
                    gauge(f"pulsar_{name}", of_one, value)
        for producer in list(topic.producers) if keys.producers else ():
            yield
            of_one = {**labels, "producer_name": producer.name}
            of_one["producer_id"] = str(producer.producer_id)
            for name, value in producer_figures(producer).items():
                gauge(f"pulsar_producer_{name}", of_one, value)

    def _add_figures(
        self,
        labels: dict[str, str],
        figures: dict[str, float],
        leave_out: frozenset[str] = frozenset(),
    ) -> None:
        for name, value in figures.items():
            if name.startswith("evictions_"):
                with_quota = {**labels, "quota_type": name.removeprefix("evictions_")}
                family = "pulsar_storage_backlog_quota_exceeded_evictions_total"
                self._table.gauge(family, with_quota, value)
            elif name == "msg_backlog" and "topic" not in labels:
                self._table.gauge(
                    "pulsar_msg_backlog", {**labels, "remote_cluster": "local"}, value
                )
            elif name not in leave_out and not name.startswith(SYSTEM):
                self._table.gauge(f"pulsar_{name}", labels, value)

    # -- together -----------------------------------------------------------------------------

    def families(self) -> Generator[None, None, Families]:
        """Return all metrics, after adding those that need the sums over all topics."""
        gauge, source = self._table.gauge, self._source
        for namespace, figures in self._namespaces.items():
            add_up(figures, self._past.get(namespace, {}))
            self._add_figures({**self._cluster, "namespace": namespace}, figures)
            yield
        for namespace, count in self._topics.items():
            gauge("pulsar_topics_count", {**self._cluster, "namespace": namespace}, count)
            yield
        left_out = self._left_out if source.keys.topics else 0
        gauge("floodgate_metrics_topics_left_out", self._cluster, left_out)
        self._broker.show(self._table, self._cluster, source.topics)
        store = store_families(source.store_figures(), self._cluster)
        return [*self._table.families, *store]


def _sent_by_gone(topic: Topic) -> dict[str, float]:
    """Return the messages and bytes that a topic's removed subscriptions sent, by metric name."""
    gone = topic.subscriptions.gone
    return {
        OUT_MESSAGES: sum(one.messages for one in gone.values()),
        OUT_BYTES: sum(one.size_bytes for one in gone.values()),
        SYSTEM + OUT_BYTES: gone[True].size_bytes,
    }
