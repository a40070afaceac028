"""The sentences that a scrape shows beside the names of metrics of messages."""

from __future__ import annotations

import re

from broker.messages.publishing import entry_sizes, latency

_BUCKET = re.compile(r"pulsar_(?:storage_write_latency|entry_size)_(?:le_)?(\w+)")

_SENTENCES = {
    "topics_count": "Topics that are loaded",
    "producers_count": "Producers that are connected",
    "subscriptions_count": "Subscriptions",
    "consumers_count": "Consumers that are connected",
    "rate_in": "Messages published a second, in the last period",
    "rate_out": "Messages delivered a second, in the last period",
    "throughput_in": "Bytes published a second, in the last period",
    "throughput_out": "Bytes delivered a second, in the last period",
    "in_messages_total": "Messages published since the topics were loaded",
    "in_bytes_total": "Their bytes",
    "out_messages_total": "Messages delivered since the topics were loaded",
    "out_bytes_total": "Their bytes",
    "msg_backlog": "Entries that subscriptions have not acknowledged",
    "storage_size": "Bytes of stored entries",
    "storage_logical_size": "Bytes of stored entries, one copy",
    "storage_offloaded_size": "Bytes that were moved elsewhere: none are",
    "storage_backlog_size": "Bytes of the largest backlog of a topic",
    "storage_write_rate": "Entries stored a second, in the last period",
    "storage_read_rate": "Entries a second that were not in memory, and read, in the last period",
    "storage_read_cache_misses_rate": "The same",
    "storage_backlog_quota_limit": "Bytes that a backlog may have; -1 is no limit",
    "storage_backlog_quota_limit_time": "Seconds that a backlog may reach back; -1 is no limit",
    "storage_backlog_age_seconds": "Age of the oldest message in a backlog; -1 is not known",
    "storage_backlog_quota_exceeded_evictions_total": "Times that a quota had messages skipped",
    "delayed_message_index_size_bytes": "Memory of messages that wait for their time",
    "publish_rate_limit_times": "Messages that found the publish rate used up",
    "average_msg_size": "Bytes of a message, in the last period",
    "consumer_msg_ack_rate": "Acknowledgements a second, in the last period",
    "consumer_msg_rate_out": "Messages delivered a second, in the last period",
    "consumer_msg_throughput_out": "Bytes delivered a second, in the last period",
    "consumer_msg_rate_redeliver": "Messages delivered again a second, in the last period",
    "consumer_available_permits": "Messages that the client has room for",
    "consumer_unacked_messages": "Messages delivered and not acknowledged",
    "consumer_blocked_on_unacked_messages": "1 if they are so many that it gets no more",
    "producer_msg_rate_in": "Messages published a second, in the last period",
    "producer_msg_throughput_in": "Bytes published a second, in the last period",
    "producer_msg_average_Size": "Bytes of a message, in the last period",
    "subscription_consumers_count": "Consumers that are connected",
    "subscription_msg_rate_out": "Messages delivered a second, in the last period",
    "subscription_msg_throughput_out": "Bytes delivered a second, in the last period",
    "subscription_msg_rate_redeliver": "Messages delivered again a second, in the last period",
    "subscription_msg_ack_rate": "Acknowledgements a second, in the last period",
    "subscription_unacked_messages": "Messages delivered and not acknowledged",
    "subscription_last_consumed_timestamp": "When a message was delivered, ms since 1970",
    "subscription_last_acked_timestamp": "When one was acknowledged, ms since 1970",
    "subscription_back_log": "Entries that are not acknowledged",
    "subscription_back_log_no_delayed": "The same without those that wait for their time",
    "subscription_delayed": "Messages that wait for their time",
    "subscription_delayed_message_index_size_bytes": "Their memory",
    "subscription_in_replay": "Entries that are to be delivered again",
    "subscription_blocked_on_unacked_messages": "1 if too many are not acknowledged",
    "subscription_total_msg_expired": "Entries that expired since the topic was loaded",
    "subscription_last_expire_timestamp": "When some expired, ms since 1970",
    "subscription_last_consumed_flow_timestamp": "When permits came, ms since 1970",
    "subscription_last_mark_delete_advanced_timestamp": "When the mark-delete moved, ms since 1970",
    "topic_load_pending_requests": "Topics that are being loaded, or wait for it",
    "publish_latency": "Milliseconds until messages were stored; quantiles are bounds of buckets",
}
_OURS = {
    "topic_load_failed": "Topics that could not be loaded",
    "floodgate_metrics_topics_left_out": "Topics without samples of their own, for want of room",
    "floodgate_message_store_entries": "Entries that are stored",
    "floodgate_message_store_data_bytes": "Their bytes",
    "floodgate_message_store_bytes": "The same with what each costs beside its bytes",
    "floodgate_message_store_limit_bytes": "Most of those; 0 is no bound",
    "floodgate_message_store_refused": "Messages refused because a bound was reached",
    "floodgate_message_database_file_bytes": "Bytes of the database, with its write-ahead log",
    "floodgate_message_database_recent_bytes": "What of the newest entries is in memory too",
    "floodgate_message_database_unwritten_bytes": "Bytes that wait to be written",
    "floodgate_message_database_longest_transaction_seconds": "The longest transaction",
    "floodgate_message_database_fetched_entries": "Entries that were read from the database",
    "floodgate_message_database_transactions": "Transactions, each of what came in a turn",
    "floodgate_message_database_written_bytes": "Bytes written",
    "floodgate_message_database_transaction_seconds": "How long transactions took together",
    "floodgate_message_database_failures": "Transactions that failed; a full disk's come again",
}


def documentation(name: str) -> str:
    """Return what a family of metrics stands for."""
    if name in _OURS:
        return _OURS[name]
    short = name.removeprefix("pulsar_").removeprefix("broker_")
    return _SENTENCES[short] if short in _SENTENCES else _of_bucket(name)


def _of_bucket(name: str) -> str:
    bucket = _BUCKET.fullmatch(name)
    if bucket is None:
        raise KeyError(name)
    times = "latency" in name
    what = "Milliseconds until messages were stored" if times else "Bytes of entries"
    bounds = latency.BUCKETS_MS if times else entry_sizes.BUCKETS
    if bucket[1] in bounds:
        return f"{what}, in the last period: from the smaller bound up to {bounds[bucket[1]]:g}"
    ends = {"sum": "together", "count": "how many there were"}
    return f"{what}, in the last period: {ends.get(bucket[1], 'above all bounds')}"
