"""Positions for redelivery; tests/properties compares with a plain mapping."""

from time import process_time

import pytest

from broker.messages.position import Position
from broker.messages.subscriptions.replay import ReplayQueue

ONE_TURN = 0.02


def test_positions_stay_queued_until_they_are_removed() -> None:
    queue = ReplayQueue()
    queue.add_all([Position(4, 1), Position(3, 9), Position(3, 2)])
    first = queue.first(2)
    queue.remove(Position(3, 2))
    assert first == [Position(3, 2), Position(3, 9)]
    assert queue.first(9) == [Position(3, 9), Position(4, 1)]


def test_blocked_hashes_are_passed_over_and_asked_about_once() -> None:
    queue, asked = ReplayQueue(), []
    for entry in range(1_000):
        queue.add(Position(3, entry), 5)
    queue.add(Position(3, 1_000), 6)
    queue.add(Position(3, 1_001))

    def accepts(sticky_hash: int) -> bool:
        asked.append(sticky_hash)
        return sticky_hash == 6

    first = queue.first(9, accepts)
    assert first == [Position(3, 1_000), Position(3, 1_001)]
    assert asked == [5, 6]
    assert queue.contains_hash(5)
    assert not queue.contains_hash(7)


def test_the_look_behind_blocked_ones_has_an_end() -> None:
    queue = ReplayQueue()
    queue.add_all(Position(3, entry) for entry in range(10))
    for entry in range(10):
        queue.add(Position(3, entry), 5)
    queue.add(Position(3, 10), 6)
    assert queue.first(1, lambda sticky_hash: sticky_hash == 6, search=10) == []
    assert queue.first(1, lambda sticky_hash: sticky_hash == 6, search=11) == [Position(3, 10)]


@pytest.mark.usefixtures("seldom_collected")
def test_fifty_thousand_go_out_a_hundred_at_a_time_within_a_turn_each() -> None:
    queue, turns = ReplayQueue(), []
    for entry in range(50_000):
        queue.add(Position(3, entry), 1 + entry % 500)
    while queue:
        start = process_time()
        for position in queue.first(100, lambda _: True):
            queue.remove(position)
        turns.append(process_time() - start)
    assert len(turns) == 500
    assert max(turns) < ONE_TURN
    assert not queue.contains_hash(1)


def test_positions_that_were_looked_at_are_counted_until_asked_for() -> None:
    queue = ReplayQueue()
    for entry in range(10):
        queue.add(Position(1, entry), entry % 2 + 1)
    found = queue.first(2, lambda sticky_hash: sticky_hash == 2)
    assert found == [Position(1, 1), Position(1, 3)]
    assert (queue.take_looked_at(), queue.take_looked_at()) == (4, 0)
