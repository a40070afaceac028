"""The configuration keys of topics: publishing, dispatch, policies, periodic maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.policies.effective import (
    ALL_TYPES,
    AutoTopicCreation,
    BacklogQuota,
    DeleteMode,
    EffectivePolicies,
    InactiveTopics,
    QuotaAction,
)
from broker.policies.table import TABLE, UNDEFINED
from server.configuration.settings import Key, Read, Settings, megabytes, minutes

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys


def _quota_check_seconds(checked: CheckedKeys) -> int:
    if not checked.flag("backlogQuotaCheckEnabled"):
        return 0
    return checked.integer("backlogQuotaCheckIntervalInSeconds")


class PublishingConfig(Settings):
    """The configuration of publishing and of periodic checks; 0 or less is unlimited."""

    max_pending: int = Key("maxPendingPublishRequestsPerConnection")
    buffer_bytes: int = Key("maxMessagePublishBufferSizeInMB", megabytes, floodgate=256)
    """The largest number of bytes of unstored messages. Differs: upstream uses half of its direct
    memory."""
    broker_messages_per_second: int = Key("brokerPublisherThrottlingMaxMessageRate")
    broker_bytes_per_second: int = Key("brokerPublisherThrottlingMaxByteRate")
    dedup_entries_interval: int = Key("brokerDeduplicationEntriesInterval")
    dedup_max_producers: int = Key("brokerDeduplicationMaxNumberOfProducers")
    dedup_snapshot_seconds: int = Key("brokerDeduplicationSnapshotFrequencyInSeconds")
    quota_check_seconds: int = Read(_quota_check_seconds)
    """backlogQuotaCheckIntervalInSeconds, or 0 if backlogQuotaCheckEnabled is false."""
    precise_backlog_age: bool = Key("preciseTimeBasedBacklogQuotaCheck")
    expiry_check_seconds: int = Key("messageExpiryCheckIntervalInMinutes", minutes)
    retention_check_seconds: int = Key("retentionCheckIntervalInSeconds")
    rollover_seconds: int = Key("managedLedgerMinLedgerRolloverTimeMinutes", minutes)
    """Age at which an open ledger is deleted if no subscription needs it. Differs: upstream keeps
    it until its size, or managedLedgerMaxLedgerRolloverTimeMinutes."""
    statistics_seconds: int = Key("statsUpdateFrequencyInSecs")
    inactive_check_seconds: int = Key("brokerDeleteInactiveTopicsFrequencySeconds")
    deletes_unused_partitioned: bool = Key("brokerDeleteInactivePartitionedTopicMetadataEnabled")
    subscription_check_seconds: int = Key("subscriptionExpiryCheckIntervalInMinutes", minutes)
    compaction_check_seconds: int = Key("brokerServiceCompactionMonitorIntervalInSeconds")


class DispatchSettings(Settings):
    """The configuration of dispatchers, which send stored messages to consumers."""

    round_robin_messages: int = Key("dispatcherMaxRoundRobinBatchSize")
    """The largest number of messages sent to a Shared consumer before the next consumer gets
    messages."""
    look_ahead_per_consumer: int = Key("keySharedLookAheadMsgInReplayThresholdPerConsumer")
    look_ahead: int = Key("keySharedLookAheadMsgInReplayThresholdPerSubscription")
    """The largest number of entries that wait in Key_Shared because their keys are blocked, while
    later entries are read."""


UPSTREAMS_DISPATCH = DispatchSettings(
    round_robin_messages=20, look_ahead_per_consumer=2_000, look_ahead=20_000
)


_GIBIBYTE = 1024**3
_MOST_BYTES = 2**63 - 1
_INACTIVE_KEY = "brokerDeleteInactiveTopicsEnabled"
_STRATEGY_KEY = "schemaCompatibilityStrategy"
_TYPES_KEY = "subscriptionTypesEnabled"


def default_policies(checked: CheckedKeys) -> EffectivePolicies:
    """Return the broker's own policies, effective where neither topic nor namespace sets any."""
    regular: dict[str, Any] = {}
    for policy in TABLE:
        regular |= policy.by_default(checked)
    action = QuotaAction(checked.text("backlogQuotaDefaultRetentionPolicy"))
    strategy = checked.text(_STRATEGY_KEY) or UNDEFINED
    return EffectivePolicies(
        **regular,
        subscription_types=_subscription_types(checked),
        size_quota=BacklogQuota(_quota_bytes(checked), action),
        age_quota=BacklogQuota(checked.integer("backlogQuotaDefaultLimitSecond"), action),
        delayed_strict=checked.flag("isDelayedDeliveryDeliverAtTimeStrict"),
        schema_strategy="FULL" if strategy == UNDEFINED else strategy,
        auto_topic_creation=_auto_topic_creation(checked),
        inactive_topics=_inactive_topics(checked),
    )


def _subscription_types(checked: CheckedKeys) -> frozenset[str]:
    names = checked.names(_TYPES_KEY)
    if not ALL_TYPES.issuperset(names):
        expected = ", ".join(sorted(ALL_TYPES))
        checked.refuse(f"{_TYPES_KEY}={','.join(names):.100}: expected some of {expected}")
    return frozenset(names) or ALL_TYPES


def _quota_bytes(checked: CheckedKeys) -> int:
    gibibytes = checked.value("backlogQuotaDefaultLimitGB")
    if isinstance(gibibytes, float) and gibibytes > 0:
        return int(min(gibibytes * _GIBIBYTE, _MOST_BYTES))
    return checked.integer("backlogQuotaDefaultLimitBytes")


def _auto_topic_creation(checked: CheckedKeys) -> AutoTopicCreation:
    partitioned = checked.text("allowAutoTopicCreationType") == "partitioned"
    partitions = checked.integer("defaultNumPartitions") if partitioned else 0
    return AutoTopicCreation(checked.flag("allowAutoTopicCreation"), partitions)


def _inactive_topics(checked: CheckedKeys) -> InactiveTopics:
    """Return whether and when unused topics are deleted.

    Profile floodgate deletes unused topics only if the key is set.
    """
    if not checked.pulsar_compatible and not checked.is_set(_INACTIVE_KEY):
        checked.choose(_INACTIVE_KEY, value=False)
    longest = "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds"
    seconds = longest if checked.is_set(longest) else "brokerDeleteInactiveTopicsFrequencySeconds"
    mode = DeleteMode(checked.text("brokerDeleteInactiveTopicsMode"))
    return InactiveTopics(checked.flag(_INACTIVE_KEY), checked.integer(seconds), mode)
