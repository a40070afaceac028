"""Stored policies, and the effective policies with a document applied.

A document holds the policies of a namespace or topic: values of JSON as in requests and responses
of the admin REST, with upstream's names of a namespace's policies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from broker.policies.effective import (
    AutoTopicCreation,
    BacklogQuota,
    DeleteMode,
    EffectivePolicies,
    InactiveTopics,
    QuotaAction,
    Rate,
    Retention,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SIZE_QUOTA, AGE_QUOTA = "destination_storage", "message_age"
UNDEFINED = "UNDEFINED"
"""A schema compatibility strategy that leaves the choice to the broker."""
LOCAL_POLICIES = "local_policies"
"""Key of policies hidden from a namespace's policies: bookies and anti-affinity."""


def in_force(base: EffectivePolicies, document: Mapping[str, Any]) -> EffectivePolicies:
    """Return the effective policies of a document on top of base policies."""
    changes: dict[str, Any] = {}
    for key, value in document.items():
        if key in _PLAIN:
            changes[_PLAIN[key]] = value
        elif key in _READ:
            changes |= _READ[key](value)
    return replace(base, **changes)


def _dispatch_rate(value: Mapping[str, Any]) -> Rate:
    return Rate(
        value["dispatchThrottlingRateInMsg"],
        value["dispatchThrottlingRateInByte"],
        value["ratePeriodInSecond"],
        value["relativeToPublishRate"],
    )


def _publish_rate(value: Mapping[str, Any]) -> dict[str, Any]:
    rate = Rate(value["publishThrottlingRateInMsg"], value["publishThrottlingRateInByte"])
    return {"publish_rate": rate}


def _quotas(value: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, quota in value.items():
        action = QuotaAction(quota["policy"])
        if name == AGE_QUOTA:
            found["age_quota"] = BacklogQuota(quota["limitTime"], action)
        else:
            found["size_quota"] = BacklogQuota(quota["limitSize"], action)
    return found


def _delayed(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "delayed_delivery": value["active"],
        "delayed_tick_ms": value["tickTime"],
        "max_delivery_delay_ms": value["maxDeliveryDelayInMillis"],
    }


def _inactive(value: Mapping[str, Any]) -> dict[str, Any]:
    mode, seconds = value.get("inactiveTopicDeleteMode"), value["maxInactiveDurationSeconds"]
    if mode is None:
        # Set without a mode: no topics are deleted.
        return {"inactive_topics": InactiveTopics(after_seconds=seconds)}
    found = InactiveTopics(value["deleteWhileInactive"], seconds, DeleteMode(mode))
    return {"inactive_topics": found}


def _auto_topics(value: Mapping[str, Any]) -> dict[str, Any]:
    partitioned = value.get("topicType") == "partitioned"
    partitions = int(value.get("defaultNumPartitions") or 1) if partitioned else 0
    return {"auto_topic_creation": AutoTopicCreation(value["allowAutoTopicCreation"], partitions)}


_PLAIN = {
    "max_producers_per_topic": "max_producers",
    "max_consumers_per_topic": "max_consumers",
    "max_consumers_per_subscription": "max_consumers_per_subscription",
    "max_subscriptions_per_topic": "max_subscriptions",
    "max_unacked_messages_per_consumer": "max_unacked_per_consumer",
    "max_unacked_messages_per_subscription": "max_unacked_per_subscription",
    "max_message_size": "max_message_bytes",
    "max_topics_per_namespace": "max_topics",
    "message_ttl_in_seconds": "ttl_seconds",
    "deduplicationEnabled": "deduplication",
    "compaction_threshold": "compaction_threshold_bytes",
    "encryption_required": "encryption_required",
    "is_allow_auto_update_schema": "allow_auto_update_schema",
    "subscription_expiration_time_minutes": "subscription_expiration_minutes",
}
"""Policies whose value is a field's value."""
_READ: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "autoSubscriptionCreationOverride": lambda value: {
        "auto_subscription_creation": value["allowAutoSubscriptionCreation"]
    },
    "autoTopicCreationOverride": _auto_topics,
    "backlog_quota_map": _quotas,
    "clusterSubscribeRate": lambda value: {
        "subscribe_rate": Rate(
            value["subscribeThrottlingRatePerConsumer"],
            period_seconds=value["ratePeriodInSecond"],
        )
    },
    "delayed_delivery_policies": _delayed,
    "dispatch_rates": lambda value: {
        "dispatch_rates": {name: _dispatch_rate(rate) for name, rate in value.items()}
    },
    "inactive_topic_policies": _inactive,
    "publishMaxMessageRate": _publish_rate,
    "retention_policies": lambda value: {
        "retention": Retention(value["retentionTimeInMinutes"], value["retentionSizeInMB"])
    },
    "schema_compatibility_strategy": lambda value: (
        {} if value == UNDEFINED else {"schema_strategy": value}
    ),
    # The broker or the namespace enforces for all topics: False never overrides.
    "schema_validation_enforced": lambda value: (
        {"schema_validation_enforced": True} if value else {}
    ),
    "subscriptionDispatchRate": lambda value: {"subscription_dispatch_rate": _dispatch_rate(value)},
    "subscription_types_enabled": lambda value: (
        {"subscription_types": frozenset(value)} if value else {}
    ),
    "topicDispatchRate": lambda value: {"dispatch_rate": _dispatch_rate(value)},
}
"""Policies parsed from JSON."""
