"""The surroundings of a subscription: its topic, its cursor, and the rules of its broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import proto.PulsarApi_pb2 as pb
from broker.subscriptions.key_shared.fixed_ranges import FixedRanges
from broker.subscriptions.key_shared.halved_ranges import HalvedRanges
from broker.subscriptions.key_shared.hash_ring import ConsistentHashRing
from server.configuration.common import Profile

if TYPE_CHECKING:
    from broker.configuration.config import BrokerConfig
    from broker.messages.compaction.topic_compaction import TopicCompaction
    from broker.messages.managed_ledger import ManagedLedger
    from broker.policies.effective import EffectivePolicies
    from broker.policies.rate_limiter import RateLimiter
    from broker.subscriptions.cursor import ManagedCursor
    from limiter.clock import Clock
    from proto.names import TopicName
    from server.tasks.shared_turns import SharedTurns

    Hashes: TypeAlias = ConsistentHashRing[Any] | HalvedRanges[Any] | FixedRanges[Any]


@dataclass(frozen=True, slots=True)
class SubscriptionRules:
    """The configuration of a broker about subscriptions; defaults are upstream's.

    Attributes:
        failover_delay_seconds: Until a new active consumer is told
            (activeConsumerFailoverDelayTimeMillis).
        round_robin_messages: Most messages for one Shared consumer before the next has its turn
            (dispatcherMaxRoundRobinBatchSize).
        acks_of_batch_indexes: Messages of a batch are acknowledged one by one
            (acknowledgmentAtBatchIndexLevelEnabled).
        look_ahead_per_consumer, look_ahead: Entries that Key_Shared reads past keys that must
            wait (keySharedLookAheadMsgInReplayThresholdPerConsumer, ...PerSubscription).
        ring_points: Points of each Key_Shared consumer on the ring of hashes; 0: there is no ring,
            and newcomers halve the largest range (subscriptionKeySharedUseConsistentHashing,
            subscriptionKeySharedConsistentHashingReplicaPoints).
        strict_delivery_time: Delayed messages are never early
            (isDelayedDeliveryDeliverAtTimeStrict).
        closes_who_rolls_back: Who subscribes with a rollback to a subscription that is there, and
            not durable, is closed with those that have it.
        tells_waits: Statistics of consumers say what each waits for.
        acks_end_behind_the_end: Of one command's acknowledgements those behind one that is beyond
            the last entry are forgotten, though their consumer is rid of them.
    """

    failover_delay_seconds: float = 1.0
    round_robin_messages: int = 20
    acks_of_batch_indexes: bool = True
    look_ahead_per_consumer: int = 2_000
    look_ahead: int = 20_000
    ring_points: int = 100
    strict_delivery_time: bool = False
    closes_who_rolls_back: bool = False
    acks_end_behind_the_end: bool = False
    tells_waits: bool = False

    @staticmethod
    def of(config: BrokerConfig) -> SubscriptionRules:
        """Return the rules of a configuration."""
        return SubscriptionRules(
            config.failover_delay_ms / 1000,
            config.round_robin_messages,
            config.acks_of_batch_indexes,
            config.look_ahead_per_consumer,
            config.look_ahead,
            config.ring_points if config.uses_consistent_hashing else 0,
            config.strict_delivery_time,
            closes_who_rolls_back=config.profile is Profile.PULSAR,
            acks_end_behind_the_end=config.profile is Profile.PULSAR,
            tells_waits=config.profile is Profile.FLOODGATE,
        )

    def nobodys_hashes(self, mode: pb.KeySharedMode.ValueType) -> Hashes:
        """Return the hashes of a Key_Shared subscription without consumers."""
        if mode == pb.STICKY:
            return FixedRanges()
        return ConsistentHashRing(self.ring_points) if self.ring_points else HalvedRanges()


class TopicWithPolicies(Protocol):
    """A topic of any kind, as far as its subscriptions depend on it."""

    @property
    def name(self) -> TopicName:
        """Its name."""

    @property
    def policies(self) -> EffectivePolicies:
        """The policies in force now."""

    @property
    def clock(self) -> Clock:
        """Time."""


class SubscribedTopic(TopicWithPolicies, Protocol):
    """A topic that stores messages, as far as its subscriptions depend on it."""

    @property
    def ledger(self) -> ManagedLedger:
        """Its messages."""

    @property
    def compaction(self) -> TopicCompaction:
        """Its compaction, and what that has left."""

    @property
    def terminated(self) -> bool:
        """True if nothing is stored any more."""


@dataclass(frozen=True, slots=True)
class SubscriptionContext:
    """The surroundings of a dispatcher.

    Attributes:
        topic: Its topic.
        cursor: What its subscription has acknowledged.
        rules: The broker's configuration.
        topic_rate: The rate that all subscriptions of the topic share.
        turns: Runs all dispatchers of the broker in turn.
    """

    topic: SubscribedTopic
    cursor: ManagedCursor
    rules: SubscriptionRules
    topic_rate: RateLimiter
    turns: SharedTurns
