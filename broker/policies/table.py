"""The table of policies whose REST requests follow the usual form; a row for each policy.

Source: upstream NamespacesBase, PersistentTopicsBase and the classes of
``org.apache.pulsar.common.policies.data``; what the recordings do not show was tried at a real
broker.
"""

from __future__ import annotations

from dataclasses import replace

from broker.policies.effective import DeleteMode
from broker.policies.policy import NO_CONTENT, NO_POLICIES, Null, Place, Policy, PolicyName
from broker.policies.values import (
    Member,
    boolean,
    given,
    long_number,
    number,
    object_of,
    one_of,
    real_number,
    set_of_texts,
    text,
)

UNDEFINED = "UNDEFINED"
"""A schema compatibility strategy that leaves the choice to the broker."""
MODE_KEY, NO_MODE, PREFIX = "subscription_auth_mode", "None", "Prefix"
"""Policy under which the name of a subscription must begin with the consumer's role."""
STRATEGIES = (
    "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL",
    "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE",
)  # fmt: skip
OLD_STRATEGIES = {
    "AutoUpdateDisabled": "ALWAYS_INCOMPATIBLE",
    "Backward": "BACKWARD",
    "Forward": "FORWARD",
    "Full": "FULL",
    "AlwaysCompatible": "ALWAYS_COMPATIBLE",
    "BackwardTransitive": "BACKWARD_TRANSITIVE",
    "ForwardTransitive": "FORWARD_TRANSITIVE",
    "FullTransitive": "FULL_TRANSITIVE",
}
"""The strategies that namespaces of older versions have, and what they are called now."""
OLD_STRATEGY_KEY = "schema_auto_update_compatibility_strategy"


def _least_0(path: str) -> Place:
    """Return the REST paths of a policy whose value is a number of 0 or more."""
    return Place(path, Null.VALUE, refusal=f"{path} must be 0 or more")


def _unset(path: str, value: object, *, removable: bool = False) -> Place:
    """Return the REST paths of a policy that answers ``value`` while it is not set."""
    return Place(path, Null.VALUE, value, removable=removable)


def _dispatch_rate(
    key: str, needs: PolicyName, path: str, null: Null, field: str, of: str
) -> Policy:
    keys = f"dispatchThrottlingRatePer{of}In"
    read = object_of(
        Member("dispatchThrottlingRateInMsg", number, 0, "messages", f"{keys}Msg"),
        Member("dispatchThrottlingRateInByte", long_number, 0, "size_bytes", f"{keys}Byte"),
        Member("relativeToPublishRate", boolean, False, "relative",
               "dispatchThrottlingRateRelativeToPublishRate"),
        Member("ratePeriodInSecond", number, 0, "period_seconds"),
    )  # fmt: skip
    return Policy(key, needs, read, Place(path), Place(path, null), field, per_cluster=True)


_UNACKED = "maxUnackedNum must be 0 or more"
_EXPIRATION = "Invalid value for subscription expiration time"
_SNAPSHOT = "deduplicationSnapshotInterval"
_PAUSE = "dispatcherPauseOnAckStatePersistent"
SUBSCRIPTION_RATE = _dispatch_rate(
    "subscriptionDispatchRate", PolicyName.RATE, "subscriptionDispatchRate", Null.KEEPS,
    "subscription_dispatch_rate", "Subscription",
)  # fmt: skip
TABLE = (
    Policy("max_producers_per_topic", PolicyName.MAX_PRODUCERS, number,
           _least_0("maxProducersPerTopic"), _least_0("maxProducers"),
           "max_producers", "maxProducersPerTopic"),
    Policy("max_consumers_per_topic", PolicyName.MAX_CONSUMERS, number,
           _least_0("maxConsumersPerTopic"), _least_0("maxConsumers"),
           "max_consumers", "maxConsumersPerTopic"),
    Policy("max_consumers_per_subscription", PolicyName.MAX_CONSUMERS, number,
           _least_0("maxConsumersPerSubscription"),
           Place("maxConsumersPerSubscription", Null.VALUE, NO_CONTENT,
                 refusal="Invalid value for maxConsumersPerSubscription"),
           "max_consumers_per_subscription", "maxConsumersPerSubscription", applied=False),
    Policy("max_subscriptions_per_topic", PolicyName.MAX_SUBSCRIPTIONS, number,
           replace(_least_0("maxSubscriptionsPerTopic"), unchanged=NO_POLICIES),
           replace(_least_0("maxSubscriptionsPerTopic"), unset=NO_CONTENT),
           "max_subscriptions", "maxSubscriptionsPerTopic", applied=False),
    Policy("max_unacked_messages_per_consumer", PolicyName.MAX_UNACKED, number,
           _least_0("maxUnackedMessagesPerConsumer"),
           Place("maxUnackedMessagesOnConsumer", refusal=_UNACKED),
           "max_unacked_per_consumer", "maxUnackedMessagesPerConsumer"),
    Policy("max_unacked_messages_per_subscription", PolicyName.MAX_UNACKED, number,
           _least_0("maxUnackedMessagesPerSubscription"),
           Place("maxUnackedMessagesOnSubscription", refusal=_UNACKED),
           "max_unacked_per_subscription", "maxUnackedMessagesPerSubscription"),
    Policy("max_topics_per_namespace", PolicyName.MAX_TOPICS, number,
           replace(_least_0("maxTopicsPerNamespace"), unset=0, unchanged=NO_POLICIES), None,
           "max_topics", "maxTopicsPerNamespace"),
    Policy("max_message_size", None, number, None,
           Place("maxMessageSize", Null.VALUE, NO_CONTENT,
                 refusal="topic-level maxMessageSize must be greater than or equal to 0 and must "
                 "be smaller than that in the broker-level"),
           "max_message_bytes", applied=False),
    Policy("message_ttl_in_seconds", PolicyName.TTL, number,
           Place("messageTTL", Null.VALUE,
                 refusal="Invalid value for message TTL, message TTL must >= 0"),
           Place("messageTTL", refusal="Invalid value for message TTL", parameter="messageTTL"),
           "ttl_seconds", "ttlDurationDefaultInSeconds"),
    Policy("deduplicationEnabled", PolicyName.DEDUPLICATION, boolean,
           Place("deduplication", Null.VALUE), Place("deduplicationEnabled"),
           "deduplication", "brokerDeduplicationEnabled"),
    Policy("deduplicationSnapshotIntervalSeconds", PolicyName.DEDUPLICATION_SNAPSHOT, number,
           Place(_SNAPSHOT, removable=False, unchanged=NO_POLICIES,
                 refusal="interval must be greater than or equal to 0"),
           Place(_SNAPSHOT, refusal="interval must be 0 or more"), applied=False),
    Policy("compaction_threshold", PolicyName.COMPACTION, long_number,
           replace(_least_0("compactionThreshold"), verb="PUT"),
           Place("compactionThreshold", Null.VALUE,
                 refusal="Invalid value for compactionThreshold"),
           "compaction_threshold_bytes", "brokerServiceCompactionThresholdInBytes"),
    Policy("subscription_expiration_time_minutes", PolicyName.SUBSCRIPTION_EXPIRATION_TIME, number,
           Place("subscriptionExpirationTime", Null.VALUE, refusal=_EXPIRATION),
           Place("subscriptionExpirationTime", refusal=_EXPIRATION,
                 parameter="subscriptionExpirationTime"),
           "subscription_expiration_minutes", "subscriptionExpirationTimeMinutes"),
    Policy("encryption_required", PolicyName.ENCRYPTION, boolean,
           _unset("encryptionRequired", False), None,
           "encryption_required", "encryptionRequireOnProducer"),
    Policy(MODE_KEY, PolicyName.SUBSCRIPTION_AUTH_MODE, one_of((NO_MODE, PREFIX), NO_MODE),
           _unset("subscriptionAuthMode", NO_MODE)),
    # Before the strategy that overrides it.
    Policy(OLD_STRATEGY_KEY, PolicyName.SCHEMA_COMPATIBILITY_STRATEGY,
           one_of(tuple(OLD_STRATEGIES)),
           Place("schemaAutoUpdateCompatibilityStrategy", unset=NO_CONTENT, verb="PUT",
                 removable=False)),
    Policy("schema_compatibility_strategy", PolicyName.SCHEMA_COMPATIBILITY_STRATEGY,
           one_of((UNDEFINED, *STRATEGIES), UNDEFINED),
           replace(_unset("schemaCompatibilityStrategy", UNDEFINED), verb="PUT"),
           Place("schemaCompatibilityStrategy", verb="PUT"), "schema_strategy", has_global=False),
    Policy("schema_validation_enforced", PolicyName.SCHEMA_COMPATIBILITY_STRATEGY, boolean,
           _unset("schemaValidationEnforced", False), _unset("schemaValidationEnforced", False),
           "schema_validation_enforced", "isSchemaValidationEnforced", has_global=False),
    Policy("is_allow_auto_update_schema", PolicyName.SCHEMA_COMPATIBILITY_STRATEGY, boolean,
           _unset("isAllowAutoUpdateSchema", True), None,
           "allow_auto_update_schema", "isAllowAutoUpdateSchemaEnabled"),
    Policy("publishMaxMessageRate", PolicyName.RATE, object_of(
               Member("publishThrottlingRateInMsg", number, -1, "messages",
                      "maxPublishRatePerTopicInMessages"),
               Member("publishThrottlingRateInByte", long_number, -1, "size_bytes",
                      "maxPublishRatePerTopicInBytes")),
           Place("publishRate"), Place("publishRate", Null.KEEPS, NO_CONTENT),
           "publish_rate", applied=False, per_cluster=True),
    _dispatch_rate("topicDispatchRate", PolicyName.RATE, "dispatchRate", Null.KEEPS,
                   "dispatch_rate", "Topic"),
    SUBSCRIPTION_RATE,
    replace(
        _dispatch_rate("replicatorDispatchRate", PolicyName.REPLICATION_RATE,
                       "replicatorDispatchRate", Null.REMOVES, "replicator_dispatch_rate",
                       "Replicator"),
        namespace=Place("replicatorDispatchRate", unshown=NO_POLICIES, unchanged="")),
    Policy("clusterSubscribeRate", PolicyName.RATE, object_of(
               Member("subscribeThrottlingRatePerConsumer", number, -1, "messages",
                      "subscribeThrottlingRatePerConsumer"),
               Member("ratePeriodInSecond", number, 30, "period_seconds",
                      "subscribeRatePeriodPerConsumerInSecond")),
           Place("subscribeRate"), Place("subscribeRate", Null.KEEPS),
           "subscribe_rate", per_cluster=True),
    Policy("subscription_types_enabled", PolicyName.SUBSCRIPTION_AUTH_MODE, set_of_texts,
           _unset("subscriptionTypesEnabled", [], removable=True),
           _unset("subscriptionTypesEnabled", [], removable=True), applied=False),
    Policy("autoTopicCreationOverride", PolicyName.AUTO_TOPIC_CREATION, object_of(
               Member("allowAutoTopicCreation", boolean, False),
               Member("topicType", text),
               Member("defaultNumPartitions", number)),
           Place("autoTopicCreation")),
    Policy("autoSubscriptionCreationOverride", PolicyName.AUTO_SUBSCRIPTION_CREATION, object_of(
               Member("allowAutoSubscriptionCreation", boolean, False,
                      "auto_subscription_creation", "allowAutoSubscriptionCreation")),
           Place("autoSubscriptionCreation"), Place("autoSubscriptionCreation")),
    Policy("retention_policies", PolicyName.RETENTION, object_of(
               Member("retentionTimeInMinutes", number, 0, "minutes",
                      "defaultRetentionTimeInMinutes"),
               Member("retentionSizeInMB", number, 0, "megabytes", "defaultRetentionSizeInMB")),
           Place("retention", unchanged=NO_POLICIES,
                 refusal="Retention Quota must exceed configured backlog quota for namespace."),
           Place("retention", Null.KEEPS,
                 refusal="Retention Quota must exceed configured backlog quota for topic. Please "
                 "increase retention quota and retry"),
           "retention"),
    Policy("persistence", PolicyName.PERSISTENCE, given(object_of(
               Member("bookkeeperEnsemble", number, 2, "ensemble",
                      "managedLedgerDefaultEnsembleSize"),
               Member("bookkeeperWriteQuorum", number, 2, "write_quorum",
                      "managedLedgerDefaultWriteQuorum"),
               Member("bookkeeperAckQuorum", number, 2, "ack_quorum",
                      "managedLedgerDefaultAckQuorum"),
               Member("managedLedgerMaxMarkDeleteRate", real_number, -1.0, "mark_delete_rate",
                      "managedLedgerDefaultMarkDeleteRateLimit"))),
           Place("persistence", Null.VALUE), Place("persistence", Null.VALUE), "persistence"),
    Policy("delayed_delivery_policies", PolicyName.DELAYED_DELIVERY, object_of(
               Member("tickTime", long_number, 0, "delayed_tick_ms",
                      "delayedDeliveryTickTimeMillis"),
               Member("active", boolean, False, "delayed_delivery", "delayedDeliveryEnabled"),
               Member("maxDeliveryDelayInMillis", long_number, 0, "max_delivery_delay_ms",
                      "delayedDeliveryMaxDelayInMillis")),
           Place("delayedDelivery", unchanged=NO_POLICIES), Place("delayedDelivery"),
           of_superusers=True),
    Policy("inactive_topic_policies", PolicyName.INACTIVE_TOPIC, object_of(
               Member("inactiveTopicDeleteMode", one_of([mode.value for mode in DeleteMode]), None,
                      "mode"),
               Member("maxInactiveDurationSeconds", number, 0, "after_seconds"),
               Member("deleteWhileInactive", boolean, False, "delete")),
           Place("inactiveTopicPolicies", unchanged=NO_POLICIES), Place("inactiveTopicPolicies"),
           "inactive_topics"),
    Policy("entryFilters", PolicyName.ENTRY_FILTERS,
           object_of(Member("entryFilterNames", text, "")),
           Place("entryFilters"), Place("entryFilters")),
    Policy("dispatcherPauseOnAckStatePersistentEnabled",
           PolicyName.DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT, lambda _: True,
           replace(_unset(_PAUSE, False, removable=True), unshown=NO_POLICIES),
           _unset(_PAUSE, False, removable=True),
           applied=False),
    Policy("allowed_topic_property_keys_for_metrics", PolicyName.ALLOW_CUSTOM_METRIC_LABELS,
           set_of_texts, Place("allowedTopicPropertyKeysForMetrics")),
)  # fmt: skip
