"""The name by which upstream authorizes each policy, for those of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.authorization.operations import Level, PolicyName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.authorization.operations import Needs

NEEDS: Mapping[str, Needs] = {
    "allowed_topic_property_keys_for_metrics": PolicyName.ALLOW_CUSTOM_METRIC_LABELS,
    "autoSubscriptionCreationOverride": PolicyName.AUTO_SUBSCRIPTION_CREATION,
    "autoTopicCreationOverride": PolicyName.AUTO_TOPIC_CREATION,
    "clusterSubscribeRate": PolicyName.RATE,
    "compaction_threshold": PolicyName.COMPACTION,
    "deduplicationEnabled": PolicyName.DEDUPLICATION,
    "deduplicationSnapshotIntervalSeconds": PolicyName.DEDUPLICATION_SNAPSHOT,
    "delayed_delivery_policies": PolicyName.DELAYED_DELIVERY,
    "dispatcherPauseOnAckStatePersistentEnabled": (
        PolicyName.DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT
    ),
    "encryption_required": PolicyName.ENCRYPTION,
    "subscription_auth_mode": PolicyName.SUBSCRIPTION_AUTH_MODE,
    "entryFilters": PolicyName.ENTRY_FILTERS,
    "inactive_topic_policies": PolicyName.INACTIVE_TOPIC,
    "is_allow_auto_update_schema": PolicyName.SCHEMA_COMPATIBILITY_STRATEGY,
    "max_consumers_per_subscription": PolicyName.MAX_CONSUMERS,
    "max_consumers_per_topic": PolicyName.MAX_CONSUMERS,
    "max_message_size": Level.TENANT_ADMIN,
    "max_producers_per_topic": PolicyName.MAX_PRODUCERS,
    "max_subscriptions_per_topic": PolicyName.MAX_SUBSCRIPTIONS,
    "max_topics_per_namespace": PolicyName.MAX_TOPICS,
    "max_unacked_messages_per_consumer": PolicyName.MAX_UNACKED,
    "max_unacked_messages_per_subscription": PolicyName.MAX_UNACKED,
    "message_ttl_in_seconds": PolicyName.TTL,
    "persistence": PolicyName.PERSISTENCE,
    "publishMaxMessageRate": PolicyName.RATE,
    "replicatorDispatchRate": PolicyName.REPLICATION_RATE,
    "retention_policies": PolicyName.RETENTION,
    "schema_auto_update_compatibility_strategy": PolicyName.SCHEMA_COMPATIBILITY_STRATEGY,
    "schema_compatibility_strategy": PolicyName.SCHEMA_COMPATIBILITY_STRATEGY,
    "schema_validation_enforced": PolicyName.SCHEMA_COMPATIBILITY_STRATEGY,
    "subscriptionDispatchRate": PolicyName.RATE,
    "subscription_expiration_time_minutes": PolicyName.SUBSCRIPTION_EXPIRATION_TIME,
    "subscription_types_enabled": PolicyName.SUBSCRIPTION_AUTH_MODE,
    "topicDispatchRate": PolicyName.RATE,
}
"""By key of the row."""
CHANGED_BY_SUPERUSERS = frozenset({"delayed_delivery_policies"})
"""Of namespaces, as recorded."""
