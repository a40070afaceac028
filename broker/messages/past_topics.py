"""Counters of unloaded topics, which keep sums over topics from falling."""

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
"""Prefix of the counters of system topics and internal subscriptions."""


def is_system(topic: Topic) -> bool:
    """Return True for the broker's system topics."""
    return topic.name.local_name.startswith("__")


def totals_of(topic: Topic) -> Counter[str]:
    """Return a topic's messages and bytes since loading, by counter name."""
    published, sent = topic.statistics, topic.subscriptions.sent()
    found = Counter({f"evictions_{quota}": count for quota, count in topic.evictions.items()})
    found[IN_MESSAGES], found[IN_BYTES] = published.messages, published.size_bytes
    found[SYSTEM + IN_BYTES] = published.size_bytes if is_system(topic) else 0
    found[OUT_MESSAGES] = sum(one.messages for one in sent.values())
    found[OUT_BYTES] = sum(one.size_bytes for one in sent.values())
    found[SYSTEM + OUT_BYTES] = sent[True].size_bytes
    return found


class PastTopics:
    """Sums over unloaded topics.

    Bound: a few numbers for each namespace with past or present topics.

    Attributes:
        latency: Latencies of storing messages.
        totals: Messages and bytes of all unloaded topics, by counter name.
        by_namespace: Totals of each namespace; values are replaced, never changed.
    """

    def __init__(self) -> None:
        self.latency = PublishLatency()
        self.totals: Counter[str] = Counter()
        self.by_namespace: dict[str, Counter[str]] = {}

    def add(self, topic: Topic) -> None:
        """Count a closed topic."""
        self.latency.add(topic.latency)
        totals, namespace = totals_of(topic), str(topic.name.namespace)
        self.totals += totals
        self.by_namespace[namespace] = self.by_namespace.get(namespace, Counter()) + totals

    def forget(self, namespaces: Iterable[NamespaceName]) -> None:
        """Forget deleted namespaces; the broker's totals stay."""
        for namespace in namespaces:
            self.by_namespace.pop(str(namespace), None)
