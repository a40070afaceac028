"""Partitioned topics that get more partitions now, and the subscriptions that these begin with."""

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
    """The subscriptions of new partitions: each has them before its first client comes.

    So a consumer that discovers a partition late misses nothing that was sent to it before.
    """

    def __init__(self) -> None:
        self._growths: list[_Growth] = []

    @contextmanager
    def growing(
        self, topic: TopicName, first: int, given: Mapping[str, Mapping[str, str]]
    ) -> Iterator[None]:
        """Give subscriptions to the partitions that are loaded first in a block of code.

        Args:
            topic: The partitioned topic.
            first: The index of the first new partition.
            given: The properties of each subscription, by its name.
        """
        growth = _Growth(topic, first, given)
        self._growths.append(growth)
        try:
            yield
        finally:
            self._growths.remove(growth)

    def give(self, topic: PersistentTopic) -> None:
        """Create the subscriptions that a topic lacks, if it is a new partition."""
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
