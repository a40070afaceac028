"""The loaded topics by name, by namespace and by partitioned topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto.names import TopicName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.messages.topic import Topic
    from proto.names import NamespaceName


class TopicIndex:
    """Topics, of which those of a namespace or with partitions are found without looking at others.

    Bound: whoever adds them has one.
    """

    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        # Of a namespace by the name of the topic, of which partitions have the one of the whole.
        self._inside: dict[NamespaceName, dict[str, list[Topic]]] = {}

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
        """Add a topic, whose name no other has."""
        self._topics[topic.full_name] = topic
        whole = str(topic.name.partitioned_name)
        self._inside.setdefault(topic.name.namespace, {}).setdefault(whole, []).append(topic)

    def discard(self, topic: Topic) -> bool:
        """Remove a topic; false if it is not there."""
        if self._topics.get(topic.full_name) is not topic:
            return False
        del self._topics[topic.full_name]
        whole, inside = str(topic.name.partitioned_name), self._inside[topic.name.namespace]
        inside[whole].remove(topic)
        if not inside[whole]:
            del inside[whole]
        if not inside:
            del self._inside[topic.name.namespace]
        return True

    def within(self, scope: NamespaceName | TopicName | None) -> list[Topic]:
        """Return the topics of a namespace; a topic with its partitions; all for None."""
        if scope is None:
            return list(self)
        if isinstance(scope, TopicName):
            return list(self._inside.get(scope.namespace, {}).get(str(scope), ()))
        return [topic for some in self._inside.get(scope, {}).values() for topic in some]
