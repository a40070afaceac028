"""An index of the loaded topics, and the summed counters of unloaded topics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker.messages.statistics import LATENCY_BUCKETS_MS, Histogram
from proto.names import TopicName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.messages.topic import Topic
    from proto.names import NamespaceName


class TopicIndex:
    """An index that finds topics by their name, namespace or partitioned topic.

    Bound: the caller limits the number of topics.
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
        """Return the topic with the given full name, or None."""
        return self._topics.get(name)

    def add(self, topic: Topic) -> None:
        """Add a topic whose name is not in the index yet."""
        self._topics[topic.full_name] = topic
        self._inside.setdefault(topic.name.namespace, {})[topic.full_name] = topic
        if topic.name.partition_index >= 0:
            self._partitions.setdefault(str(topic.name.partitioned_name), []).append(topic)

    def discard(self, topic: Topic) -> bool:
        """Remove a topic; return False if it is not in the index."""
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
        """Return a namespace's topics, a topic with its partitions, or (for None) all topics."""
        if scope is None:
            return list(self)
        if isinstance(scope, TopicName):
            own = self._topics.get(str(scope))
            return [*([own] if own else ()), *self._partitions.get(str(scope), ())]
        return list(self._inside.get(scope, {}).values())


IN_MESSAGES, IN_BYTES = "in_messages_total", "in_bytes_total"
OUT_MESSAGES, OUT_BYTES = "out_messages_total", "out_bytes_total"
SYSTEM = "of_the_broker_"
"""Prefix of the counters' names for system topics and internal subscriptions."""


def is_system(topic: Topic) -> bool:
    """Return True for a system topic, whose local name begins with two underscores."""
    return topic.name.local_name.startswith("__")


def totals_of(topic: Topic) -> Counter[str]:
    """Return a topic's totals since it was loaded, for example of messages, by counter name."""
    published, sent = topic.statistics, topic.subscriptions.sent()
    found = Counter({f"evictions_{quota}": count for quota, count in topic.evictions.items()})
    found[IN_MESSAGES], found[IN_BYTES] = published.messages, published.size_bytes
    found[SYSTEM + IN_BYTES] = published.size_bytes if is_system(topic) else 0
    found[OUT_MESSAGES] = sum(one.messages for one in sent.values())
    found[OUT_BYTES] = sum(one.size_bytes for one in sent.values())
    found[SYSTEM + OUT_BYTES] = sent[True].size_bytes
    return found


class PastTopics:
    """The totals of messages and bytes over all topics that were unloaded.

    Bound: a few numbers for each namespace with past or present topics.

    Attributes:
        latency: Latencies of storing messages, in ms.
        totals: Messages and bytes of all unloaded topics, by counter name.
        by_namespace: Totals of each namespace; values are replaced, never changed.
    """

    def __init__(self) -> None:
        self.latency = Histogram(LATENCY_BUCKETS_MS.values())
        self.totals: Counter[str] = Counter()
        self.by_namespace: dict[str, Counter[str]] = {}

    def add(self, topic: Topic) -> None:
        """Add the counters of a closed topic to the totals."""
        self.latency.add_all(topic.latency)
        totals, namespace = totals_of(topic), str(topic.name.namespace)
        self.totals += totals
        self.by_namespace[namespace] = self.by_namespace.get(namespace, Counter()) + totals

    def forget(self, namespaces: Iterable[NamespaceName]) -> None:
        """Forget the totals of deleted namespaces; the totals of the whole broker stay."""
        for namespace in namespaces:
            self.by_namespace.pop(str(namespace), None)
