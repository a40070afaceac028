"""Enumerations of options, under the official client's names and with its values."""

from __future__ import annotations

from enum import Enum


class CompressionType(Enum):
    """A compression of payloads."""

    NONE = 0
    LZ4 = 1
    ZLib = 2
    ZSTD = 3
    SNAPPY = 4


class InitialPosition(Enum):
    """The start position of a new subscription: after the last message, or at the first."""

    Latest = 0
    Earliest = 1


class ConsumerType(Enum):
    """Ways to distribute messages to the consumers of a subscription."""

    Exclusive = 0
    Shared = 1
    Failover = 2
    KeyShared = 3


class BatchingType(Enum):
    """The content of a batch: messages in order of arrival, or of one key."""

    Default = 0
    KeyBased = 1


class PartitionsRoutingMode(Enum):
    """The routing of messages without a key to partitions."""

    UseSinglePartition = 0
    RoundRobinDistribution = 1
    CustomPartition = 2


class HashingScheme(Enum):
    """The hash from key to partition; a topic's producers should agree."""

    Murmur3_32Hash = 0
    BoostHash = 1
    JavaStringHash = 2


class ProducerAccessMode(Enum):
    """A producer's access to a topic: shared or exclusive."""

    Shared = 0
    Exclusive = 1
    WaitForExclusive = 2
    ExclusiveWithFencing = 3


class RegexSubscriptionMode(Enum):
    """The topic domains matched against a pattern."""

    PersistentOnly = 0
    NonPersistentOnly = 1
    AllTopics = 2


class KeySharedMode(Enum):
    """The side dividing keys between Key_Shared consumers: the broker, or the consumers."""

    AutoSplit = 0
    Sticky = 1


class ConsumerCryptoFailureAction(Enum):
    """The handling of messages that cannot be decrypted."""

    FAIL = 0
    DISCARD = 1
    CONSUME = 2
