"""The figures of one topic that add up to those of its namespace and of the broker.

Source: upstream NamespaceStatsAggregator, TopicStats; names as recorded from Pulsar 4.2.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.publishing import entry_sizes, latency
from broker.messages.topic import PersistentTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.message_metrics.subscription_figures import AnySubscription
    from broker.messages.topic import Topic

LATENCY = "storage_write_latency"
SIZES = "entry_size"


def topic_figures(
    topic: Topic,
    subscriptions: Mapping[AnySubscription, Mapping[str, float]],
    period_seconds: float,
) -> dict[str, float]:
    """Return the figures by the names of their metrics behind ``pulsar_``.

    Args:
        topic: The topic.
        subscriptions: Its subscriptions, and their figures.
        period_seconds: How long the period of the rates is.
    """
    published, shown = topic.statistics, subscriptions.values()
    stored = topic.ledger.size_bytes if isinstance(topic, PersistentTopic) else 0
    return {
        "producers_count": len(topic.producers),
        "subscriptions_count": len(subscriptions),
        "consumers_count": _sum(shown, "consumers_count"),
        "rate_in": published.message_rate,
        "rate_out": _sum(shown, "msg_rate_out"),
        "throughput_in": published.byte_rate,
        "throughput_out": _sum(shown, "msg_throughput_out"),
        "in_messages_total": published.messages,
        "in_bytes_total": published.size_bytes,
        "consumer_msg_ack_rate": _sum(shown, "msg_ack_rate"),
        "msg_backlog": _sum(shown, "back_log"),
        "subscription_delayed": _sum(shown, "delayed"),
        "subscription_in_replay": _sum(shown, "in_replay"),
        "delayed_message_index_size_bytes": _sum(shown, "delayed_message_index_size_bytes"),
        "storage_size": stored,
        "storage_logical_size": stored,
        "storage_offloaded_size": 0,
        "storage_backlog_size": _backlog_bytes(topic),
        "storage_write_rate": sum(topic.sizes.last_counts) / period_seconds,
        **_buckets(LATENCY, latency.BUCKETS_MS, topic.latency.last_counts),
        f"{LATENCY}_sum": topic.latency.last_seconds * 1000,
        **_buckets(SIZES, entry_sizes.BUCKETS, topic.sizes.last_counts),
        f"{SIZES}_sum": topic.sizes.last_bytes,
    }


def _buckets(prefix: str, bounds: Iterable[str], counts: Iterable[int]) -> dict[str, float]:
    """Return a number for each bucket, which does not count the smaller ones, as recorded."""
    # Recorded: pulsar_entry_size_le_overflow, but pulsar_storage_write_latency_overflow.
    over = f"{prefix}_le_overflow" if prefix == SIZES else f"{prefix}_overflow"
    *of_bounds, larger = counts
    found: dict[str, float] = {
        f"{prefix}_le_{bound}": count for bound, count in zip(bounds, of_bounds, strict=True)
    }
    return {**found, over: larger, f"{prefix}_count": sum(of_bounds) + larger}


def _sum(figures: Iterable[Mapping[str, float]], name: str) -> float:
    return sum(one[name] for one in figures)


def _backlog_bytes(topic: Topic) -> int:
    if not isinstance(topic, PersistentTopic):
        return 0
    return max((one.cursor.backlog_bytes for one in topic.subscriptions), default=0)


def own_figures(topic: Topic) -> dict[str, float]:
    """Return the figures that do not add up, and are shown of the topic alone."""
    stored = isinstance(topic, PersistentTopic)
    policies = topic.policies
    return {
        "average_msg_size": topic.statistics.average_size,
        "publish_rate_limit_times": topic.rate.limited_times,
        "storage_backlog_quota_limit": policies.size_quota.limit if stored else 0,
        "storage_backlog_quota_limit_time": policies.age_quota.limit if stored else -1,
        "storage_backlog_age_seconds": -1,
    }
