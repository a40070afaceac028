"""Counters of unloaded topics, without which sums over topics would fall."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker.messages.publishing.latency import PublishLatency

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.messages.topic import Topic
    from proto.names import NamespaceName

IN_MESSAGES, IN_BYTES = "in_messages_total", "in_bytes_total"
OUT_MESSAGES, OUT_BYTES = "out_messages_total", "out_bytes_total"
SYSTEM = "of_the_broker_"
"""Prefix of the counters of the broker's own topics and subscriptions."""


def is_system(topic: Topic) -> bool:
    """Tell whether a topic is one of the broker's own."""
    return topic.name.local_name.startswith("__")


def totals_of(topic: Topic) -> Counter[str]:
    """Return a topic's messages and bytes since it was loaded, by the name of each counter."""
    published, sent = topic.statistics, topic.subscriptions.sent()
    found = Counter({f"evictions_{quota}": count for quota, count in topic.evictions.items()})
    found[IN_MESSAGES], found[IN_BYTES] = published.messages, published.size_bytes
    found[SYSTEM + IN_BYTES] = published.size_bytes if is_system(topic) else 0
    found[OUT_MESSAGES] = sum(one.messages for one in sent.values())
    found[OUT_BYTES] = sum(one.size_bytes for one in sent.values())
    found[SYSTEM + OUT_BYTES] = sent[True].size_bytes
    return found


class PastTopics:
    """Sums over the topics that are loaded no more.

    Bound: a few numbers for each namespace that has, or had, topics here.

    Attributes:
        latency: How long messages took to be stored.
        totals: Messages and bytes of all unloaded topics, by the name of each counter.
        by_namespace: The same of each namespace; a value is replaced, not changed.
    """

    def __init__(self) -> None:
        self.latency = PublishLatency()
        self.totals: Counter[str] = Counter()
        self.by_namespace: dict[str, Counter[str]] = {}

    def add(self, topic: Topic) -> None:
        """Count a topic that was closed."""
        self.latency.add(topic.latency)
        totals, namespace = totals_of(topic), str(topic.name.namespace)
        self.totals += totals
        self.by_namespace[namespace] = self.by_namespace.get(namespace, Counter()) + totals

    def forget(self, namespaces: Iterable[NamespaceName]) -> None:
        """Forget namespaces that are gone; the broker's own sums stay."""
        for namespace in namespaces:
            self.by_namespace.pop(str(namespace), None)
