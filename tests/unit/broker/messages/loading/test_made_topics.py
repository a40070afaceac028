"""Topics created without a client."""

import pytest

from broker.messages.loading import made_topics
from broker.messages.loading.made_topics import MadeTopics
from proto.names import NamespaceName, TopicName
from tests.support.clocks.manual_clock import ManualClock

A, B, C = (TopicName.parse(name) for name in "abc")
PARTITION = TopicName.parse("c-partition-3")


async def test_a_topic_is_noted_until_it_is_used_or_gone() -> None:
    clock = ManualClock(5.0)
    made = MadeTopics(clock)
    made.add(A)
    made.add(B)
    made.add_partitioned(C)
    assert list(made.unused()) == [(A, 5.0), (B, 5.0)]
    assert A in made
    assert PARTITION in made
    made.loaded(A)
    await made.deleted(B)
    await made.deleted(C)
    assert len(made) == 0
    assert PARTITION not in made


async def test_a_namespace_that_is_gone_is_forgotten() -> None:
    made, other = MadeTopics(ManualClock()), TopicName.parse("persistent://public/default2/a")
    made.add(A)
    made.add_partitioned(C)
    made.add(other)
    await made.forget([NamespaceName("public", "default")])
    assert [name for name, _ in made.unused()] == [other]
    assert len(made) == 1


def test_the_oldest_is_forgotten_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(made_topics, "MOST_TOPICS", 2)
    made = MadeTopics(ManualClock())
    for name in (A, B, C):
        made.add(name)
    assert [name for name, _ in made.unused()] == [B, C]
