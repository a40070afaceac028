"""The choice of a Failover subscription's active consumer."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from broker.subscriptions.key_shared.murmur import murmur

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proto.names import TopicName

POINTS_PER_NAME = 100
_HASHES = 1 << 31


class HasNameAndPriority(Protocol):
    """A consumer, as far as the choice needs to know it."""

    @property
    def name(self) -> str:
        """Its name, which others may have too."""

    @property
    def priority_level(self) -> int:
        """0 is the highest; consumers of lower ones only stand by."""


def active_of(consumers: Sequence[HasNameAndPriority], topic: TopicName) -> int:
    """Return the index of the active one of some consumers, at least one, sorted by ``rank``.

    Partition i of a topic goes to number i of the highest level; another topic to the first point
    on a ring of points, 100 for each name. With partitions that is found without a look at each:
    a connection may leave with a thousand, and each time another one is active.

    Source: upstream AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer.
    """
    top = bisect_right(consumers, consumers[0].priority_level, key=lambda one: one.priority_level)
    if topic.partition_index >= 0:
        return topic.partition_index % top
    target = murmur(str(topic).encode())
    # The last one of those at the same distance, as of several that have the same name.
    return min(reversed(range(top)), key=lambda index: _distance(consumers[index].name, target))


def rank(consumer: HasNameAndPriority) -> tuple[int, str]:
    """Return the place of a consumer among others: its level, then its name."""
    return consumer.priority_level, consumer.name


@lru_cache(maxsize=10_000)
def _distance(name: str, target: int) -> int:
    """Return how far behind the target a name's next point on the ring is."""
    return min(
        (murmur(f"{name}{number}".encode()) - target) % _HASHES for number in range(POINTS_PER_NAME)
    )
