"""Policies with a number as value: counts, sizes, durations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.resources.policies import checks
from broker.admin.resources.policies.row import Empty, Null, Place, PolicyRow
from broker.admin.resources.policies.values import (
    boolean,
    long_number,
    number,
)
from broker.authorization.operations import Level, PolicyName

if TYPE_CHECKING:
    from broker.authorization.operations import Needs


def _most(
    key: str,
    needs: Needs,
    namespace: str,
    topic: Place,
    field: str = "",
    *,
    misses_policies: bool = False,
) -> PolicyRow:
    """Return a limit of a count; without a field no value is shown as applied."""
    return PolicyRow(
        key,
        needs,
        number,
        Place(
            namespace,
            refusal=f"{namespace} must be 0 or more",
            null=Null.VALUE,
            misses_policies=misses_policies,
        ),
        topic,
        checks.not_negative,
        (lambda own, _: getattr(own, field)) if field else None,
    )


NUMBERS = (
    _most(
        "max_producers_per_topic",
        PolicyName.MAX_PRODUCERS,
        "maxProducersPerTopic",
        Place("maxProducers", refusal="maxProducers must be 0 or more", null=Null.VALUE),
        "max_producers",
    ),
    _most(
        "max_consumers_per_topic",
        PolicyName.MAX_CONSUMERS,
        "maxConsumersPerTopic",
        Place("maxConsumers", refusal="maxConsumers must be 0 or more", null=Null.VALUE),
        "max_consumers",
    ),
    _most(
        "max_consumers_per_subscription",
        PolicyName.MAX_CONSUMERS,
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
        PolicyName.MAX_SUBSCRIPTIONS,
        "maxSubscriptionsPerTopic",
        Place(
            "maxSubscriptionsPerTopic",
            refusal="maxSubscriptionsPerTopic must be 0 or more",
            null=Null.VALUE,
            unset=Empty.NO_CONTENT,
        ),
        misses_policies=True,
    ),
    _most(
        "max_unacked_messages_per_consumer",
        PolicyName.MAX_UNACKED,
        "maxUnackedMessagesPerConsumer",
        Place("maxUnackedMessagesOnConsumer", refusal="maxUnackedNum must be 0 or more"),
        "max_unacked_per_consumer",
    ),
    _most(
        "max_unacked_messages_per_subscription",
        PolicyName.MAX_UNACKED,
        "maxUnackedMessagesPerSubscription",
        Place("maxUnackedMessagesOnSubscription", refusal="maxUnackedNum must be 0 or more"),
        "max_unacked_per_subscription",
    ),
    PolicyRow(
        "max_topics_per_namespace",
        PolicyName.MAX_TOPICS,
        number,
        Place(
            "maxTopicsPerNamespace",
            refusal="maxTopicsPerNamespace must be 0 or more",
            null=Null.VALUE,
            unset=0,
            misses_policies=True,
        ),
        check=checks.not_negative,
    ),
    PolicyRow(
        "max_message_size",
        Level.TENANT_ADMIN,
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
        PolicyName.TTL,
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
        PolicyName.DEDUPLICATION,
        boolean,
        Place("deduplication", null=Null.VALUE),
        Place("deduplicationEnabled"),
        default=lambda own, _: own.deduplication,
    ),
    PolicyRow(
        "deduplicationSnapshotIntervalSeconds",
        PolicyName.DEDUPLICATION_SNAPSHOT,
        number,
        Place(
            "deduplicationSnapshotInterval",
            refusal="interval must be greater than or equal to 0",
            removable=False,
            misses_policies=True,
        ),
        Place("deduplicationSnapshotInterval", refusal="interval must be 0 or more"),
        checks.not_negative,
    ),
    PolicyRow(
        "compaction_threshold",
        PolicyName.COMPACTION,
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
        PolicyName.SUBSCRIPTION_EXPIRATION_TIME,
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
)
