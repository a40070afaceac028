"""The choices a program makes, under the official client's names and with its values."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING

from client.arguments import check_arguments
from client.exceptions import InvalidConfiguration

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class CompressionType(Enum):
    """A compression of payloads."""

    NONE = 0
    LZ4 = 1
    ZLib = 2
    ZSTD = 3
    SNAPPY = 4


class InitialPosition(Enum):
    """The place where a new subscription begins: behind the last message, or at the first."""

    Latest = 0
    Earliest = 1


class ConsumerType(Enum):
    """A way in which the consumers of a subscription share its messages."""

    Exclusive = 0
    Shared = 1
    Failover = 2
    KeyShared = 3


class BatchingType(Enum):
    """The content of one batch: messages as they come, or those of one key."""

    Default = 0
    KeyBased = 1


class PartitionsRoutingMode(Enum):
    """Which partition a message without a key goes to."""

    UseSinglePartition = 0
    RoundRobinDistribution = 1
    CustomPartition = 2


class HashingScheme(Enum):
    """A hash that gives a key its partition; the producers of a topic should agree on it."""

    Murmur3_32Hash = 0
    BoostHash = 1
    JavaStringHash = 2


class ProducerAccessMode(Enum):
    """The claim of a producer to a topic: shared with others, or its own."""

    Shared = 0
    Exclusive = 1
    WaitForExclusive = 2
    ExclusiveWithFencing = 3


class RegexSubscriptionMode(Enum):
    """Which topics a pattern is matched against."""

    PersistentOnly = 0
    NonPersistentOnly = 1
    AllTopics = 2


class KeySharedMode(Enum):
    """The side that divides keys among Key_Shared consumers: the broker, or they themselves."""

    AutoSplit = 0
    Sticky = 1


class ConsumerCryptoFailureAction(Enum):
    """The fate of a message that cannot be decrypted."""

    FAIL = 0
    DISCARD = 1
    CONSUME = 2


def check_choices(options: DataclassInstance) -> None:
    """Check that each option whose default is a choice is one of the same kind, and the others.

    Raises:
        InvalidConfiguration: One is not, or has not what client.arguments says.
    """
    given = {one.name: getattr(options, one.name) for one in fields(options)}
    check_arguments(given)
    for one in fields(options):
        chosen = given[one.name]
        if isinstance(one.default, bool) and not isinstance(chosen, bool):
            raise InvalidConfiguration(f"{one.name} is True or False, not {chosen!r:.50}")
        if isinstance(one.default, Enum) and not isinstance(chosen, type(one.default)):
            raise InvalidConfiguration(
                f"{one.name} is one of {type(one.default).__name__}, such as {one.default}, not"
                f" {chosen!r:.50}"
            )
