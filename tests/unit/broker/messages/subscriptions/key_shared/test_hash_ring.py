"""AUTO_SPLIT, as recorded of a real broker; tests/properties has random comings and goings."""

from dataclasses import dataclass
from time import process_time

import pytest

from broker.messages.subscriptions.key_shared.hash_ring import ConsistentHashRing

ONE_TURN = 0.02


@dataclass(eq=False, frozen=True)
class Consumer:
    name: str


def test_two_consumers_have_the_recorded_ranges_of_a_real_broker() -> None:
    ring: ConsistentHashRing[Consumer] = ConsistentHashRing()
    a, b = Consumer("a"), Consumer("b")
    ring.add(a)
    ring.add(b)
    assert ring.ranges(a)[:3] == [(79, 403), (638, 1535), (2849, 3615)]
    assert ring.ranges(b)[:3] == [(1, 78), (404, 637), (1536, 2848)]


def test_a_key_hashes_as_on_a_real_broker() -> None:
    assert ConsistentHashRing.hash_of(b"k2") == 55295


def test_a_single_consumer_has_all_hashes_from_no_previous_owner() -> None:
    ring: ConsistentHashRing[Consumer] = ConsistentHashRing()
    consumer = Consumer("a")
    moved = ring.add(consumer)
    assert ring.ranges(consumer) == [(1, 65_535)]
    assert {change.source for change in moved} == {None}
    ring.remove(consumer)
    assert ring.select(1) is None


def test_a_second_consumer_of_the_same_name_has_its_own_points() -> None:
    ring: ConsistentHashRing[Consumer] = ConsistentHashRing()
    first, second, third = Consumer("x"), Consumer("x"), Consumer("x")
    ring.add(first)
    alone = ring.ranges(first)
    ring.add(second)
    both = ring.ranges(first)
    ring.remove(first)
    ring.add(third)
    # A third consumer takes the freed number, and so the same points.
    assert alone != both
    assert ring.ranges(third) == both
    assert ring.ranges(first) == []


@pytest.mark.usefixtures("seldom_collected")
def test_a_join_and_a_leave_among_a_thousand_take_less_than_a_turn() -> None:
    ring: ConsistentHashRing[Consumer] = ConsistentHashRing()
    consumers = [Consumer(f"consumer-{number}") for number in range(1_000)]
    turns = []
    for change in (ring.add, ring.remove):
        for consumer in consumers:
            start = process_time()
            change(consumer)
            turns.append(process_time() - start)
    assert max(turns) < ONE_TURN


def test_removing_an_unknown_consumer_changes_nothing() -> None:
    ring: ConsistentHashRing[Consumer] = ConsistentHashRing()
    stays = Consumer("a")
    ring.add(stays)
    ring.remove(Consumer("a"))
    assert ring.select(1) is stays


def test_the_last_of_many_consumers_has_all_hashes() -> None:
    ring: ConsistentHashRing[Consumer] = ConsistentHashRing()
    stays = Consumer("stays")
    gone = [Consumer(f"consumer-{number}") for number in range(50)]
    for consumer in (*gone[:25], stays, *gone[25:]):
        ring.add(consumer)
    for consumer in gone:
        ring.remove(consumer)
    assert ring.ranges(stays) == [(1, 65_535)]
