"""The surroundings of a subscription: topic, rules, and reasons for waiting."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import proto.PulsarApi_pb2 as pb
from broker.configuration.publishing_keys import UPSTREAMS_DISPATCH, DispatchSettings
from broker.messages.subscriptions.key_shared.hash_ring import ConsistentHashRing
from broker.messages.subscriptions.key_shared.ranges import FixedRanges, HalvedRanges
from server.configuration.common import Profile

if TYPE_CHECKING:
    from broker.configuration.config import BrokerConfig
    from broker.messages.compaction.topic_compaction import TopicCompaction
    from broker.messages.stores.managed_ledger import ManagedLedger
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock
    from proto.names import TopicName
    from server.tasks.cooperative import SharedTurns

    Hashes: TypeAlias = ConsistentHashRing[Any] | HalvedRanges[Any] | FixedRanges[Any]


@dataclass(frozen=True, slots=True)
class SubscriptionRules:
    """The broker's configuration of subscriptions; defaults are upstream's.

    Attributes:
        failover_delay_seconds: Delay before a new active consumer is notified
            (activeConsumerFailoverDelayTimeMillis).
        dispatch: The settings of dispatchers, which may change at run time.
        acks_of_batch_indexes: Acknowledge single messages of a batch
            (acknowledgmentAtBatchIndexLevelEnabled).
        ring_points: Points of each Key_Shared consumer on the hash ring; 0: no ring, and newcomers
            halve the largest range (subscriptionKeySharedUseConsistentHashing,
            subscriptionKeySharedConsistentHashingReplicaPoints).
        strict_delivery_time: Delayed messages are never early
            (isDelayedDeliveryDeliverAtTimeStrict).
        closes_who_rolls_back: Subscribing with a rollback to an existing non-durable subscription
            closes the new consumer with all other consumers.
        tells_waits: Consumer statistics include the reason for waiting.
        acks_end_behind_the_end: An acknowledgement beyond the last entry makes all later ids of the
            same command ineffective, although the consumer loses the entries.
    """

    failover_delay_seconds: float = 1.0
    dispatch: DispatchSettings = UPSTREAMS_DISPATCH
    acks_of_batch_indexes: bool = True
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
            config.dispatch,
            config.acks_of_batch_indexes,
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


class Waits(StrEnum):
    """A consumer's reason for waiting."""

    NOTHING_LEFT = "the subscription has no message left to deliver"
    PERMITS = "its client has no room for messages: it gave no permits"
    ACKNOWLEDGEMENTS = "it has as many unacknowledged messages as one consumer may have"
    WRITABLE = "its client does not read what it was sent"
    SUBSCRIPTION = "the subscription has as many unacknowledged messages as it may have"
    RATE = "the dispatch rate is used up"
    STORE = "messages are being read from the store"
    DELAY = "all messages left are delayed"
    ACTIVE_CONSUMER = "another consumer is the active one"
    NO_ACTIVE_CONSUMER = "a SEEK closed the active consumer: the next to subscribe decides"
    CHANGE = "the change of the active consumer is awaited"
    DRAINING = "another consumer has unacknowledged messages of its keys"
    OTHER_KEYS = "all messages left have keys of other consumers"
    FREE_KEYS = "no consumer has the keys of the messages left"
    LOOK_AHEAD = "too many messages of other keys wait before its own"


class TopicWithPolicies(Protocol):
    """The part of any topic used by subscriptions."""

    @property
    def name(self) -> TopicName:
        """The topic's name."""

    @property
    def policies(self) -> EffectivePolicies:
        """The effective policies."""

    @property
    def clock(self) -> Clock:
        """The time."""

    @property
    def rules(self) -> SubscriptionRules:
        """The broker's configuration."""

    def touched(self) -> None:
        """Periodic work visits the topic again after a change."""


class SubscribedTopic(TopicWithPolicies, Protocol):
    """The part of a persistent topic used by subscriptions."""

    @property
    def ledger(self) -> ManagedLedger:
        """The topic's messages."""

    @property
    def compaction(self) -> TopicCompaction:
        """The topic's compaction and compacted entries."""

    @property
    def turns(self) -> SharedTurns:
        """Schedules the dispatchers of all topics."""

    @property
    def terminated(self) -> bool:
        """True if the topic accepts no more messages."""
