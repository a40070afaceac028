"""The topic and the settings that a subscription uses, and consumers' reasons for waiting."""

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
    from broker.messages.statistics import PublishStatistics
    from broker.messages.stores.managed_ledger import ManagedLedger
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock
    from proto.names import TopicName
    from server.tasks.cooperative import SharedTurns

    Hashes: TypeAlias = ConsistentHashRing[Any] | HalvedRanges[Any] | FixedRanges[Any]


@dataclass(frozen=True, slots=True)
class SubscriptionRules:
    """The broker's settings for subscriptions; the defaults are upstream's.

    Attributes:
        failover_delay_seconds: Delay before a new active consumer is notified
            (activeConsumerFailoverDelayTimeMillis).
        dispatch: The settings of dispatchers, which may change at run time.
        acks_of_batch_indexes: True if single messages of a batch can be acknowledged
            (acknowledgmentAtBatchIndexLevelEnabled).
        ring_points: The number of points of each Key_Shared consumer on the hash ring. With 0 there
            is no ring: a new consumer gets half of the largest range
            (subscriptionKeySharedUseConsistentHashing,
            subscriptionKeySharedConsistentHashingReplicaPoints).
        strict_delivery_time: True if delayed messages are never delivered early
            (isDelayedDeliveryDeliverAtTimeStrict).
        closes_who_rolls_back: True if subscribing with a rollback to an existing non-durable
            subscription closes all its consumers, including the new consumer.
        tells_waits: True if consumer statistics include the reason why a consumer waits.
        waits_for_first_chunk: True if a chunk whose message's first chunk was not delivered to a
            consumer stops a Shared subscription.
        acks_end_behind_the_end: True if an acknowledgement beyond the last entry makes all later
            ids of the same command ineffective, although the consumer loses the entries.
    """

    failover_delay_seconds: float = 1.0
    dispatch: DispatchSettings = UPSTREAMS_DISPATCH
    acks_of_batch_indexes: bool = True
    ring_points: int = 100
    strict_delivery_time: bool = False
    closes_who_rolls_back: bool = False
    acks_end_behind_the_end: bool = False
    tells_waits: bool = False
    waits_for_first_chunk: bool = False

    @staticmethod
    def of(config: BrokerConfig) -> SubscriptionRules:
        """Return the settings for subscriptions in a broker's configuration."""
        return SubscriptionRules(
            config.failover_delay_ms / 1000,
            config.dispatch,
            config.acks_of_batch_indexes,
            config.ring_points if config.uses_consistent_hashing else 0,
            config.strict_delivery_time,
            closes_who_rolls_back=config.profile is Profile.PULSAR,
            acks_end_behind_the_end=config.profile is Profile.PULSAR,
            tells_waits=config.profile is Profile.FLOODGATE,
            waits_for_first_chunk=config.profile is Profile.PULSAR,
        )

    def nobodys_hashes(self, mode: pb.KeySharedMode.ValueType) -> Hashes:
        """Return the assignment of key hashes for a Key_Shared subscription without consumers."""
        if mode == pb.STICKY:
            return FixedRanges()
        return ConsistentHashRing(self.ring_points) if self.ring_points else HalvedRanges()


class Waits(StrEnum):
    """A reason why a consumer receives no messages at present."""

    NOTHING_LEFT = "the subscription has no message left to deliver"
    PERMITS = "its client has sent no permits for messages"
    ACKNOWLEDGEMENTS = "it has reached the limit of unacknowledged messages per consumer"
    WRITABLE = "its client does not read the messages sent"
    SUBSCRIPTION = "the subscription has reached its limit of unacknowledged messages"
    RATE = "the dispatch rate is used up"
    STORE = "messages are being read from the store"
    DELAY = "all messages left are delayed"
    ACTIVE_CONSUMER = "another consumer is the active one"
    NO_ACTIVE_CONSUMER = "a SEEK closed the active consumer: one is chosen at the next SUBSCRIBE"
    CHANGE = "the failover delay has not passed yet"
    DRAINING = "another consumer has unacknowledged messages of its keys"
    OTHER_KEYS = "all messages that are due have keys of other consumers"
    FREE_KEYS = "no consumer has the keys of the messages that are due"
    LOOK_AHEAD = "too many messages of other keys wait before its own"


class TopicWithPolicies(Protocol):
    """The interface (typing Protocol) with the attributes of any topic that subscriptions use."""

    @property
    def name(self) -> TopicName:
        """The topic's name."""

    @property
    def policies(self) -> EffectivePolicies:
        """The topic's effective policies."""

    @property
    def clock(self) -> Clock:
        """The clock for times and timers of subscriptions."""

    @property
    def rules(self) -> SubscriptionRules:
        """The broker's settings for subscriptions."""

    def touched(self) -> None:
        """Make periodic work visit the topic again, because its state changed."""


class SubscribedTopic(TopicWithPolicies, Protocol):
    """The interface (typing Protocol) of a persistent topic that its subscriptions use."""

    @property
    def statistics(self) -> PublishStatistics:
        """Totals and rates of the topic's published messages."""

    @property
    def ledger(self) -> ManagedLedger:
        """The ledger with the topic's messages."""

    @property
    def compaction(self) -> TopicCompaction:
        """The topic's compaction and compacted entries."""

    @property
    def turns(self) -> SharedTurns:
        """The scheduler that runs the dispatchers of all topics in turns of the event loop."""

    @property
    def terminated(self) -> bool:
        """True if the topic accepts no more messages."""
