"""The table of policies: a row for each that is set, shown and removed as the others are.

Source: upstream NamespacesBase, PersistentTopicsBase and the classes of
``org.apache.pulsar.common.policies.data``; what is not recorded was asked of a real broker.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from broker.admin.resources.policies import checks
from broker.admin.resources.policies.values import (
    Field,
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
from broker.policies.documents import UNDEFINED
from broker.policies.effective import DeleteMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.admin.resources.policies.checks import Check
    from broker.admin.resources.policies.values import Reader
    from broker.configuration.config import BrokerConfig
    from broker.policies.effective import EffectivePolicies, Rate


class Null(Enum):
    """The meaning of a body that is null, or missing."""

    VALUE = auto()
    """The reader's value for none: 0, or false."""
    REMOVES = auto()
    """The policy is removed."""
    KEEPS = auto()
    """Nothing changes."""


class Empty(Enum):
    """The answer where nothing is set: the recordings have two sorts."""

    NO_BODY = 200
    NO_CONTENT = 204


@dataclass(frozen=True, slots=True)
class Place:
    """The paths of a policy of namespaces, or of topics.

    Attributes:
        path: The last part, below the namespace or topic.
        verb: The method that sets it.
        refusal: The sentence about a value that is refused.
        null: The meaning of null.
        unset: The answer where nothing is set.
        removable: Whether DELETE removes it.
        parameter: The parameter of the query that holds the value in place of a body.
        done: The status of the answer once it is set.
    """

    path: str
    verb: str = "POST"
    refusal: str = ""
    null: Null = Null.REMOVES
    unset: Any = Empty.NO_BODY
    removable: bool = True
    parameter: str = ""
    done: int = 204


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A policy.

    Attributes:
        key: Of documents; see ``broker.policies.documents``.
        read: Reads its value.
        namespace: Where it is set for namespaces.
        topic: Where it is set for topics.
        check: Refuses values; called with the value, the sentence and the configuration.
        default: Returns the broker's own value; None where it is not shown as applied.
        per_cluster: Whether a namespace's policies show it by cluster.
    """

    key: str
    read: Reader
    namespace: Place | None = None
    topic: Place | None = None
    check: Check = checks.anything
    default: Callable[[EffectivePolicies, BrokerConfig], object] | None = None
    per_cluster: bool = False


def _most(key: str, namespace: str, topic: Place, field: str = "") -> PolicyRow:
    """Return a limit of the number of something; without a field none is shown as applied."""
    return PolicyRow(
        key,
        number,
        Place(namespace, refusal=f"{namespace} must be 0 or more", null=Null.VALUE),
        topic,
        checks.not_negative,
        (lambda own, _: getattr(own, field)) if field else None,
    )


_RATE = object_of(
    Field("dispatchThrottlingRateInMsg", number, 0),
    Field("dispatchThrottlingRateInByte", long_number, 0),
    Field("relativeToPublishRate", boolean, False),
    Field("ratePeriodInSecond", number, 0),
)


def _dispatch_rate(
    key: str, path: str, rate: Callable[[EffectivePolicies, BrokerConfig], Rate], null: Null
) -> PolicyRow:
    return PolicyRow(
        key,
        _RATE,
        Place(path),
        Place(path, null=null),
        default=lambda own, config: rate_body(rate(own, config)),
        per_cluster=True,
    )


def rate_body(rate: Rate) -> dict[str, object]:
    """Return a rate of dispatch as it is shown."""
    return {
        "dispatchThrottlingRateInMsg": rate.messages,
        "dispatchThrottlingRateInByte": rate.size_bytes,
        "relativeToPublishRate": rate.relative,
        "ratePeriodInSecond": rate.period_seconds,
    }


read_rate = _RATE
STRATEGIES = (
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
_OLD_STRATEGIES = (
    "AutoUpdateDisabled",
    "Backward",
    "Forward",
    "Full",
    "AlwaysCompatible",
    "BackwardTransitive",
    "ForwardTransitive",
    "FullTransitive",
)
ROWS = (
    _most(
        "max_producers_per_topic",
        "maxProducersPerTopic",
        Place("maxProducers", refusal="maxProducers must be 0 or more", null=Null.VALUE),
        "max_producers",
    ),
    _most(
        "max_consumers_per_topic",
        "maxConsumersPerTopic",
        Place("maxConsumers", refusal="maxConsumers must be 0 or more", null=Null.VALUE),
        "max_consumers",
    ),
    _most(
        "max_consumers_per_subscription",
        "maxConsumersPerSubscription",
        Place(
            "maxConsumersPerSubscription",
            refusal="Invalid value for maxConsumersPerSubscription",
            null=Null.VALUE,
            unset=Empty.NO_CONTENT,
        ),
    ),
    _most(
        "max_subscriptions_per_topic",
        "maxSubscriptionsPerTopic",
        Place(
            "maxSubscriptionsPerTopic",
            refusal="maxSubscriptionsPerTopic must be 0 or more",
            null=Null.VALUE,
            unset=Empty.NO_CONTENT,
        ),
    ),
    _most(
        "max_unacked_messages_per_consumer",
        "maxUnackedMessagesPerConsumer",
        Place("maxUnackedMessagesOnConsumer", refusal="maxUnackedNum must be 0 or more"),
        "max_unacked_per_consumer",
    ),
    _most(
        "max_unacked_messages_per_subscription",
        "maxUnackedMessagesPerSubscription",
        Place("maxUnackedMessagesOnSubscription", refusal="maxUnackedNum must be 0 or more"),
        "max_unacked_per_subscription",
    ),
    PolicyRow(
        "max_topics_per_namespace",
        number,
        Place(
            "maxTopicsPerNamespace",
            refusal="maxTopicsPerNamespace must be 0 or more",
            null=Null.VALUE,
            unset=0,
        ),
        check=checks.not_negative,
    ),
    PolicyRow(
        "max_message_size",
        number,
        topic=Place(
            "maxMessageSize",
            refusal="topic-level maxMessageSize must be greater than or equal to 0 and must be "
            "smaller than that in the broker-level",
            null=Null.VALUE,
            unset=Empty.NO_CONTENT,
        ),
        check=checks.message_size,
    ),
    PolicyRow(
        "message_ttl_in_seconds",
        number,
        Place(
            "messageTTL",
            refusal="Invalid value for message TTL, message TTL must >= 0",
            null=Null.VALUE,
        ),
        Place("messageTTL", refusal="Invalid value for message TTL", parameter="messageTTL"),
        checks.not_negative,
        lambda own, _: own.ttl_seconds,
    ),
    PolicyRow(
        "deduplicationEnabled",
        boolean,
        Place("deduplication", null=Null.VALUE),
        Place("deduplicationEnabled"),
        default=lambda own, _: own.deduplication,
    ),
    PolicyRow(
        "deduplicationSnapshotIntervalSeconds",
        number,
        Place(
            "deduplicationSnapshotInterval",
            refusal="interval must be greater than or equal to 0",
            removable=False,
        ),
        Place("deduplicationSnapshotInterval", refusal="interval must be 0 or more"),
        checks.not_negative,
    ),
    PolicyRow(
        "compaction_threshold",
        long_number,
        Place(
            "compactionThreshold",
            verb="PUT",
            refusal="compactionThreshold must be 0 or more",
            null=Null.VALUE,
        ),
        Place(
            "compactionThreshold",
            refusal="Invalid value for compactionThreshold",
            null=Null.VALUE,
        ),
        checks.not_negative,
        lambda own, _: own.compaction_threshold_bytes,
    ),
    PolicyRow(
        "subscription_expiration_time_minutes",
        number,
        Place(
            "subscriptionExpirationTime",
            refusal="Invalid value for subscription expiration time",
            null=Null.VALUE,
        ),
        Place(
            "subscriptionExpirationTime",
            refusal="Invalid value for subscription expiration time",
        ),
        checks.not_negative,
        lambda own, _: own.subscription_expiration_minutes,
    ),
    PolicyRow(
        "encryption_required",
        boolean,
        Place("encryptionRequired", null=Null.VALUE, unset=False, removable=False),
    ),
    PolicyRow(
        "schema_compatibility_strategy",
        one_of((*STRATEGIES, UNDEFINED), UNDEFINED),
        Place(
            "schemaCompatibilityStrategy",
            verb="PUT",
            null=Null.VALUE,
            unset=UNDEFINED,
            removable=False,
        ),
        Place("schemaCompatibilityStrategy", verb="PUT"),
        checks.undefined_removes,
        lambda own, _: own.schema_strategy,
    ),
    PolicyRow(
        "schema_auto_update_compatibility_strategy",
        one_of(_OLD_STRATEGIES),
        Place(
            "schemaAutoUpdateCompatibilityStrategy",
            verb="PUT",
            unset=Empty.NO_CONTENT,
            removable=False,
        ),
    ),
    PolicyRow(
        "schema_validation_enforced",
        boolean,
        Place("schemaValidationEnforced", null=Null.VALUE, unset=False, removable=False),
        Place("schemaValidationEnforced", null=Null.VALUE, unset=False, removable=False),
        default=lambda own, _: own.schema_validation_enforced,
    ),
    PolicyRow(
        "is_allow_auto_update_schema",
        boolean,
        Place("isAllowAutoUpdateSchema", null=Null.VALUE, unset=True, removable=False),
    ),
    PolicyRow(
        "subscription_types_enabled",
        set_of_texts,
        Place("subscriptionTypesEnabled", null=Null.VALUE, unset=[]),
        Place("subscriptionTypesEnabled", null=Null.VALUE, unset=[]),
        checks.subscription_types,
    ),
    PolicyRow(
        "autoTopicCreationOverride",
        object_of(
            Field("allowAutoTopicCreation", boolean, False),
            Field("topicType", text),
            Field("defaultNumPartitions", number),
        ),
        Place("autoTopicCreation"),
        check=checks.auto_topic_creation,
    ),
    PolicyRow(
        "autoSubscriptionCreationOverride",
        object_of(Field("allowAutoSubscriptionCreation", boolean, False)),
        Place("autoSubscriptionCreation"),
        Place("autoSubscriptionCreation"),
        default=lambda own, _: {"allowAutoSubscriptionCreation": own.auto_subscription_creation},
    ),
    PolicyRow(
        "retention_policies",
        object_of(
            Field("retentionTimeInMinutes", number, 0), Field("retentionSizeInMB", number, 0)
        ),
        Place("retention"),
        Place("retention", null=Null.KEEPS),
        checks.retention,
        lambda own, _: {
            "retentionTimeInMinutes": own.retention.minutes,
            "retentionSizeInMB": own.retention.megabytes,
        },
    ),
    PolicyRow(
        "persistence",
        given(
            object_of(
                Field("bookkeeperEnsemble", number, 2),
                Field("bookkeeperWriteQuorum", number, 2),
                Field("bookkeeperAckQuorum", number, 2),
                Field("managedLedgerMaxMarkDeleteRate", real_number, -1.0),
            )
        ),
        Place("persistence", null=Null.VALUE),
        Place("persistence", null=Null.VALUE),
        checks.persistence,
        lambda _, config: dict(
            zip(
                (
                    "bookkeeperEnsemble",
                    "bookkeeperWriteQuorum",
                    "bookkeeperAckQuorum",
                    "managedLedgerMaxMarkDeleteRate",
                ),
                config.persistence,
                strict=True,
            )
        ),
    ),
    PolicyRow(
        "publishMaxMessageRate",
        object_of(
            Field("publishThrottlingRateInMsg", number, -1),
            Field("publishThrottlingRateInByte", long_number, -1),
        ),
        Place("publishRate"),
        Place("publishRate", null=Null.KEEPS, unset=Empty.NO_CONTENT),
        per_cluster=True,
    ),
    _dispatch_rate(
        "topicDispatchRate", "dispatchRate", lambda own, _: own.dispatch_rate, Null.KEEPS
    ),
    _dispatch_rate(
        "subscriptionDispatchRate",
        "subscriptionDispatchRate",
        lambda own, _: own.subscription_dispatch_rate,
        Null.KEEPS,
    ),
    _dispatch_rate(
        "replicatorDispatchRate",
        "replicatorDispatchRate",
        lambda own, _: own.replicator_dispatch_rate,
        Null.REMOVES,
    ),
    PolicyRow(
        "clusterSubscribeRate",
        object_of(
            Field("subscribeThrottlingRatePerConsumer", number, -1),
            Field("ratePeriodInSecond", number, 30),
        ),
        Place("subscribeRate"),
        Place("subscribeRate", null=Null.KEEPS),
        default=lambda own, _: {
            "subscribeThrottlingRatePerConsumer": own.subscribe_rate.messages,
            "ratePeriodInSecond": own.subscribe_rate.period_seconds,
        },
        per_cluster=True,
    ),
    PolicyRow(
        "delayed_delivery_policies",
        object_of(
            Field("tickTime", long_number, 0),
            Field("active", boolean, False),
            Field("maxDeliveryDelayInMillis", long_number, 0),
        ),
        Place("delayedDelivery"),
        Place("delayedDelivery"),
        default=lambda own, _: {
            "tickTime": own.delayed_tick_ms,
            "active": own.delayed_delivery,
            "maxDeliveryDelayInMillis": own.max_delivery_delay_ms,
        },
    ),
    PolicyRow(
        "inactive_topic_policies",
        object_of(
            Field("inactiveTopicDeleteMode", one_of([mode.value for mode in DeleteMode])),
            Field("maxInactiveDurationSeconds", number, 0),
            Field("deleteWhileInactive", boolean, False),
        ),
        Place("inactiveTopicPolicies"),
        Place("inactiveTopicPolicies"),
        default=lambda own, _: {
            "inactiveTopicDeleteMode": own.inactive_topics.mode.value,
            "maxInactiveDurationSeconds": own.inactive_topics.after_seconds,
            "deleteWhileInactive": own.inactive_topics.delete,
        },
    ),
    PolicyRow(
        "entryFilters",
        object_of(Field("entryFilterNames", text, "")),
        Place("entryFilters"),
        Place("entryFilters"),
        checks.entry_filters,
        lambda _own, _: {"entryFilterNames": ""},
    ),
    PolicyRow(
        "dispatcherPauseOnAckStatePersistentEnabled",
        lambda _: True,
        Place("dispatcherPauseOnAckStatePersistent", null=Null.VALUE, unset=False),
        Place("dispatcherPauseOnAckStatePersistent", null=Null.VALUE, unset=False),
    ),
    PolicyRow(
        "offload_policies",
        given(object_of(Field("managedLedgerOffloadDriver", text))),
        Place("offloadPolicies", null=Null.VALUE, removable=False),
        Place("offloadPolicies", null=Null.VALUE),
        checks.offload,
    ),
    PolicyRow(
        "offload_threshold",
        long_number,
        Place("offloadThreshold", verb="PUT", null=Null.VALUE, unset=-1, removable=False),
    ),
    PolicyRow(
        "offload_threshold_in_seconds",
        long_number,
        Place(
            "offloadThresholdInSeconds",
            verb="PUT",
            null=Null.VALUE,
            unset=-1,
            removable=False,
            done=200,
        ),
    ),
    PolicyRow(
        "offload_deletion_lag_ms",
        long_number,
        Place("offloadDeletionLagMs", verb="PUT", null=Null.VALUE),
    ),
)
