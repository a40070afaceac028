"""The figures of one topic, summed up for its namespace and the broker.

Source: upstream NamespaceStatsAggregator, TopicStats; names as recorded from Pulsar 4.2.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.statistics import LATENCY_BUCKETS_MS, SIZE_BUCKETS
from broker.messages.subscriptions.subscription import Subscription
from broker.messages.topic import PersistentTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.messages.subscriptions.consumer import AnySubscription
    from broker.messages.topic import Topic

LATENCY = "storage_write_latency"
SIZES = "entry_size"


class SubscriptionSums:
    """The sums of a topic's subscriptions.

    Attributes:
        count: Number of subscriptions.
        most_backlog_bytes: Bytes of the largest backlog.
    """

    def __init__(self) -> None:
        self.count = 0
        self.most_backlog_bytes = 0
        self._sums = dict.fromkeys(_SUMMED, 0.0)

    def add(self, subscription: AnySubscription, figures: Mapping[str, float]) -> None:
        """Add the figures of a subscription."""
        self.count += 1
        if isinstance(subscription, Subscription):
            backlog_bytes = subscription.cursor.backlog_bytes
            self.most_backlog_bytes = max(self.most_backlog_bytes, backlog_bytes)
        for name in _SUMMED:
            self._sums[name] += figures[name]

    def __getitem__(self, name: str) -> float:
        return self._sums[name]


_SUMMED = (
    "consumers_count",
    "msg_rate_out",
    "msg_throughput_out",
    "msg_ack_rate",
    "back_log",
    "delayed",
    "in_replay",
    "delayed_message_index_size_bytes",
)


def topic_figures(
    topic: Topic, subscriptions: SubscriptionSums, period_seconds: float
) -> dict[str, float]:
    """Return the figures by metric name without ``pulsar_``.

    Args:
        topic: The topic.
        subscriptions: The figures of its subscriptions.
        period_seconds: Period of the rates.
    """
    published, shown = topic.statistics, subscriptions
    stored = topic.ledger.size_bytes if isinstance(topic, PersistentTopic) else 0
    return {
        "producers_count": len(topic.producers),
        "subscriptions_count": shown.count,
        "consumers_count": shown["consumers_count"],
        "rate_in": published.message_rate,
        "rate_out": shown["msg_rate_out"],
        "throughput_in": published.byte_rate,
        "throughput_out": shown["msg_throughput_out"],
        "in_messages_total": published.messages,
        "in_bytes_total": published.size_bytes,
        "consumer_msg_ack_rate": shown["msg_ack_rate"],
        "msg_backlog": shown["back_log"],
        "subscription_delayed": shown["delayed"],
        "subscription_in_replay": shown["in_replay"],
        "delayed_message_index_size_bytes": shown["delayed_message_index_size_bytes"],
        "storage_size": stored,
        "storage_logical_size": stored,
        "storage_offloaded_size": 0,
        "storage_backlog_size": shown.most_backlog_bytes,
        "storage_write_rate": sum(topic.sizes.last_counts) / period_seconds,
        "storage_read_rate": topic.read_rate,
        "storage_read_cache_misses_rate": topic.read_rate,
        **_buckets(LATENCY, LATENCY_BUCKETS_MS, topic.latency.last_counts),
        f"{LATENCY}_sum": topic.latency.last_total,
        **_buckets(SIZES, SIZE_BUCKETS, topic.sizes.last_counts),
        f"{SIZES}_sum": topic.sizes.last_total,
    }


def _buckets(prefix: str, bounds: Iterable[str], counts: Iterable[int]) -> dict[str, float]:
    """Return a number for each bucket, not cumulative, as recorded."""
    # Recorded: pulsar_entry_size_le_overflow, but pulsar_storage_write_latency_overflow.
    over = f"{prefix}_le_overflow" if prefix == SIZES else f"{prefix}_overflow"
    *of_bounds, larger = counts
    found: dict[str, float] = {
        f"{prefix}_le_{bound}": count for bound, count in zip(bounds, of_bounds, strict=True)
    }
    return {**found, over: larger, f"{prefix}_count": sum(of_bounds) + larger}


def own_figures(topic: Topic) -> dict[str, float]:
    """Return the figures shown only for the topic, which cannot be summed."""
    stored = isinstance(topic, PersistentTopic)
    policies = topic.policies
    return {
        "average_msg_size": topic.statistics.average_size,
        "publish_rate_limit_times": topic.rate.limited_times,
        "storage_backlog_quota_limit": policies.size_quota.limit if stored else 0,
        "storage_backlog_quota_limit_time": policies.age_quota.limit if stored else -1,
        "storage_backlog_age_seconds": -1,
    }
