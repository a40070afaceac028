"""Positions for redelivery; tests/properties compares with a plain mapping."""

from time import process_time

import pytest

from broker.messages.position import Position
from broker.messages.subscriptions.replay import ASKED, ReplayQueue

ONE_TURN = 0.02


def test_positions_stay_queued_until_they_are_removed() -> None:
    queue = ReplayQueue()
    queue.add_all([Position(4, 1), Position(3, 9), Position(3, 2)])
    first = queue.first(2)
    queue.remove(Position(3, 2))
    assert first == [Position(3, 2), Position(3, 9)]
    assert queue.first(9) == [Position(3, 9), Position(4, 1)]


def test_blocked_hashes_are_skipped_and_checked_once() -> None:
    queue, asked = ReplayQueue(), []
    for entry in range(1_000):
        queue.add(Position(3, entry), 5)
    queue.add(Position(3, 1_000), 6)
    queue.add(Position(3, 1_001))

    def accepts(sticky_hash: int) -> bool:
        asked.append(sticky_hash)
        return sticky_hash == 6

    first = queue.search(9, accepts)
    assert first == [Position(3, 1_000), Position(3, 1_001)]
    assert asked == [5, 6]
    assert queue.contains_hash(5)
    assert not queue.contains_hash(7)


def of_hashes(*hashes: int) -> ReplayQueue:
    """Return a queue with a position of ledger 3 for each hash."""
    queue = ReplayQueue()
    for entry, sticky_hash in enumerate(hashes):
        queue.add(Position(3, entry), sticky_hash)
    return queue


def test_a_search_continues_behind_refused_positions_after_a_change() -> None:
    queue = of_hashes(*[5] * 60, 6)
    for _ in range(4):
        queue.changed()
        assert queue.search(1, {6}.__contains__, look_at=20) == []
        assert queue.searching
    assert queue.search(1, {6}.__contains__, look_at=20) == [Position(3, 60)]


def test_refused_or_passed_positions_are_found_only_by_the_next_search() -> None:
    queue = of_hashes(*[5] * 32, 5, 6)
    assert queue.search(9, set().__contains__, look_at=30) == []
    queue.add(Position(2, 9), 6)
    queue.changed()
    assert queue.search(9, {5, 6}.__contains__, look_at=30) == []
    assert queue.searching
    assert queue.search(2, {5, 6}.__contains__, look_at=30) == [Position(2, 9), Position(3, 0)]


def test_a_failed_search_is_not_repeated_until_a_change() -> None:
    queue = of_hashes(5)
    for _ in range(2):
        assert queue.search(1, set().__contains__) == []
    assert queue.take_looked_at() == 1 + ASKED
    assert not queue.searching
    queue.changed()
    assert queue.search(1, {5}.__contains__) == [Position(3, 0)]


@pytest.mark.usefixtures("seldom_collected")
def test_fifty_thousand_positions_leave_by_hundreds_within_a_turn_each() -> None:
    queue, turns = ReplayQueue(), []
    for entry in range(50_000):
        queue.add(Position(3, entry), 1 + entry % 500)
    while queue:
        start = process_time()
        for position in queue.search(100, lambda _: True):
            queue.remove(position)
        turns.append(process_time() - start)
    assert len(turns) == 500
    assert max(turns) < ONE_TURN
    assert not queue.contains_hash(1)


def test_examined_positions_are_counted_until_the_count_is_taken() -> None:
    queue = ReplayQueue()
    for entry in range(10):
        queue.add(Position(1, entry), entry % 2 + 1)
    found = queue.search(2, lambda sticky_hash: sticky_hash == 2)
    assert found == [Position(1, 1), Position(1, 3)]
    assert (queue.take_looked_at(), queue.take_looked_at()) == (4 + 2 * ASKED, 0)
