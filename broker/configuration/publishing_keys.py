"""The configuration keys of publishing, and of the periodic maintenance of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from server.configuration.common import MEGABYTE_BYTES, Profile

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

BUFFER_KEY = "maxMessagePublishBufferSizeInMB"
DEFAULT_BUFFER_BYTES = 256 * MEGABYTE_BYTES
"""Most bytes of unstored messages. Differs: upstream uses half of its direct memory."""


class PublishingConfig(NamedTuple):
    """The configuration of publishing.

    Attributes:
        max_pending: maxPendingPublishRequestsPerConnection; 0 or less is unlimited.
        buffer_bytes: maxMessagePublishBufferSizeInMB; 0 or less is unlimited.
        broker_messages_per_second: brokerPublisherThrottlingMaxMessageRate; 0 is unlimited.
        broker_bytes_per_second: brokerPublisherThrottlingMaxByteRate; 0 is unlimited.
        dedup_entries_interval: brokerDeduplicationEntriesInterval.
        dedup_max_producers: brokerDeduplicationMaxNumberOfProducers.
        dedup_snapshot_seconds: brokerDeduplicationSnapshotFrequencyInSeconds.
        quota_check_seconds: backlogQuotaCheckIntervalInSeconds; 0 without backlogQuotaCheckEnabled.
        precise_backlog_age: preciseTimeBasedBacklogQuotaCheck.
        expiry_check_seconds: messageExpiryCheckIntervalInMinutes.
        retention_check_seconds: retentionCheckIntervalInSeconds.
        rollover_seconds: managedLedgerMinLedgerRolloverTimeMinutes: age at which an unneeded open
            ledger is dropped. Differs: upstream keeps it until its size, or
            managedLedgerMaxLedgerRolloverTimeMinutes.
        statistics_seconds: statsUpdateFrequencyInSecs.
        inactive_check_seconds: brokerDeleteInactiveTopicsFrequencySeconds.
        deletes_unused_partitioned: brokerDeleteInactivePartitionedTopicMetadataEnabled.
        subscription_check_seconds: subscriptionExpiryCheckIntervalInMinutes.
        compaction_check_seconds: brokerServiceCompactionMonitorIntervalInSeconds.
    """

    max_pending: int = 1_000
    buffer_bytes: int = DEFAULT_BUFFER_BYTES
    broker_messages_per_second: int = 0
    broker_bytes_per_second: int = 0
    dedup_entries_interval: int = 1_000
    dedup_max_producers: int = 10_000
    dedup_snapshot_seconds: int = 120
    quota_check_seconds: int = 60
    precise_backlog_age: bool = False
    expiry_check_seconds: int = 300
    retention_check_seconds: int = 120
    rollover_seconds: int = 600
    statistics_seconds: int = 60
    inactive_check_seconds: int = 60
    deletes_unused_partitioned: bool = False
    subscription_check_seconds: int = 300
    compaction_check_seconds: int = 60


def publishing_config(checked: CheckedKeys) -> PublishingConfig:
    """Parse the keys."""
    pulsar = checked.text("floodgateProfile") == Profile.PULSAR.value
    buffer_is_ours = not pulsar and not checked.is_set(BUFFER_KEY)
    megabytes = checked.integer(BUFFER_KEY)
    return PublishingConfig(
        max_pending=checked.integer("maxPendingPublishRequestsPerConnection"),
        buffer_bytes=DEFAULT_BUFFER_BYTES if buffer_is_ours else megabytes * MEGABYTE_BYTES,
        broker_messages_per_second=checked.integer("brokerPublisherThrottlingMaxMessageRate"),
        broker_bytes_per_second=checked.integer("brokerPublisherThrottlingMaxByteRate"),
        dedup_entries_interval=checked.positive("brokerDeduplicationEntriesInterval"),
        dedup_max_producers=checked.positive("brokerDeduplicationMaxNumberOfProducers"),
        dedup_snapshot_seconds=checked.integer("brokerDeduplicationSnapshotFrequencyInSeconds"),
        quota_check_seconds=(
            checked.integer("backlogQuotaCheckIntervalInSeconds")
            if checked.flag("backlogQuotaCheckEnabled")
            else 0
        ),
        precise_backlog_age=checked.flag("preciseTimeBasedBacklogQuotaCheck"),
        expiry_check_seconds=60 * checked.integer("messageExpiryCheckIntervalInMinutes"),
        retention_check_seconds=checked.integer("retentionCheckIntervalInSeconds"),
        rollover_seconds=60 * checked.integer("managedLedgerMinLedgerRolloverTimeMinutes"),
        statistics_seconds=checked.integer("statsUpdateFrequencyInSecs"),
        inactive_check_seconds=checked.integer("brokerDeleteInactiveTopicsFrequencySeconds"),
        deletes_unused_partitioned=checked.flag(
            "brokerDeleteInactivePartitionedTopicMetadataEnabled"
        ),
        subscription_check_seconds=60 * checked.integer("subscriptionExpiryCheckIntervalInMinutes"),
        compaction_check_seconds=checked.integer("brokerServiceCompactionMonitorIntervalInSeconds"),
    )
