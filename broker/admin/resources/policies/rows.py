"""The table of policies: a row for each policy with regular requests.

Source: upstream NamespacesBase, PersistentTopicsBase and the classes of
``org.apache.pulsar.common.policies.data``; gaps in recordings were tried at a real broker.
"""

from __future__ import annotations

from broker.admin.resources.policies import checks
from broker.admin.resources.policies.number_rows import NUMBERS
from broker.admin.resources.policies.rate_rows import RATES
from broker.admin.resources.policies.row import Null, Place, PolicyRow
from broker.admin.resources.policies.schema_rows import SCHEMAS
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
from broker.authorization.operations import PolicyName
from broker.policies.effective import DeleteMode

ROWS = (
    *NUMBERS,
    *SCHEMAS,
    *RATES,
    PolicyRow(
        "subscription_types_enabled",
        PolicyName.SUBSCRIPTION_AUTH_MODE,
        set_of_texts,
        Place("subscriptionTypesEnabled", null=Null.VALUE, unset=[]),
        Place("subscriptionTypesEnabled", null=Null.VALUE, unset=[]),
        checks.subscription_types,
    ),
    PolicyRow(
        "autoTopicCreationOverride",
        PolicyName.AUTO_TOPIC_CREATION,
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
        PolicyName.AUTO_SUBSCRIPTION_CREATION,
        object_of(Field("allowAutoSubscriptionCreation", boolean, False)),
        Place("autoSubscriptionCreation"),
        Place("autoSubscriptionCreation"),
        default=lambda own, _: {"allowAutoSubscriptionCreation": own.auto_subscription_creation},
    ),
    PolicyRow(
        "retention_policies",
        PolicyName.RETENTION,
        object_of(
            Field("retentionTimeInMinutes", number, 0), Field("retentionSizeInMB", number, 0)
        ),
        Place("retention", misses_policies=True),
        Place("retention", null=Null.KEEPS),
        checks.retention,
        lambda own, _: {
            "retentionTimeInMinutes": own.retention.minutes,
            "retentionSizeInMB": own.retention.megabytes,
        },
    ),
    PolicyRow(
        "persistence",
        PolicyName.PERSISTENCE,
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
        "delayed_delivery_policies",
        PolicyName.DELAYED_DELIVERY,
        object_of(
            Field("tickTime", long_number, 0),
            Field("active", boolean, False),
            Field("maxDeliveryDelayInMillis", long_number, 0),
        ),
        Place("delayedDelivery", misses_policies=True),
        Place("delayedDelivery"),
        default=lambda own, _: {
            "tickTime": own.delayed_tick_ms,
            "active": own.delayed_delivery,
            "maxDeliveryDelayInMillis": own.max_delivery_delay_ms,
        },
        of_superusers=True,
    ),
    PolicyRow(
        "inactive_topic_policies",
        PolicyName.INACTIVE_TOPIC,
        object_of(
            Field("inactiveTopicDeleteMode", one_of([mode.value for mode in DeleteMode])),
            Field("maxInactiveDurationSeconds", number, 0),
            Field("deleteWhileInactive", boolean, False),
        ),
        Place("inactiveTopicPolicies", misses_policies=True),
        Place("inactiveTopicPolicies"),
        default=lambda own, _: {
            "inactiveTopicDeleteMode": own.inactive_topics.mode.value,
            "maxInactiveDurationSeconds": own.inactive_topics.after_seconds,
            "deleteWhileInactive": own.inactive_topics.delete,
        },
    ),
    PolicyRow(
        "entryFilters",
        PolicyName.ENTRY_FILTERS,
        object_of(Field("entryFilterNames", text, "")),
        Place("entryFilters"),
        Place("entryFilters"),
        checks.entry_filters,
        lambda _own, _: {"entryFilterNames": ""},
    ),
    PolicyRow(
        "dispatcherPauseOnAckStatePersistentEnabled",
        PolicyName.DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT,
        lambda _: True,
        Place("dispatcherPauseOnAckStatePersistent", null=Null.VALUE, unset=False),
        Place("dispatcherPauseOnAckStatePersistent", null=Null.VALUE, unset=False),
    ),
    PolicyRow(
        "allowed_topic_property_keys_for_metrics",
        PolicyName.ALLOW_CUSTOM_METRIC_LABELS,
        set_of_texts,
        Place("allowedTopicPropertyKeysForMetrics"),
    ),
)
