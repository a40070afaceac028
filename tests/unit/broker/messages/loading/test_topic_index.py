"""Loaded topics are found by namespace and by partitioned topic."""

from types import SimpleNamespace
from typing import cast

from broker.messages.loading.topic_index import TopicIndex
from broker.messages.topic import Topic
from proto.names import NamespaceName, TopicName


def topic(text: str) -> Topic:
    name = TopicName.parse(text)
    return cast("Topic", SimpleNamespace(name=name, full_name=str(name)))


def test_topics_are_found_by_scope_until_they_are_discarded() -> None:
    topics = [topic(name) for name in ("p", "p-partition-0", "p-partition-1", "a/b/p")]
    direct = topic("non-persistent://public/default/p")
    index, scopes = TopicIndex(), (NamespaceName("public", "default"), TopicName.parse("p"), None)
    for one in (*topics, direct):
        index.add(one)
    assert [index.within(scope) for scope in scopes] == [
        [*topics[:3], direct],
        topics[:3],
        [*topics, direct],
    ]
    assert all(index.get(one.full_name) is one for one in index)
    assert not index.discard(topic("p"))  # A different topic of the same name.
    assert all(index.discard(one) for one in (*topics, direct))
    assert len(index) == 0
    assert not any(index.within(scope) for scope in scopes)
    assert not index.discard(direct)
