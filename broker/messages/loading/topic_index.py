"""The loaded topics by name, by namespace and by partitioned topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto.names import TopicName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.messages.topic import Topic
    from proto.names import NamespaceName


class TopicIndex:
    """An index of topics by name, namespace and partitioned topic.

    Bound: the caller's bound.
    """

    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        self._inside: dict[NamespaceName, dict[str, Topic]] = {}
        self._partitions: dict[str, list[Topic]] = {}

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[Topic]:
        return iter(tuple(self._topics.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._topics

    def get(self, name: str) -> Topic | None:
        """Return the topic of a full name."""
        return self._topics.get(name)

    def add(self, topic: Topic) -> None:
        """Add a topic with a new name."""
        self._topics[topic.full_name] = topic
        self._inside.setdefault(topic.name.namespace, {})[topic.full_name] = topic
        if topic.name.partition_index >= 0:
            self._partitions.setdefault(str(topic.name.partitioned_name), []).append(topic)

    def discard(self, topic: Topic) -> bool:
        """Remove a topic; return False if missing."""
        if self._topics.get(topic.full_name) is not topic:
            return False
        del self._topics[topic.full_name]
        inside = self._inside[topic.name.namespace]
        del inside[topic.full_name]
        if not inside:
            del self._inside[topic.name.namespace]
        if topic.name.partition_index >= 0:
            whole = str(topic.name.partitioned_name)
            self._partitions[whole].remove(topic)
            if not self._partitions[whole]:
                del self._partitions[whole]
        return True

    def within(self, scope: NamespaceName | TopicName | None) -> list[Topic]:
        """Return the topics of a namespace; a topic with its partitions; all for None."""
        if scope is None:
            return list(self)
        if isinstance(scope, TopicName):
            own = self._topics.get(str(scope))
            return [*([own] if own else ()), *self._partitions.get(str(scope), ())]
        return list(self._inside.get(scope, {}).values())
