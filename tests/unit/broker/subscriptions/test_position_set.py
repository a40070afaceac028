"""A set of positions; tests/properties has it beside a plain set."""

from __future__ import annotations

from broker.messages.position import Position
from broker.subscriptions.position_set import PositionSet


def test_positions_come_in_the_order_of_storage() -> None:
    # Given
    positions = PositionSet()
    # When
    for one in ((9, 1), (3, 70), (3, 2), (3, 3)):
        positions.add(Position(*one))
    # Then
    assert [str(one) for one in positions] == ["3:2", "3:3", "3:70", "9:1"]


def test_an_entry_late_in_its_ledger_costs_no_memory_for_those_before() -> None:
    # Given
    positions = PositionSet()
    # When
    positions.add(Position(3, 8_000_000_000))
    # Then
    assert positions.first_clear(3, 8_000_000_000) == 8_000_000_001
    assert list(positions) == [Position(3, 8_000_000_000)]


def test_what_is_no_position_is_not_in() -> None:
    # Given
    positions = PositionSet()
    # When
    positions.add(Position(3, 7))
    # Then
    assert "3:7" not in positions
    assert Position(3, -1) not in positions
