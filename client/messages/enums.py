"""Enumerations for options, with the official client's names and values."""

from __future__ import annotations

from enum import Enum


class CompressionType(Enum):
    """The algorithms for compressing payloads."""

    NONE = 0
    LZ4 = 1
    ZLib = 2
    ZSTD = 3
    SNAPPY = 4


class InitialPosition(Enum):
    """Where a new subscription starts: after the last message, or at the first."""

    Latest = 0
    Earliest = 1


class ConsumerType(Enum):
    """The ways to distribute messages among the consumers of a subscription."""

    Exclusive = 0
    Shared = 1
    Failover = 2
    KeyShared = 3


class BatchingType(Enum):
    """The order of messages in batches: as sent, or one key in each batch."""

    Default = 0
    KeyBased = 1


class PartitionsRoutingMode(Enum):
    """The choice of a partition for messages without a key."""

    UseSinglePartition = 0
    RoundRobinDistribution = 1
    CustomPartition = 2


class HashingScheme(Enum):
    """The hash function that maps a key to a partition.

    All producers of a topic should use the same.
    """

    Murmur3_32Hash = 0
    BoostHash = 1
    JavaStringHash = 2


class ProducerAccessMode(Enum):
    """The access of a producer to its topic: shared with other producers, or exclusive."""

    Shared = 0
    Exclusive = 1
    WaitForExclusive = 2
    ExclusiveWithFencing = 3


class RegexSubscriptionMode(Enum):
    """The topic domains in which a pattern is matched."""

    PersistentOnly = 0
    NonPersistentOnly = 1
    AllTopics = 2


class KeySharedMode(Enum):
    """Who divides the keys among Key_Shared consumers: the broker, or the consumers."""

    AutoSplit = 0
    Sticky = 1


class ConsumerCryptoFailureAction(Enum):
    """The action on messages that cannot be decrypted."""

    FAIL = 0
    DISCARD = 1
    CONSUME = 2
