"""Delayed messages; the delivery times were recorded of a real broker."""

import pytest

from broker.messages.position import Position
from broker.messages.subscriptions.delayed import (
    FIXED_DELAY_LOOK_AHEAD,
    MOST_AT_ONCE,
    DelayedMessages,
)


def at(entry: int) -> Position:
    return Position(3, entry)


@pytest.mark.parametrize(
    ("strict", "ahead", "kept"),
    [
        (False, 700, False),
        (False, 1_000, False),
        (False, 1_001, True),
        (True, -5, False),
        (True, 0, False),
        (True, 1, True),
    ],
)
def test_a_message_due_within_a_tick_is_sent_immediately_unless_strict(strict, ahead, kept) -> None:
    delayed = DelayedMessages(strict=strict)
    answer = delayed.add(at(0), 50_105 + ahead, 50_105)
    assert (answer, len(delayed)) == (kept, int(kept))


def test_the_timer_fires_once_a_tick_and_takes_messages_due_before_the_next_turn() -> None:
    # The wheel turns 105 ms after the messages were sent, and then each second.
    delayed, sent = DelayedMessages(), 49_895
    for entry, ahead in enumerate((1_400, 1_100, 2_110, 3_300)):
        delayed.add(at(entry), sent + ahead, sent)
    waited, taken = [], []
    now = sent
    while (wait := delayed.next_due(now)) is not None:
        now += wait
        waited.append(now - sent)
        taken.append([one.entry_id for one in delayed.take_due(now)])
    assert waited == [1_105, 3_105]
    assert taken == [[0, 1], [2, 3]]


def test_strict_delayed_messages_are_never_early() -> None:
    delayed = DelayedMessages(strict=True)
    delayed.add(at(0), 50_500, 50_000)
    wait = delayed.next_due(50_000)
    assert wait == 1_000
    assert delayed.take_due(50_499) == []
    assert delayed.take_due(50_500) == [at(0)]


def test_messages_due_together_are_taken_in_the_order_of_storage() -> None:
    delayed = DelayedMessages()
    for entry, due in ((2, 5_001), (0, 5_003), (1, 5_002)):
        delayed.add(at(entry), due, 0)
    assert delayed.take_due(6_000) == [at(0), at(1), at(2)]
    assert delayed.next_due(6_000) is None


def test_more_due_messages_than_a_turn_takes_leave_the_timer_due_immediately() -> None:
    delayed = DelayedMessages()
    for entry in range(5):
        delayed.add(at(entry), 5_500, 0)
    taken = delayed.take_due(5_000, most=3)
    assert len(taken) == 3
    assert delayed.next_due(5_000) == 0
    assert len(delayed.take_due(5_000, most=3)) == 2


def test_discarded_messages_leave_the_queue_a_bounded_number_at_a_time() -> None:
    # All messages but the last are forgotten
    delayed, count = DelayedMessages(), 3 * MOST_AT_ONCE
    for entry in range(count):
        delayed.add(at(entry), 5_500, 0)
    delayed.discard_through(at(count - 2))
    waits = [delayed.next_due(0)]
    left = [len(delayed._queue)]
    taken = []
    while not taken:
        taken = delayed.take_due(5_500)
        waits.append(delayed.next_due(5_500))
        left.append(len(delayed._queue))
    # The timer fires immediately for messages possibly already forgotten
    assert taken == [at(count - 1)]
    assert waits == [6_000, 0, None]
    assert left == [count - MOST_AT_ONCE, count - 3 * MOST_AT_ONCE + 1, 0]


def test_a_queue_of_delayed_messages_is_freed_in_steps() -> None:
    delayed = DelayedMessages()
    for entry in range(50_000):
        delayed.add(at(entry), 5_500, 0)
    left = [len(delayed._queue) for _ in delayed.emptied()]
    assert (left, len(delayed)) == ([30_000, 10_000, 0], 0)


def test_reading_pauses_when_too_many_messages_have_the_same_fixed_delay() -> None:
    delayed = DelayedMessages()
    for entry in range(FIXED_DELAY_LOOK_AHEAD - 1):
        delayed.add(at(entry), 10_000 + entry, entry)
    before = delayed.pauses_reading(100)
    delayed.add(at(FIXED_DELAY_LOOK_AHEAD), 90_000, 100)
    assert (before, delayed.pauses_reading(100)) == (False, True)
    assert not delayed.pauses_reading(9_500)
    # A message has another delay, so later messages may be due earlier.
    delayed.add(at(FIXED_DELAY_LOOK_AHEAD + 1), 20_000, 100)
    assert not delayed.pauses_reading(100)


def test_an_immediate_message_among_delayed_messages_keeps_reading_from_pausing() -> None:
    delayed = DelayedMessages(1_000)
    for entry in range(FIXED_DELAY_LOOK_AHEAD):
        delayed.add(at(entry), 90_000, 100)
    assert delayed.pauses_reading(100)
    assert not delayed.add(at(FIXED_DELAY_LOOK_AHEAD), 0, 100)
    assert not delayed.pauses_reading(100)


def test_discarded_delayed_messages_are_not_taken() -> None:
    delayed = DelayedMessages()
    for entry in range(4):
        delayed.add(at(entry), 5_000, 0)
    delayed.discard_through(at(1))
    delayed.discard(at(3))
    assert len(delayed) == 1
    assert delayed.take_due(5_000) == [at(2)]
    assert delayed.size_bytes == 0
