"""The holes behind a mark-delete position; tests/properties compares with a plain set."""

from time import process_time

import pytest

from broker.messages.position import Position
from broker.messages.subscriptions.acknowledged import AcknowledgedEntries

A_FEW_MS = 0.02


def test_a_hole_counts_once_and_is_passed_over() -> None:
    acknowledged = AcknowledgedEntries()
    first = acknowledged.add(Position(3, 5))
    again = acknowledged.add(Position(3, 5))
    acknowledged.add_range(3, 6, 20)
    assert (first, again, acknowledged.count) == (True, False, 16)
    assert acknowledged.next_gap(3, 4) == 4
    assert acknowledged.next_gap(3, 5) == 21
    assert acknowledged.next_gap(4, 5) == 5
    assert acknowledged.ranges() == [(3, 5, 20)]


def test_the_stored_bitmap_begins_with_entry_0_in_the_lowest_bit() -> None:
    acknowledged = AcknowledgedEntries()
    acknowledged.add(Position(3, 0))
    acknowledged.add(Position(3, 9))
    acknowledged.add(Position(8, 17))
    assert acknowledged.as_bitmaps() == {3: b"\x01\x02", 8: b"\x00\x00\x02"}


@pytest.mark.usefixtures("seldom_collected")
def test_a_million_holes_hold_nobody_up() -> None:
    acknowledged = AcknowledgedEntries()
    for entry in range(1, 2_000_001, 2):
        acknowledged.add(Position(3, entry))
    calls = {
        "add": lambda: acknowledged.add(Position(3, 1_000_000)),
        "next_gap": lambda: acknowledged.next_gap(3, 1),
        "some ranges": lambda: acknowledged.ranges(100),
        "as_bitmaps": acknowledged.as_bitmaps,
        "of_bitmaps": lambda: AcknowledgedEntries.of_bitmaps({3: bytes([0xAA]) * 250_000}),
        "discard_through": lambda: acknowledged.discard_through(Position(3, 1_500_000)),
    }
    for name, call in calls.items():
        start = process_time()
        call()
        assert process_time() - start < A_FEW_MS, name
    assert acknowledged.count == 250_000
