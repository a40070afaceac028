"""Entries fall due in steps, and the bound on steps holds."""

import pytest

from client.consumers.acknowledging import handed_out
from client.consumers.acknowledging.handed_out import DueTimes
from client.messages.message_id import Place
from tests.support.clocks.manual_clock import ManualClock


class Times:
    """Due times, and the entries that fell due."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.due: list[list[Place]] = []
        self.times = DueTimes(self.clock, 0.1, self.due.append)


def test_entries_of_the_same_step_fall_due_together_and_never_early() -> None:
    one = Times()
    one.times.add((1, 1), 1.02)
    one.times.add((1, 2), 1.05)
    one.times.add((1, 3), 2.0)
    one.clock.advance(1.05)
    early = list(one.due)
    one.clock.advance(0.1)
    assert early == []
    assert one.due == [[(1, 1), (1, 2)]]
    assert list(one.times) == [(1, 3)]


def test_an_entry_due_earlier_moves_the_timer_forward() -> None:
    one = Times()
    one.times.add((1, 1), 5.0)
    one.times.add((1, 2), 1.0)
    one.clock.advance(1.2)
    assert one.due == [[(1, 2)]]
    one.clock.advance(5.0)
    assert one.due == [[(1, 2)], [(1, 1)]]


def test_removed_or_cleared_entries_never_fall_due() -> None:
    one = Times()
    one.times.add((1, 1), 1.0)
    one.times.add((1, 1), 9.0)  # Keeps the due time.
    assert one.times.remove((1, 1))
    assert not one.times.remove((1, 1))
    one.times.add((1, 2), 1.0)
    one.times.clear()
    one.clock.advance(20)
    assert one.due == []
    assert len(one.times) == 0


def test_the_oldest_entry_falls_due_immediately_at_the_limit(monkeypatch) -> None:
    monkeypatch.setattr(handed_out, "MOST_ENTRIES", 2)
    one = Times()
    for number in range(3):
        one.times.add((1, number), 5.0)
    assert one.due == [[(1, 0)]]
    assert list(one.times) == [(1, 1), (1, 2)]


def test_due_entries_are_reported_in_bounded_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given five entries due in two steps, and a later entry
    monkeypatch.setattr(handed_out, "MOST_AT_ONCE", 2)
    one = Times()
    for entry, seconds in enumerate((1.0, 1.0, 1.0, 1.15, 1.15, 9.0)):
        one.times.add((1, entry), seconds)
    # When both are due
    one.clock.advance(1.5)
    # Then each step has a separate turn
    assert one.due == [[(1, 0), (1, 1)], [(1, 2)], [(1, 3), (1, 4)]]
    assert list(one.times) == [(1, 5)]
