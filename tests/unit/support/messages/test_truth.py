"""Errors found by the proof of no loss, and permitted histories."""

import pytest

from broker.messages.position import Position
from tests.support.messages.model import SubType
from tests.support.messages.truth import KEYS, Truth


def test_what_has_a_receipt_is_missing_until_it_comes() -> None:
    # An entry with a receipt, and an entry without
    truth = published(1, 1)
    del truth.places[1]
    before = truth.awaited()
    truth.delivered(0, {0})
    assert (before, truth.awaited()) == ([(0, 0)], [])


def test_what_is_acknowledged_before_a_clean_stop_must_not_come_again() -> None:
    truth = published(2)
    acknowledge(truth, 0, {1})
    truth.saved()
    truth.begin_epoch()
    truth.delivered(0, {0})
    nothing, _ = list(truth.wrong.came_back), truth.delivered(0, {0, 1})
    assert nothing == []
    assert truth.wrong.came_back == ["Exclusive (0, 1), acknowledged for good"]


@pytest.mark.parametrize(("saved_until", "count"), [(5.0, 0), (15.0, 1)])
def test_a_kill_undoes_what_was_acknowledged_a_moment_ago(saved_until: float, count: int) -> None:
    truth = published(1)
    acknowledge(truth, 0, {0}, at=10.0)
    truth.killed(saved_until)
    truth.begin_epoch()
    truth.delivered(0, {0})
    assert len(truth.wrong.came_back) == count


def test_what_came_again_after_a_kill_is_owed_again() -> None:
    truth = published(1)
    acknowledge(truth, 0, {0})
    truth.killed(0.0)
    truth.begin_epoch()
    assert truth.awaited() == []
    truth.delivered(0, {0})
    truth.begin_epoch()
    assert truth.awaited() == [(0, 0)]


def test_an_acknowledgement_without_an_answer_says_nothing() -> None:
    truth = published(1)
    truth.unanswered(truth.asked([(0, 0)]))
    truth.begin_epoch()
    awaited, _ = truth.awaited(), truth.delivered(0, {0})
    # Delivery is optional, and a delivered entry was not acknowledged
    assert (awaited, truth.wrong.came_back) == ([], [])
    assert truth.is_owed(0)


def test_what_comes_again_behind_its_acknowledgement_may_have_been_under_way() -> None:
    truth = published(1)
    acknowledge(truth, 0, {0})
    truth.delivered(0, {0})
    assert truth.wrong.came_back == []


def test_what_is_given_back_must_come_again() -> None:
    truth = published(1)
    truth.delivered(0, {0})
    truth.gave_back([0])
    before, again = truth.awaited(), truth.delivered(0, {0})
    assert (before, again, truth.awaited()) == ([(0, 0)], 1, [])


def test_an_entry_whose_producer_left_before_its_receipt_is_not_owed() -> None:
    # Stored and delivered
    truth = published(1)
    truth.places.clear()
    truth.producer_left([0])
    truth.delivered(0, {0})
    # Acknowledged, with all permits released
    acknowledge(truth, 0, {0})
    truth.gave_back([0])
    assert truth.awaited() == []


def test_an_entry_that_overtakes_another_is_out_of_order() -> None:
    truth = published(1, 1, 1)
    # Only acknowledged entries may be missing
    acknowledge(truth, 0, {0})
    truth.delivered(2, {0})
    assert truth.wrong.out_of_order == ["Exclusive 2 before [1]"]


@pytest.mark.parametrize(("kind", "count"), [(SubType.Shared, 0), (SubType.Key_Shared, 1)])
def test_order_is_promised_by_type_and_key(kind: SubType.SubType.ValueType, count: int) -> None:
    truth = published(*[1] * (KEYS + 2), kind=kind)
    # The second of one key arrives first, and the first of another
    truth.delivered(KEYS, {0})
    truth.delivered(1, {0})
    assert len(truth.wrong.out_of_order) == count


def test_a_seek_brings_back_what_is_behind_it() -> None:
    truth = published(1, 1, 1)
    acknowledge(truth, 2, {0})
    truth.sought(1)
    truth.begin_epoch()
    assert truth.awaited() == [(1, 0), (2, 0)]
    truth.delivered(0, {0})
    assert truth.wrong.came_back == ["Exclusive (0, 0), acknowledged for good"]


def test_after_a_seek_without_an_answer_only_what_it_left_alone_is_certain() -> None:
    truth = published(1, 1, 1)
    acknowledge(truth, 2, {0})
    truth.saved()
    truth.seek_cut_short(1)
    truth.begin_epoch()
    # The first may be skipped, the last may be back
    assert truth.awaited() == [(1, 0)]
    truth.delivered(1, {0})
    truth.delivered(2, {0})
    assert truth.wrong.came_back == truth.wrong.out_of_order == []


def published(*sizes: int, kind: SubType.SubType.ValueType = SubType.Exclusive) -> Truth:
    """Return a topic whose entries have receipts."""
    truth = Truth(kind, "t", retained=True)
    for size in sizes:
        number = truth.publish(size)
        truth.receipted(number, Position(1, number))
    return truth


def acknowledge(truth: Truth, number: int, places: set[int], at: float = 0.0) -> None:
    """Acknowledge messages, with an answer."""
    truth.answered(truth.asked(truth.messages(number, places)), at)
