"""The active consumer of a Failover subscription."""

from typing import NamedTuple

import pytest

from broker.messages.subscriptions.dispatchers.single_active import active_of, rank
from broker.messages.subscriptions.key_shared.ranges import murmur
from proto.names import TopicName


class Consumer(NamedTuple):
    name: str
    priority_level: int = 0


def ordered(*consumers: Consumer) -> list[Consumer]:
    return sorted(consumers, key=rank)


def predicted(names: list[str], topic: str) -> str:
    """Return the name chosen for a topic by a fully expanded ring of points."""
    ring = sorted((murmur(f"{name}{j}".encode()), name) for name in names for j in range(100))
    target = murmur(topic.encode())
    return next((name for point, name in ring if point >= target), ring[0][1])


@pytest.mark.parametrize(("partition", "active"), [(0, "a"), (1, "b"), (2, "c"), (3, "a")])
def test_partitions_rotate_among_the_consumers_sorted_by_name(partition: int, active: str) -> None:
    consumers = ordered(Consumer("c"), Consumer("low", 1), Consumer("a"), Consumer("b"))
    index = active_of(consumers, TopicName.parse(f"t-partition-{partition}"))
    assert consumers[index].name == active


@pytest.mark.parametrize("number", range(30))
def test_an_unpartitioned_topic_selects_the_next_point_of_the_hash_ring(number: int) -> None:
    topic = TopicName.parse(f"t{number}")
    consumers = ordered(Consumer("c"), Consumer("a"), Consumer("b"), Consumer("low", 1))
    index = active_of(consumers, topic)
    assert consumers[index].name == predicted(["a", "b", "c"], str(topic))


def test_a_lower_priority_level_is_a_higher_priority() -> None:
    consumers = ordered(Consumer("a", 3), Consumer("b", -1), Consumer("c", 0))
    assert consumers[active_of(consumers, TopicName.parse("t"))].name == "b"


def test_choosing_among_a_thousand_consumers_does_not_visit_each() -> None:
    looks = 0

    class Watched(Consumer):
        def __getattribute__(self, name: str) -> object:
            nonlocal looks
            looks += 1
            return super().__getattribute__(name)

    consumers = [Watched(f"{number:04}", number // 900) for number in range(1000)]
    index = active_of(consumers, TopicName.parse("t-partition-901"))
    assert (index, looks < 50) == (1, True)
