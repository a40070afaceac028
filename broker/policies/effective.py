"""The effective policies of a topic: its own ones, else its namespace's, else the broker's."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Rate(NamedTuple):
    """A limit on messages and bytes per period; -1 or 0 is unlimited.

    Attributes:
        messages: Most messages in a period.
        size_bytes: Most bytes in a period.
        period_seconds: The period.
        relative: The limit is on top of the publish rate.
    """

    messages: int = 0
    size_bytes: int = 0
    period_seconds: int = 1
    relative: bool = False


class QuotaAction(Enum):
    """The reaction to an exceeded backlog quota (upstream: BacklogQuota.RetentionPolicy)."""

    HOLD = "producer_request_hold"
    EXCEPTION = "producer_exception"
    EVICT = "consumer_backlog_eviction"


class BacklogQuota(NamedTuple):
    """A limit on the size or age of a subscription's backlog, and what happens above it.

    Attributes:
        limit: Bytes (destination_storage) or seconds (message_age); -1: unlimited.
        action: The reaction above the limit.
    """

    limit: int = -1
    action: QuotaAction = QuotaAction.HOLD


class Retention(NamedTuple):
    """For how long, and up to which size, acknowledged messages are kept; -1 is unlimited.

    With both 0 no messages are retained.
    """

    minutes: int = 0
    megabytes: int = 0

    def bounds(self, now_ms: int) -> tuple[int, int]:
        """Return the bytes to keep and the earliest time in ms, for ``ManagedLedger.trim``."""
        keep_bytes = self.megabytes * 1024 * 1024 if self.megabytes >= 0 else -1
        return keep_bytes, 0 if self.minutes < 0 else now_ms - self.minutes * 60_000


class DeleteMode(Enum):
    """The condition for deleting an unused topic (upstream: InactiveTopicDeleteMode)."""

    NO_SUBSCRIPTIONS = "delete_when_no_subscriptions"
    CAUGHT_UP = "delete_when_subscriptions_caught_up"


class InactiveTopics(NamedTuple):
    """The rule for deleting unused topics: if, after which time, on which condition.

    Attributes:
        delete: Whether unused topics are deleted.
        after_seconds: Time without use before the deletion.
        mode: The condition for the deletion.
    """

    delete: bool = False
    after_seconds: int = 60
    mode: DeleteMode = DeleteMode.NO_SUBSCRIPTIONS


class AutoTopicCreation(NamedTuple):
    """Whether a client's request creates a missing topic, and with how many partitions.

    Attributes:
        allowed: Whether topics are created.
        partitions: Partitions of the topic; 0 for a topic without partitions.
    """

    allowed: bool = True
    partitions: int = 0


class Persistence(NamedTuple):
    """The copies of a message in upstream's storage; shown only: here a message has one."""

    ensemble: int = 2
    write_quorum: int = 2
    ack_quorum: int = 2
    mark_delete_rate: float = 1.0


NO_RATE, NO_QUOTA, NO_RETENTION = Rate(), BacklogQuota(), Retention()
NO_SUBSCRIBE_RATE = Rate(period_seconds=30)
UPSTREAM_PERSISTENCE = Persistence()
NO_DELETION, PLAIN_TOPICS = InactiveTopics(), AutoTopicCreation()
ALL_TYPES = frozenset(("Exclusive", "Failover", "Shared", "Key_Shared"))


@dataclass(frozen=True, slots=True)
class EffectivePolicies:
    """The effective policies of a topic; 0 is unlimited unless stated otherwise."""

    max_producers: int = 0
    max_consumers: int = 0
    max_consumers_per_subscription: int = 0
    max_subscriptions: int = 0
    max_unacked_per_consumer: int = 50_000
    max_unacked_per_subscription: int = 200_000
    max_message_bytes: int = 0
    subscription_types: frozenset[str] = ALL_TYPES
    publish_rate: Rate = NO_RATE
    dispatch_rate: Rate = NO_RATE
    subscription_dispatch_rate: Rate = NO_RATE
    dispatch_rates: Mapping[str, Rate] = field(default_factory=dict, hash=False)
    """Rates of single subscriptions, by name; they override ``subscription_dispatch_rate``."""
    subscribe_rate: Rate = NO_SUBSCRIBE_RATE
    """Rate of subscribing by each consumer."""
    replicator_dispatch_rate: Rate = NO_RATE
    """Rate of replication, shown only: there is no replication."""
    size_quota: BacklogQuota = NO_QUOTA
    age_quota: BacklogQuota = NO_QUOTA
    retention: Retention = NO_RETENTION
    ttl_seconds: int = 0
    deduplication: bool = False
    delayed_delivery: bool = True
    delayed_tick_ms: int = 1_000
    delayed_strict: bool = False
    max_delivery_delay_ms: int = 0
    compaction_threshold_bytes: int = 0
    encryption_required: bool = False
    schema_strategy: str = "FULL"
    schema_validation_enforced: bool = False
    allow_auto_update_schema: bool = True
    auto_subscription_creation: bool = True
    auto_topic_creation: AutoTopicCreation = PLAIN_TOPICS
    max_topics: int = 0
    """Most topics of the namespace, counting partitions."""
    inactive_topics: InactiveTopics = NO_DELETION
    subscription_expiration_minutes: int = 0
    persistence: Persistence = UPSTREAM_PERSISTENCE
    """Copies of messages, shown only."""

    @property
    def relative_to_publishing(self) -> bool:
        """True if a dispatch rate is relative to the publish rate."""
        rates = (self.dispatch_rate, self.subscription_dispatch_rate, *self.dispatch_rates.values())
        return any(rate.relative for rate in rates)


DEFAULTS = EffectivePolicies()
