"""Metric values of a single topic, subscription, consumer or producer.

Source: upstream AggregatedSubscriptionStats, AggregatedConsumerStats, AggregatedProducerStats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.loading.topic_index import OUT_BYTES, OUT_MESSAGES
from broker.messages.statistics import LATENCY_BUCKETS_MS, SIZE_BUCKETS
from broker.messages.subscriptions.dispatchers.shared import SharedDispatcher
from broker.messages.subscriptions.subscription import Subscription
from broker.messages.topic import PersistentTopic

if TYPE_CHECKING:
    from collections import defaultdict
    from collections.abc import Iterable, Mapping

    from broker.messages.producer import Producer
    from broker.messages.subscriptions.consumer import AnySubscription, Consumer
    from broker.messages.topic import Topic


def subscription_figures(subscription: AnySubscription) -> dict[str, float]:
    """Return a subscription's metric values by name.

    The names lack the prefix ``pulsar_subscription_``.
    """
    consumers = subscription.consumers
    rates = [one.rates.current for one in consumers]
    return {
        "consumers_count": len(consumers),
        "msg_rate_out": sum(one.messages_out for one in rates),
        "msg_throughput_out": sum(one.bytes_out for one in rates),
        "msg_rate_redeliver": sum(one.redelivered for one in rates),
        "msg_ack_rate": sum(one.acknowledged for one in rates),
        "unacked_messages": sum(one.unacked for one in consumers),
        "last_consumed_timestamp": max((one.last_consumed_at for one in consumers), default=0),
        "last_acked_timestamp": max((one.last_acked_at for one in consumers), default=0),
        **_of_storage(subscription),
    }


def _of_storage(subscription: AnySubscription) -> dict[str, float]:
    if not isinstance(subscription, Subscription):
        return dict.fromkeys(_OF_STORAGE, 0)
    dispatcher = subscription.dispatcher
    shared = dispatcher if isinstance(dispatcher, SharedDispatcher) else None
    backlog, delayed = subscription.cursor.backlog, len(shared.delayed) if shared is not None else 0
    values = (
        backlog,
        backlog - delayed,
        delayed,
        shared.delayed.size_bytes if shared is not None else 0,
        len(shared.replay) if shared is not None else 0,
        shared.blocked if shared is not None else False,
        subscription.total_expired,
        subscription.last_expired_at,
        subscription.last_flow_at,
        subscription.advanced_at,
    )
    return dict(zip(_OF_STORAGE, map(int, values), strict=True))


_OF_STORAGE = (
    "back_log",
    "back_log_no_delayed",
    "delayed",
    "delayed_message_index_size_bytes",
    "in_replay",
    "blocked_on_unacked_messages",
    "total_msg_expired",
    "last_expire_timestamp",
    "last_consumed_flow_timestamp",
    "last_mark_delete_advanced_timestamp",
)
"""Metric values that are 0 for non-persistent topics, which store no messages."""


def sent_figures(subscription: AnySubscription) -> dict[str, float]:
    """Return the messages and bytes sent to a subscription's consumers, by metric name.

    The names lack the prefix ``pulsar_``.
    """
    sent = subscription.sent()
    return {OUT_MESSAGES: sent.messages, OUT_BYTES: sent.size_bytes}


def consumer_figures(consumer: Consumer) -> dict[str, float]:
    """Return a consumer's metric values by name, without the prefix ``pulsar_``."""
    rates = consumer.rates.current
    return {
        "consumer_msg_rate_out": rates.messages_out,
        "consumer_msg_throughput_out": rates.bytes_out,
        "consumer_msg_rate_redeliver": rates.redelivered,
        "consumer_msg_ack_rate": rates.acknowledged,
        "consumer_available_permits": consumer.permits,
        "consumer_unacked_messages": consumer.unacked,
        "consumer_blocked_on_unacked_messages": int(consumer.blocked),
        "out_messages_total": consumer.messages_out,
        "out_bytes_total": consumer.bytes_out,
    }


def producer_figures(producer: Producer) -> dict[str, float]:
    """Return a producer's metric values by name, without the prefix ``pulsar_producer_``."""
    figures = producer.statistics
    return {
        "msg_rate_in": figures.message_rate,
        "msg_throughput_in": figures.byte_rate,
        "msg_average_Size": figures.average_size,
    }


LATENCY = "storage_write_latency"
SIZES = "entry_size"


def add_up(sums: dict[str, float], figures: Mapping[str, float]) -> None:
    """Add each value of ``figures`` to the sum with the same name."""
    for name, value in figures.items():
        sums[name] = sums.get(name, 0) + value


def add_subscription(
    sums: defaultdict[str, float], subscription: AnySubscription, figures: Mapping[str, float]
) -> None:
    """Add the metric values of a subscription to the sums over its topic's subscriptions.

    Source: upstream NamespaceStatsAggregator, TopicStats; names as recorded from Pulsar 4.2.4.
    """
    add_up(sums, figures)
    sums["count"] += 1
    if isinstance(subscription, Subscription):
        backlog_bytes = subscription.cursor.backlog_bytes
        sums["largest_backlog_bytes"] = max(sums["largest_backlog_bytes"], backlog_bytes)


def topic_figures(
    topic: Topic, sums: defaultdict[str, float], period_seconds: float
) -> dict[str, float]:
    """Return a topic's metric values by name, without the prefix ``pulsar_``.

    Args:
        topic: The topic.
        sums: The sums that ``add_subscription`` made of its subscriptions.
        period_seconds: Interval of rate updates.
    """
    published = topic.statistics
    stored = topic.ledger.size_bytes if isinstance(topic, PersistentTopic) else 0
    return {
        "producers_count": len(topic.producers),
        "subscriptions_count": sums["count"],
        "consumers_count": sums["consumers_count"],
        "rate_in": published.message_rate,
        "rate_out": sums["msg_rate_out"],
        "throughput_in": published.byte_rate,
        "throughput_out": sums["msg_throughput_out"],
        "in_messages_total": published.messages,
        "in_bytes_total": published.size_bytes,
        "consumer_msg_ack_rate": sums["msg_ack_rate"],
        "msg_backlog": sums["back_log"],
        "subscription_delayed": sums["delayed"],
        "subscription_in_replay": sums["in_replay"],
        "delayed_message_index_size_bytes": sums["delayed_message_index_size_bytes"],
        "storage_size": stored,
        "storage_logical_size": stored,
        "storage_offloaded_size": 0,
        "storage_backlog_size": sums["largest_backlog_bytes"],
        "storage_write_rate": sum(topic.sizes.last_counts) / period_seconds,
        "storage_read_rate": topic.read_rate,
        "storage_read_cache_misses_rate": topic.read_rate,
        **_buckets(LATENCY, LATENCY_BUCKETS_MS, topic.latency.last_counts),
        f"{LATENCY}_sum": topic.latency.last_total,
        **_buckets(SIZES, SIZE_BUCKETS, topic.sizes.last_counts),
        f"{SIZES}_sum": topic.sizes.last_total,
    }


def _buckets(prefix: str, bounds: Iterable[str], counts: Iterable[int]) -> dict[str, float]:
    """Return the count of each histogram bucket, by metric name.

    The counts are not cumulative, as recorded.
    """
    # Recorded: pulsar_entry_size_le_overflow, but pulsar_storage_write_latency_overflow.
    over = f"{prefix}_le_overflow" if prefix == SIZES else f"{prefix}_overflow"
    *of_bounds, larger = counts
    found: dict[str, float] = {
        f"{prefix}_le_{bound}": count for bound, count in zip(bounds, of_bounds, strict=True)
    }
    return {**found, over: larger, f"{prefix}_count": sum(of_bounds) + larger}


def own_figures(topic: Topic) -> dict[str, float]:
    """Return those metric values of a topic that cannot be added to other topics' values."""
    stored = isinstance(topic, PersistentTopic)
    policies = topic.policies
    return {
        "average_msg_size": topic.statistics.average_size,
        "publish_rate_limit_times": topic.rate.limited_times,
        "storage_backlog_quota_limit": policies.size_quota.limit if stored else 0,
        "storage_backlog_quota_limit_time": policies.age_quota.limit if stored else -1,
        "storage_backlog_age_seconds": -1,
    }
