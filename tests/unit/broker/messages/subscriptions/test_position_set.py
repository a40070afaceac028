"""A set of positions; tests/properties compares with a plain set."""

import pytest

from broker.messages.position import Position
from broker.messages.subscriptions.position_set import PositionSet


def test_positions_come_in_the_order_of_storage() -> None:
    positions = PositionSet()
    for one in ((9, 1), (3, 70), (3, 2), (3, 3)):
        positions.add(Position(*one))
    assert [str(one) for one in positions] == ["3:2", "3:3", "3:70", "9:1"]


def test_an_entry_late_in_its_ledger_costs_no_memory_for_those_before() -> None:
    positions = PositionSet()
    positions.add(Position(3, 8_000_000_000))
    assert positions.first_clear(3, 8_000_000_000) == 8_000_000_001
    assert list(positions) == [Position(3, 8_000_000_000)]


def test_what_is_no_position_is_not_in() -> None:
    positions = PositionSet()
    positions.add(Position(3, 7))
    assert "3:7" not in positions
    assert Position(3, -1) not in positions


def test_the_search_for_the_first_goes_back_when_an_earlier_one_is_added() -> None:
    # The search has begun behind the first bytes once.
    positions = PositionSet()
    positions.add_range(3, 0, 40)
    for entry in range(33):
        positions.discard(Position(3, entry))
    assert next(iter(positions)) == Position(3, 33)
    positions.add(Position(3, 1))
    assert next(iter(positions)) == Position(3, 1)


def test_the_search_for_the_first_goes_on_where_it_was_when_bytes_are_dropped() -> None:
    positions = PositionSet()
    positions.add_range(3, 0, 60)
    for entry in range(33):
        positions.discard(Position(3, entry))
    assert next(iter(positions)) == Position(3, 33)
    positions.discard_through(Position(3, 25))
    assert next(iter(positions)) == Position(3, 33)


@pytest.mark.parametrize(
    "entries", [[], [0], [0, 1, 2], [1, 3, 5], [7, 8], [0, 2, 3, 15, 16, 17, 40]]
)
def test_rows_are_counted_as_they_are_listed(entries: list[int]) -> None:
    positions = PositionSet()
    for ledger_id in (3, 5):
        for entry in entries:
            positions.add(Position(ledger_id, 20 + entry))
    assert positions.count_ranges() == len(positions.ranges())
