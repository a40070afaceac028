"""Partitioned topics during an increase of partitions, and the new partitions' subscriptions."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker.messages.topic import PersistentTopic
    from proto.names import TopicName


class _Growth(NamedTuple):
    topic: TopicName
    first: int
    given: Mapping[str, Mapping[str, str]]


class GrowingTopics:
    """The subscriptions of new partitions, created before the first client connects.

    A consumer that discovers a partition late therefore misses no messages.
    """

    def __init__(self) -> None:
        self._growths: list[_Growth] = []

    @contextmanager
    def growing(
        self, topic: TopicName, first: int, given: Mapping[str, Mapping[str, str]]
    ) -> Iterator[None]:
        """Create subscriptions on new partitions loaded during a block of code.

        Args:
            topic: The partitioned topic.
            first: The index of the first new partition.
            given: The properties of each subscription, by name.
        """
        growth = _Growth(topic, first, given)
        self._growths.append(growth)
        try:
            yield
        finally:
            self._growths.remove(growth)

    def give(self, topic: PersistentTopic) -> None:
        """Create the missing subscriptions of a new partition; do nothing for other topics."""
        name = topic.name
        for growth in self._growths:
            if name.partition_index < growth.first or name.partitioned_name != growth.topic:
                continue
            for subscription, properties in growth.given.items():
                if topic.subscriptions.get(subscription) is None:
                    # More than the topic may have are left out (recorded).
                    with suppress(RequestError):
                        topic.subscriptions.create(
                            subscription, earliest=True, properties=properties
                        )
