"""The configuration keys of publishing, dispatch, and the periodic maintenance of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.configuration.settings import Key, Read, Settings, megabytes, minutes

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys


def _quota_check_seconds(checked: CheckedKeys) -> int:
    if not checked.flag("backlogQuotaCheckEnabled"):
        return 0
    return checked.integer("backlogQuotaCheckIntervalInSeconds")


class PublishingConfig(Settings):
    """The configuration of publishing; a bound of 0 or less is unlimited."""

    max_pending: int = Key("maxPendingPublishRequestsPerConnection")
    buffer_bytes: int = Key("maxMessagePublishBufferSizeInMB", megabytes, floodgate=256)
    """Most bytes of unstored messages. Differs: upstream uses half of its direct memory."""
    broker_messages_per_second: int = Key("brokerPublisherThrottlingMaxMessageRate")
    broker_bytes_per_second: int = Key("brokerPublisherThrottlingMaxByteRate")
    dedup_entries_interval: int = Key("brokerDeduplicationEntriesInterval")
    dedup_max_producers: int = Key("brokerDeduplicationMaxNumberOfProducers")
    dedup_snapshot_seconds: int = Key("brokerDeduplicationSnapshotFrequencyInSeconds")
    quota_check_seconds: int = Read(_quota_check_seconds)
    """backlogQuotaCheckIntervalInSeconds; 0 without backlogQuotaCheckEnabled."""
    precise_backlog_age: bool = Key("preciseTimeBasedBacklogQuotaCheck")
    expiry_check_seconds: int = Key("messageExpiryCheckIntervalInMinutes", minutes)
    retention_check_seconds: int = Key("retentionCheckIntervalInSeconds")
    rollover_seconds: int = Key("managedLedgerMinLedgerRolloverTimeMinutes", minutes)
    """Age at which an unneeded open ledger is dropped. Differs: upstream keeps it until its size,
    or managedLedgerMaxLedgerRolloverTimeMinutes."""
    statistics_seconds: int = Key("statsUpdateFrequencyInSecs")
    inactive_check_seconds: int = Key("brokerDeleteInactiveTopicsFrequencySeconds")
    deletes_unused_partitioned: bool = Key("brokerDeleteInactivePartitionedTopicMetadataEnabled")
    subscription_check_seconds: int = Key("subscriptionExpiryCheckIntervalInMinutes", minutes)
    compaction_check_seconds: int = Key("brokerServiceCompactionMonitorIntervalInSeconds")


class DispatchSettings(Settings):
    """The configuration of dispatchers."""

    round_robin_messages: int = Key("dispatcherMaxRoundRobinBatchSize")
    """Most messages for a Shared consumer before the next consumer's."""
    look_ahead_per_consumer: int = Key("keySharedLookAheadMsgInReplayThresholdPerConsumer")
    look_ahead: int = Key("keySharedLookAheadMsgInReplayThresholdPerSubscription")
    """Most entries read past the waiting keys of Key_Shared."""


UPSTREAMS_DISPATCH = DispatchSettings(
    round_robin_messages=20, look_ahead_per_consumer=2_000, look_ahead=20_000
)
