"""The choice of a Failover subscription's active consumer."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from broker.messages.subscriptions.key_shared.murmur import murmur

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proto.names import TopicName

POINTS_PER_NAME = 100
_HASHES = 1 << 31


class HasNameAndPriority(Protocol):
    """The part of a consumer used by the choice."""

    @property
    def name(self) -> str:
        """The consumer's name, not necessarily unique."""

    @property
    def priority_level(self) -> int:
        """0 is the highest; consumers of lower levels only stand by."""


def active_of(consumers: Sequence[HasNameAndPriority], topic: TopicName) -> int:
    """Return the index of the active consumer in a non-empty list sorted by ``rank``.

    Partition i of a topic goes to number i of the highest level; any other topic to the first point
    on a ring of points, 100 for each name. With partitions the choice takes constant time: a
    connection may leave with a thousand consumers, each causing a new choice.

    Source: upstream AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer.
    """
    top = bisect_right(consumers, consumers[0].priority_level, key=lambda one: one.priority_level)
    if topic.partition_index >= 0:
        return topic.partition_index % top
    target = murmur(str(topic).encode())
    # At equal distances the last consumer, as with duplicate names.
    return min(reversed(range(top)), key=lambda index: _distance(consumers[index].name, target))


def rank(consumer: HasNameAndPriority) -> tuple[int, str]:
    """Return the sort key of a consumer: level, then name."""
    return consumer.priority_level, consumer.name


@lru_cache(maxsize=10_000)
def _distance(name: str, target: int) -> int:
    """Return the distance from the target to a name's next point on the ring."""
    return min(
        (murmur(f"{name}{number}".encode()) - target) % _HASHES for number in range(POINTS_PER_NAME)
    )
