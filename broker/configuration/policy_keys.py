"""The configuration keys of the broker's own policies about messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.policies.documents import UNDEFINED
from broker.policies.effective import (
    ALL_TYPES,
    AutoTopicCreation,
    BacklogQuota,
    DeleteMode,
    EffectivePolicies,
    InactiveTopics,
    Persistence,
    QuotaAction,
    Rate,
    Retention,
)

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

_GIBIBYTE = 1024**3
_INACTIVE_KEY = "brokerDeleteInactiveTopicsEnabled"
_STRATEGY_KEY = "schemaCompatibilityStrategy"
_TYPES_KEY = "subscriptionTypesEnabled"


def default_policies(checked: CheckedKeys) -> EffectivePolicies:
    """Return the effective policies without policies of namespaces and topics."""
    number, flag = checked.integer, checked.flag
    action = QuotaAction(checked.text("backlogQuotaDefaultRetentionPolicy"))
    strategy = checked.text(_STRATEGY_KEY) or UNDEFINED
    return EffectivePolicies(
        max_producers=number("maxProducersPerTopic"),
        max_consumers=number("maxConsumersPerTopic"),
        max_consumers_per_subscription=number("maxConsumersPerSubscription"),
        max_subscriptions=number("maxSubscriptionsPerTopic"),
        max_unacked_per_consumer=number("maxUnackedMessagesPerConsumer"),
        max_unacked_per_subscription=number("maxUnackedMessagesPerSubscription"),
        max_topics=number("maxTopicsPerNamespace"),
        subscription_types=_subscription_types(checked),
        publish_rate=Rate(
            number("maxPublishRatePerTopicInMessages"), number("maxPublishRatePerTopicInBytes")
        ),
        dispatch_rate=_dispatch_rate(checked, "Topic"),
        subscription_dispatch_rate=_dispatch_rate(checked, "Subscription"),
        subscribe_rate=Rate(
            number("subscribeThrottlingRatePerConsumer"),
            period_seconds=number("subscribeRatePeriodPerConsumerInSecond"),
        ),
        replicator_dispatch_rate=_dispatch_rate(checked, "Replicator"),
        size_quota=BacklogQuota(_quota_bytes(checked), action),
        age_quota=BacklogQuota(number("backlogQuotaDefaultLimitSecond"), action),
        retention=Retention(
            number("defaultRetentionTimeInMinutes"), number("defaultRetentionSizeInMB")
        ),
        ttl_seconds=number("ttlDurationDefaultInSeconds"),
        deduplication=flag("brokerDeduplicationEnabled"),
        delayed_delivery=flag("delayedDeliveryEnabled"),
        delayed_tick_ms=number("delayedDeliveryTickTimeMillis"),
        delayed_strict=flag("isDelayedDeliveryDeliverAtTimeStrict"),
        max_delivery_delay_ms=number("delayedDeliveryMaxDelayInMillis"),
        compaction_threshold_bytes=number("brokerServiceCompactionThresholdInBytes"),
        encryption_required=flag("encryptionRequireOnProducer"),
        schema_strategy="FULL" if strategy == UNDEFINED else strategy,
        schema_validation_enforced=flag("isSchemaValidationEnforced"),
        allow_auto_update_schema=flag("isAllowAutoUpdateSchemaEnabled"),
        auto_topic_creation=_auto_topic_creation(checked),
        auto_subscription_creation=flag("allowAutoSubscriptionCreation"),
        inactive_topics=_inactive_topics(checked),
        subscription_expiration_minutes=number("subscriptionExpirationTimeMinutes"),
    )


def persistence(checked: CheckedKeys) -> Persistence:
    """Return the numbers of copies in upstream's storage."""
    rate = checked.value("managedLedgerDefaultMarkDeleteRateLimit")
    return Persistence(
        checked.integer("managedLedgerDefaultEnsembleSize"),
        checked.integer("managedLedgerDefaultWriteQuorum"),
        checked.integer("managedLedgerDefaultAckQuorum"),
        rate if isinstance(rate, float) else 1.0,
    )


def _subscription_types(checked: CheckedKeys) -> frozenset[str]:
    types = frozenset(checked.names(_TYPES_KEY))
    if types - ALL_TYPES:
        expected = ", ".join(sorted(ALL_TYPES))
        checked.refuse(f"{_TYPES_KEY}={','.join(types)}: expected some of {expected}")
    return types or ALL_TYPES


def _dispatch_rate(checked: CheckedKeys, of: str) -> Rate:
    return Rate(
        checked.integer(f"dispatchThrottlingRatePer{of}InMsg"),
        checked.integer(f"dispatchThrottlingRatePer{of}InByte"),
        relative=checked.flag("dispatchThrottlingRateRelativeToPublishRate"),
    )


def _quota_bytes(checked: CheckedKeys) -> int:
    gibibytes = checked.value("backlogQuotaDefaultLimitGB")
    if isinstance(gibibytes, float) and gibibytes > 0:
        return int(gibibytes * _GIBIBYTE)
    return checked.integer("backlogQuotaDefaultLimitBytes")


def _auto_topic_creation(checked: CheckedKeys) -> AutoTopicCreation:
    partitioned = checked.text("allowAutoTopicCreationType") == "partitioned"
    partitions = checked.integer("defaultNumPartitions") if partitioned else 0
    return AutoTopicCreation(checked.flag("allowAutoTopicCreation"), partitions)


def _inactive_topics(checked: CheckedKeys) -> InactiveTopics:
    """Return the deletion of unused topics; profile floodgate deletes only if the key is set."""
    if not checked.pulsar_compatible and not checked.is_set(_INACTIVE_KEY):
        checked.choose(_INACTIVE_KEY, value=False)
    longest = "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds"
    seconds = longest if checked.is_set(longest) else "brokerDeleteInactiveTopicsFrequencySeconds"
    mode = DeleteMode(checked.text("brokerDeleteInactiveTopicsMode"))
    return InactiveTopics(checked.flag(_INACTIVE_KEY), checked.integer(seconds), mode)
