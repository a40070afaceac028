"""Capacity for messages: bounds of a topic, a namespace and the process."""

import pytest

from broker.messages.errors import MessageStoreFullError
from broker.messages.stores.room import ENTRY_COST_BYTES, StoreBounds, StoreRoom

ONE = 100 + ENTRY_COST_BYTES


@pytest.mark.parametrize(
    ("bounds", "other", "whose"),
    [
        (StoreBounds(topic=2 * ONE), None, "topic persistent://t/n/a"),
        (StoreBounds(namespace=2 * ONE), "persistent://t/n/b", "namespace t/n"),
        (StoreBounds(process=2 * ONE), "persistent://t/m/b", "all topics"),
    ],
)
def test_an_entry_above_a_bound_is_refused(bounds, other, whose) -> None:
    room = StoreRoom(bounds)
    topic = room.of_topic("persistent://t/n/a")
    (topic if other is None else room.of_topic(other)).take(100)
    topic.take(100)
    with pytest.raises(MessageStoreFullError, match=f"the messages of {whose} take"):
        topic.take(1)
    topic.refused()
    assert room.refused == 1
    topic.charge(-1, -100)
    topic.take(100)


def test_a_namespace_is_forgotten_with_its_last_topic() -> None:
    room = StoreRoom(StoreBounds())
    first, second = room.of_topic("persistent://t/n/a"), room.of_topic("persistent://t/n/b")
    first.take(5)
    first.leave()
    left = dict(room.namespaces)
    second.leave()
    assert list(left) == ["t/n"]
    assert not room.namespaces
    assert room.taken.charged_bytes == 0


def test_entries_of_a_deleted_topic_release_their_room_only_once() -> None:
    room = StoreRoom(StoreBounds())
    topic, other = room.of_topic("persistent://t/n/a"), room.of_topic("persistent://t/n/b")
    other.take(7)
    topic.take(5)
    topic.leave()
    topic.charge(-1, -5)
    assert room.taken.data_bytes == room.namespaces["t/n"].data_bytes == 7
