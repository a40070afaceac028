"""The operator's limits and rules for topics, and the errors for changes that violate them.

Pure decisions; ``broker.topics.service`` waits for the store. Sentences known to clients are
upstream's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.errors import Refusal, RefusedError
from proto.names import (
    MAX_NAME_BYTES,
    PARTITION_SEPARATOR,
    TopicName,
    is_system_topic,
    is_transaction_topic,
)
from proto.names import MAX_PARTITIONS as MAX_PARTITIONS
from server.configuration.common import Profile

if TYPE_CHECKING:
    from broker.configuration.config import BrokerConfig
    from broker.policies.effective import EffectivePolicies
    from broker.stores.store import NamespaceSnapshot

PARTITIONS_PER_CHANGE = 5_000
"""Most partitions created or removed in one change; the largest are prepared off the loop.

More partitions take several changes, interleaved with other requests: a concurrent reader sees a
part of them, as on a real broker, which creates partitions one by one.
"""
LEAST_PARTITIONS_PER_CHANGE = 100
TRIES = 5
"""Most attempts at a change that another change overtakes."""
_JAVA_LONG = re.compile(r"[+-]?\d{1,99}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The operator's settings for the creation of topics and for their number.

    Attributes:
        auto_creation: allowAutoTopicCreation.
        auto_partitions: Partitions of a topic created for a client; 0 for a topic without
            partitions (allowAutoTopicCreationType, defaultNumPartitions).
        max_partitions: maxNumPartitionsPerPartitionedTopic; 0 or less is unlimited.
        max_topics: maxTopicsPerNamespace, partitions one by one; 0 or less is unlimited.
        counts_persistent_only: Whether ``max_topics`` bounds only persistent topics at their
            creation, with their partitions, but not partitions added later: profile pulsar.
        lazy_non_persistent: Whether partitions of a non-persistent topic exist only after their
            first use, and deleting a missing non-persistent topic succeeds: profile pulsar.
    """

    auto_creation: bool = True
    auto_partitions: int = 0
    max_partitions: int = 0
    max_topics: int = 0
    counts_persistent_only: bool = False
    lazy_non_persistent: bool = False

    @staticmethod
    def of(config: BrokerConfig, policies: EffectivePolicies) -> TopicRules:
        """Return the rules that the broker's configuration and a namespace's policies set."""
        as_pulsar = config.profile is Profile.PULSAR
        return TopicRules(
            *policies.auto_topic_creation,
            config.max_num_partitions_per_partitioned_topic,
            policies.max_topics,
            as_pulsar,
            as_pulsar,
        )

    @property
    def most_partitions(self) -> int:
        """The largest number of partitions that one topic may have."""
        return (
            min(self.max_partitions, MAX_PARTITIONS) if self.max_partitions > 0 else MAX_PARTITIONS
        )


def partition_name(topic: TopicName, index: int) -> str:
    """Return the full name of the partition of a topic with the given index."""
    return f"{topic}{PARTITION_SEPARATOR}{index}"


def partition_names(topic: TopicName, indices: range) -> list[bytes]:
    """Return the full names of the partitions of a topic with the given indexes, as UTF-8."""
    start = f"{topic}{PARTITION_SEPARATOR}"
    return [f"{start}{index}".encode() for index in indices]


def in_changes(indices: range, properties: int = 0) -> list[range]:
    """Split partition indexes into ranges, each of which is created or removed in one change.

    There is at least one range.

    Args:
        indices: Indexes of the partitions.
        properties: Properties of each partition: a property costs about four times as much as a
            name.
    """
    size = max(LEAST_PARTITIONS_PER_CHANGE, PARTITIONS_PER_CHANGE // (1 + 4 * properties))
    starts = range(indices.start, max(indices.stop, indices.start + 1), size)
    return [range(one, min(one + size, indices.stop)) for one in starts]


def numbered(topic: TopicName) -> tuple[TopicName, int] | None:
    """Split a name such as ``t-partition-7`` into the partitioned topic's name and the number.

    Differs from TopicName.partitioned_name: here ``-partition-007`` and ``-partition--1`` end in a
    number, too, and the text behind the first ``-partition-`` decides (upstream:
    PersistentTopicsBase.validateNonPartitionTopicNameAsync).

    Returns:
        None for a name without a number.
    """
    base, separator, behind = topic.local_name.partition(PARTITION_SEPARATOR)
    if not separator or not _JAVA_LONG.fullmatch(behind):
        return None
    number = int(behind)
    fits = -(2**63) <= number < 2**63
    return (TopicName(topic.domain, topic.namespace, base), number) if fits else None


def partitions_around(topic: TopicName, snapshot: NamespaceSnapshot) -> int | None:
    """Return the number of partitions of the topic to which a partition belongs.

    Returns:
        None if the name is not a partition's, or the partitioned topic is missing.
    """
    if topic.partition_index < 0:
        return None
    return snapshot.partitioned.get(str(topic.partitioned_name))


# -- conditions -----------------------------------------------------------------------------------


def check_name(topic: TopicName) -> None:
    """Raise an error if a topic's name is too long or has control characters.

    Raises:
        RefusedError: The name is too long, has a control character, or is a transaction system
            topic's.
    """
    size = len(str(topic).encode())
    if size > MAX_NAME_BYTES:
        raise _precondition(
            f"Topic name is not valid: it has {size} bytes, and at most {MAX_NAME_BYTES} are kept"
        )
    if _CONTROL.search(topic.local_name):
        raise _precondition(
            "Topic name is not valid: it has a control character, such as an end of line"
        )
    if is_transaction_topic(str(topic)):
        raise RefusedError(Refusal.BAD_REQUEST, "Cannot create topic in system topic format!")


def check_new_partitioned(topic: TopicName, rules: TopicRules) -> None:
    """Raise an error if a new partitioned topic's name looks like a partition's.

    For non-persistent topics a real broker creates any, and deletes none with a partition's name.

    Raises:
        RefusedError: The name is a partition's.
    """
    if PARTITION_SEPARATOR not in topic.local_name:
        return
    if topic.persistent or (topic.partition_index >= 0 and not rules.lazy_non_persistent):
        raise _like_a_partition()


def check_not_a_partition(topic: TopicName) -> None:
    """Raise an error if a topic that should be partitioned is itself a partition.

    Raises:
        RefusedError: The name is a partition's.
    """
    if topic.partition_index >= 0:
        raise _like_a_partition()


def _like_a_partition() -> RefusedError:
    return _precondition(f"Partitioned Topic Name should not contain '{PARTITION_SEPARATOR}'")


def check_number(topic: TopicName, snapshot: NamespaceSnapshot) -> None:
    """Raise an error if a new topic's name ends in the number of a partition that cannot exist.

    Raises:
        RefusedError: The partitioned topic is missing, or has fewer partitions.
    """
    found = numbered(topic)
    if found is None:
        return
    base, number = found
    count = snapshot.partitioned.get(str(base))
    if count is None:
        raise no_such_partition(topic, base)
    if number >= count:
        raise _too_high(topic, base)


def check_partition(topic: TopicName, base: TopicName, snapshot: NamespaceSnapshot) -> None:
    """Raise an error if a partition is not one of an existing partitioned topic.

    Raises:
        RefusedError: The partitioned topic is missing, or has fewer partitions.
    """
    count = snapshot.partitioned.get(str(base))
    if count is None:
        raise no_metadata(topic)
    if topic.partition_index >= count:
        raise _too_high(topic, base)


def _too_high(topic: TopicName, base: TopicName) -> RefusedError:
    return _precondition(
        f'Can\'t create topic {topic.local_name} with "{PARTITION_SEPARATOR}" followed by a '
        f"number smaller than number of partition of partitioned topic {base.local_name}"
    )


def check_count(partitions: int, rules: TopicRules) -> None:
    """Raise an error if a new partitioned topic would have too few or too many partitions.

    Raises:
        RefusedError: The count is out of bounds.
    """
    most = rules.most_partitions
    if not 0 < partitions <= most:
        bound = "more than 0" if partitions <= 0 else f"less than or equal to {most}"
        reason = f"Number of partitions should be {bound}"
        raise RefusedError(Refusal.NOT_ACCEPTABLE, reason)


def check_growth(topic: TopicName, count: int, partitions: int, rules: TopicRules) -> None:
    """Raise an error if a topic's new partition count is too large, or below the present one.

    Args:
        topic: The partitioned topic.
        count: Current partitions; 0 for a topic without partitions.
        partitions: The requested number.
        rules: The operator's rules.

    Raises:
        RefusedError: The requested number is refused.
    """
    if not count:
        raise RefusedError(Refusal.CONFLICT, f"Topic {topic} is not the partitioned topic.")
    wrong = None
    if partitions < count:
        wrong = f"less than the current partitions {count}."
    elif partitions > rules.most_partitions:
        wrong = f"greater than the maximum partitions per topic {rules.most_partitions}."
    if wrong:
        reason = f"Desired partitions {partitions} can't be {wrong}"
        raise RefusedError(Refusal.UNPROCESSABLE, reason)


def check_room(
    topic: TopicName,
    snapshot: NamespaceSnapshot,
    more: int,
    rules: TopicRules,
    refusal: Refusal = Refusal.CONFLICT,
) -> None:
    """Raise an error if new topics would exceed maxTopicsPerNamespace.

    System topics do not count.

    Args:
        topic: The topic created or grown.
        snapshot: The namespace before the change.
        more: Number of created topics, partitions one by one.
        rules: The operator's rules.
        refusal: The kind of refusal.

    Raises:
        RefusedError: The limit would be exceeded.
    """
    if is_system_topic(str(topic)):
        return
    count = len(snapshot.persistent) + len(snapshot.non_persistent)
    if rules.counts_persistent_only:
        count = len(snapshot.persistent) if topic.persistent else 0
    if 0 < rules.max_topics < count + more:
        raise RefusedError(refusal, "Exceed maximum number of topics in namespace.")


# -- refusals -------------------------------------------------------------------------------------


def no_namespace() -> RefusedError:
    """Return the error for a change in a namespace that does not exist."""
    return RefusedError(Refusal.NOT_FOUND, "Namespace not found")


def not_found(topic: TopicName) -> RefusedError:
    """Return the error for a request about a topic that does not exist."""
    return RefusedError(Refusal.NOT_FOUND, f"Topic {topic} not found")


def no_partition(topic: TopicName, count: int) -> RefusedError:
    """Return Pulsar's error for a missing partition, given its topic's number of partitions."""
    if topic.persistent:
        nothing = f"Partitioned Topic not found: {topic} has zero partitions"
        reason = "Topic partitions were not yet created" if count else nothing
        return RefusedError(Refusal.NOT_FOUND, reason)
    if not count:
        return no_metadata(topic)
    high = f"Illegal topic partition name {topic} with max allowed {count} partitions"
    return RefusedError(Refusal.CONFLICT, high)


def no_metadata(topic: TopicName) -> RefusedError:
    """Return the error for a partition whose partitioned topic is missing or cannot exist."""
    reason = f"Partition metadata not found for the partitioned topic: {topic}"
    return RefusedError(Refusal.CONFLICT, reason)


def already_exists() -> RefusedError:
    """Return the error for creating a topic whose name another topic has."""
    return RefusedError(Refusal.CONFLICT, "This topic already exists")


def overtaken(topic: TopicName) -> RefusedError:
    """Return the error for a change that failed repeatedly because of concurrent changes."""
    return RefusedError(Refusal.CONFLICT, f"{topic} is being changed concurrently: retry")


def no_such_partition(topic: TopicName, base: TopicName) -> RefusedError:
    """Return the error for creating a partition whose partitioned topic does not exist."""
    return _precondition(
        f'Can\'t create topic {topic.local_name} with "{PARTITION_SEPARATOR}" followed by numeric '
        f"value if there isn't a partitioned topic {base.local_name} created."
    )


def is_partitioned(topic: TopicName) -> RefusedError:
    """Return the error for deleting a partitioned topic by a request for unpartitioned topics."""
    reason = (
        f"{topic} is a partitioned topic, instead of calling delete topic, please call "
        "delete-partitioned-topic."
    )
    return RefusedError(Refusal.CONFLICT, reason)


def not_partitioned(topic: TopicName, snapshot: NamespaceSnapshot | None) -> RefusedError:
    """Return the error for deleting a topic that is not partitioned as a partitioned one."""
    if snapshot is None or not snapshot.contains(topic):
        return RefusedError(Refusal.NOT_FOUND, f"Topic {topic} not found.")
    reason = (
        f"{topic} is a non-partitioned topic. Instead of calling delete-partitioned-topic please "
        "call delete."
    )
    return RefusedError(Refusal.CONFLICT, reason)


def _precondition(reason: str) -> RefusedError:
    return RefusedError(Refusal.PRECONDITION_FAILED, reason)
