"""A set of positions; tests/properties compares with a plain set."""

from __future__ import annotations

from collections.abc import Iterable
from time import process_time

import pytest

from broker.messages.position import Position
from broker.messages.subscriptions.position_set import PositionSet


def of_entries(entries: Iterable[int]) -> PositionSet:
    """Return the set of some entries of ledger 3."""
    positions = PositionSet()
    for entry in entries:
        positions.add(Position(3, entry))
    return positions


def test_positions_are_iterated_in_the_order_of_storage() -> None:
    positions = PositionSet()
    for one in ((9, 1), (3, 70), (3, 2), (3, 3)):
        positions.add(Position(*one))
    assert [str(one) for one in positions] == ["3:2", "3:3", "3:70", "9:1"]


def test_an_entry_late_in_its_ledger_uses_no_memory_for_earlier_entries() -> None:
    positions = of_entries([8_000_000_000])
    assert positions.first_clear(3, 8_000_000_000) == 8_000_000_001
    assert list(positions) == [Position(3, 8_000_000_000)]


def test_a_value_that_is_no_position_is_not_contained() -> None:
    positions = of_entries([7])
    assert "3:7" not in positions
    assert Position(3, -1) not in positions


def test_the_search_for_the_first_returns_to_an_earlier_added_position() -> None:
    # The search has begun behind the first bytes once.
    positions = of_entries(range(41))
    for entry in range(33):
        positions.discard(Position(3, entry))
    assert next(iter(positions)) == Position(3, 33)
    positions.add(Position(3, 1))
    assert next(iter(positions)) == Position(3, 1)


def test_the_search_for_the_first_continues_after_bytes_are_dropped() -> None:
    positions = of_entries(range(61))
    for entry in range(33):
        positions.discard(Position(3, entry))
    assert next(iter(positions)) == Position(3, 33)
    positions.discard_through(Position(3, 25))
    assert next(iter(positions)) == Position(3, 33)


@pytest.mark.parametrize(
    "entries", [[], [0], [0, 1, 2], [1, 3, 5], [7, 8], [0, 2, 3, 15, 16, 17, 40]]
)
def test_the_range_count_equals_the_number_of_listed_ranges(entries: list[int]) -> None:
    positions = PositionSet()
    for ledger_id in (3, 5):
        for entry in entries:
            positions.add(Position(ledger_id, 20 + entry))
    assert positions.count_ranges() == len(positions.ranges())


A_FEW_MS = 0.02


def test_an_added_position_counts_once_and_is_skipped_by_first_clear() -> None:
    acknowledged = PositionSet()
    first = acknowledged.add(Position(3, 5))
    again = acknowledged.add(Position(3, 5))
    for entry in range(6, 21):
        acknowledged.add(Position(3, entry))
    assert (first, again, acknowledged.count) == (True, False, 16)
    assert acknowledged.first_clear(3, 4) == 4
    assert acknowledged.first_clear(3, 5) == 21
    assert acknowledged.first_clear(4, 5) == 5
    assert acknowledged.ranges() == [(3, 5, 20)]


def test_the_stored_bitmap_begins_with_entry_0_in_the_lowest_bit() -> None:
    acknowledged = of_entries([0, 9])
    acknowledged.add(Position(8, 17))
    assert acknowledged.as_bitmaps() == {3: b"\x01\x02", 8: b"\x00\x00\x02"}


@pytest.mark.usefixtures("seldom_collected")
def test_operations_on_a_million_holes_take_a_few_milliseconds() -> None:
    acknowledged = of_entries(range(1, 2_000_001, 2))
    calls = {
        "add": lambda: acknowledged.add(Position(3, 1_000_000)),
        "first_clear": lambda: acknowledged.first_clear(3, 1),
        "some ranges": lambda: acknowledged.ranges(100),
        "as_bitmaps": acknowledged.as_bitmaps,
        "of_bitmaps": lambda: PositionSet.of_bitmaps({3: bytes([0xAA]) * 250_000}),
        "discard_through": lambda: acknowledged.discard_through(Position(3, 1_500_000)),
    }
    for name, call in calls.items():
        start = process_time()
        call()
        assert process_time() - start < A_FEW_MS, name
    assert acknowledged.count == 250_000
