"""The documentation sentences of message metrics in a scrape."""

from __future__ import annotations

import re

from broker.messages.statistics import LATENCY_BUCKETS_MS, SIZE_BUCKETS

_BUCKET = re.compile(r"pulsar_(?:storage_write_latency|entry_size)_(?:le_)?(\w+)")

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
    "storage_logical_size": "Bytes of stored entries, one copy",
    "storage_offloaded_size": "Offloaded bytes: always 0",
    "storage_backlog_size": "Bytes of the largest backlog of a topic",
    "storage_write_rate": "Entries stored a second",
    "storage_read_rate": "Entries a second read from disk, in the last period",
    "storage_read_cache_misses_rate": "Equal to the read rate",
    "storage_backlog_quota_limit": "Backlog quota in bytes; -1: no limit",
    "storage_backlog_quota_limit_time": "Backlog quota in seconds; -1: no limit",
    "storage_backlog_age_seconds": "Age of the oldest message in a backlog; -1 is not known",
    "storage_backlog_quota_exceeded_evictions_total": "Evictions by a backlog quota",
    "delayed_message_index_size_bytes": "Memory of delayed messages",
    "publish_rate_limit_times": "Messages above the publish rate",
    "average_msg_size": "Mean bytes of a message",
    "consumer_msg_ack_rate": "Acknowledgements a second",
    "consumer_msg_rate_out": "Messages delivered a second",
    "consumer_msg_throughput_out": "Bytes delivered a second",
    "consumer_msg_rate_redeliver": "Messages delivered again a second",
    "consumer_available_permits": "Permits of the consumer",
    "consumer_unacked_messages": "Messages delivered and not acknowledged",
    "consumer_blocked_on_unacked_messages": "1 if blocked on unacknowledged messages",
    "producer_msg_rate_in": "Messages published a second",
    "producer_msg_throughput_in": "Bytes published a second",
    "producer_msg_average_Size": "Mean bytes of a message",
    "subscription_consumers_count": "Connected consumers",
    "subscription_msg_rate_out": "Messages delivered a second",
    "subscription_msg_throughput_out": "Bytes delivered a second",
    "subscription_msg_rate_redeliver": "Messages delivered again a second",
    "subscription_msg_ack_rate": "Acknowledgements a second",
    "subscription_unacked_messages": "Messages delivered and not acknowledged",
    "subscription_last_consumed_timestamp": "Time of the last delivery, ms since 1970",
    "subscription_last_acked_timestamp": "Time of the last acknowledgement, ms since 1970",
    "subscription_back_log": "Unacknowledged entries",
    "subscription_back_log_no_delayed": "Unacknowledged entries without delayed ones",
    "subscription_delayed": "Delayed messages",
    "subscription_delayed_message_index_size_bytes": "Memory of delayed messages",
    "subscription_in_replay": "Entries to redeliver",
    "subscription_blocked_on_unacked_messages": "1 if blocked on unacknowledged messages",
    "subscription_total_msg_expired": "Entries expired since the topic was loaded",
    "subscription_last_expire_timestamp": "Time of the last expiry, ms since 1970",
    "subscription_last_consumed_flow_timestamp": "Time of the last permits, ms since 1970",
    "subscription_last_mark_delete_advanced_timestamp": "Last mark-delete move, ms since 1970",
    "topic_load_pending_requests": "Topics being loaded, or waiting for it",
    "publish_latency": "Milliseconds until messages were stored; quantiles are bounds of buckets",
    "topic_load_failed": "Topics that failed to load",
    "floodgate_metrics_topics_left_out": "Topics without own samples, for want of room",
}


def documentation(name: str) -> str:
    """Return the meaning of a family of metrics."""
    short = name.removeprefix("pulsar_").removeprefix("broker_")
    return _SENTENCES[short] if short in _SENTENCES else _of_bucket(name)


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
