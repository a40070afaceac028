"""The figures of one subscription, one consumer and one producer.

Source: upstream AggregatedSubscriptionStats, AggregatedConsumerStats, AggregatedProducerStats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.loading.topic_index import OUT_BYTES, OUT_MESSAGES
from broker.messages.subscriptions.dispatchers.shared import SharedDispatcher
from broker.messages.subscriptions.subscription import Subscription

if TYPE_CHECKING:
    from broker.messages.producer import Producer
    from broker.messages.subscriptions.consumer import AnySubscription, Consumer


def subscription_figures(subscription: AnySubscription) -> dict[str, float]:
    """Return the figures by metric name without ``pulsar_subscription_``."""
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
"""Figures that are 0 without stored messages."""


def sent_figures(subscription: AnySubscription) -> dict[str, float]:
    """Return the figures sent to consumers, by metric name without ``pulsar_``."""
    sent = subscription.sent()
    return {OUT_MESSAGES: sent.messages, OUT_BYTES: sent.size_bytes}


def consumer_figures(consumer: Consumer) -> dict[str, float]:
    """Return the figures by metric name without ``pulsar_``."""
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
    """Return the figures by metric name without ``pulsar_producer_``."""
    figures = producer.statistics
    return {
        "msg_rate_in": figures.message_rate,
        "msg_throughput_in": figures.byte_rate,
        "msg_average_Size": figures.average_size,
    }
