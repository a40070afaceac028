"""Netty's marks: strictly above, strictly below, and 96 bytes an entry."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limiter.flow.outbound_buffer import (
    ENTRY_OVERHEAD_BYTES,
    OutboundBuffer,
    OutboundTotals,
    WriteBufferMarks,
)
from tests.support.examples import many

MARKS = WriteBufferMarks(1_000, 500)


def queued(buffer: OutboundBuffer, size_bytes: int, paid_bytes: int = 0) -> bool:
    buffer.weigh(size_bytes, paid_bytes)
    return buffer.became_unwritable()


def test_each_entry_counts_96_bytes_more_than_its_size() -> None:
    buffer = OutboundBuffer(WriteBufferMarks())
    queued(buffer, 0)
    queued(buffer, 10)
    assert buffer.pending_bytes == 2 * 96 + 10
    assert repr(buffer) == "<OutboundBuffer 202 bytes, writable>"


def test_the_default_marks_are_equal_to_nettys() -> None:
    assert WriteBufferMarks() == WriteBufferMarks(65_536, 32_768)


def test_unwritable_begins_strictly_above_the_high_mark() -> None:
    buffer = OutboundBuffer(MARKS)
    assert not queued(buffer, 1_000 - ENTRY_OVERHEAD_BYTES)
    assert buffer.writable
    assert queued(buffer, 0)
    assert not buffer.writable
    assert not queued(buffer, 5)
    assert repr(buffer) == "<OutboundBuffer 1197 bytes, unwritable>"


def test_writable_begins_strictly_below_the_low_mark() -> None:
    buffer = OutboundBuffer(MARKS)
    queued(buffer, 500 - ENTRY_OVERHEAD_BYTES)
    queued(buffer, 1_000)
    assert not buffer.left(1_000)
    assert buffer.pending_bytes == 500
    assert not buffer.writable
    queued(buffer, 0)
    assert buffer.left(500 - ENTRY_OVERHEAD_BYTES)
    assert buffer.writable


def test_writability_does_not_change_between_the_marks() -> None:
    buffer = OutboundBuffer(MARKS)
    queued(buffer, 600)
    assert buffer.writable
    assert not buffer.left(600)


def test_totals_sum_up_all_connections_and_keep_the_peak() -> None:
    totals = OutboundTotals()
    one, two = OutboundBuffer(MARKS, totals), OutboundBuffer(MARKS, totals)
    queued(one, 4)
    queued(two, 4)
    one.left(4)
    assert (totals.pending_bytes, totals.peak_bytes) == (100, 200)


# -- the marks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("high", "low"), [(1_000, 1_001), (0, 1), (1_000, -1)])
def test_a_low_mark_above_the_high_mark_or_below_zero_is_refused(high: int, low: int) -> None:
    with pytest.raises(ValueError, match=f"a low mark of {low} bytes does not go with"):
        WriteBufferMarks(high, low)


@pytest.mark.parametrize("mark", [0, 1_000])
def test_the_high_and_the_low_mark_may_be_equal(mark: int) -> None:
    assert WriteBufferMarks(mark, mark).low_bytes == mark


def test_changed_marks_apply_immediately_to_a_writable_buffer() -> None:
    buffer = OutboundBuffer(MARKS)
    buffer.change_marks(WriteBufferMarks(200, 100))
    assert queued(buffer, 105)
    assert not buffer.left(0)
    assert buffer.left(6)


def test_changed_marks_apply_to_an_unwritable_buffer_after_its_next_drain() -> None:
    buffer = OutboundBuffer(MARKS)
    queued(buffer, 2_000)
    queued(buffer, 300)
    buffer.change_marks(WriteBufferMarks(200, 100))
    # Then the old low mark remains
    assert buffer.left(2_000)
    # and from then on the new marks hold
    buffer.left(300)
    assert queued(buffer, 105)
    assert not buffer.left(0)
    assert not buffer.writable


def test_of_several_changes_while_unwritable_the_last_marks_apply() -> None:
    buffer = OutboundBuffer(MARKS)
    queued(buffer, 2_000)
    buffer.change_marks(WriteBufferMarks(200, 100))
    buffer.change_marks(WriteBufferMarks(400, 300))
    buffer.left(2_000)
    assert not queued(buffer, 400 - ENTRY_OVERHEAD_BYTES)
    assert queued(buffer, 0)


def test_an_entry_may_be_counted_before_writability_is_evaluated() -> None:
    buffer = OutboundBuffer(MARKS)
    buffer.weigh(2_000)
    assert (buffer.pending_bytes, buffer.writable) == (2_096, True)
    assert buffer.became_unwritable()
    assert not buffer.writable
    assert not buffer.became_unwritable()


def test_bytes_flushed_before_evaluation_do_not_make_the_buffer_unwritable() -> None:
    buffer = OutboundBuffer(MARKS)
    buffer.weigh(2_000)
    left = buffer.left(2_000)
    assert not left
    assert not buffer.became_unwritable()


# -- waiting to be writable -----------------------------------------------------------------------


def test_a_listener_registered_twice_is_called_once() -> None:
    buffer, called = OutboundBuffer(MARKS), []
    buffer.on_writable(listener := lambda: called.append("told"))
    buffer.on_writable(listener)
    buffer.tell_listeners()
    buffer.tell_listeners()
    assert called == ["told"]


def test_listeners_are_called_in_order_of_registration() -> None:
    buffer, called = OutboundBuffer(MARKS), []
    for number in range(5):
        buffer.on_writable(partial(called.append, number))
    buffer.tell_listeners()
    assert called == [0, 1, 2, 3, 4]


def test_a_forgotten_listener_is_not_called() -> None:
    buffer, called = OutboundBuffer(MARKS), []
    buffer.on_writable(listener := lambda: called.append("told"))
    buffer.forget_listener(listener)
    buffer.forget_listener(listener)
    buffer.tell_listeners()
    assert called == []


def test_a_listener_that_registers_again_is_called_the_next_time() -> None:
    buffer, called = OutboundBuffer(MARKS), []

    def listener() -> None:
        called.append("told")
        buffer.on_writable(listener)

    buffer.on_writable(listener)
    buffer.tell_listeners()
    assert called == ["told"]
    buffer.tell_listeners()
    assert called == ["told", "told"]


def test_when_a_listener_fills_the_buffer_again_later_listeners_wait_for_the_next_time() -> None:
    buffer, called = OutboundBuffer(MARKS), []

    def fills_it() -> None:
        called.append("first")
        queued(buffer, 2_000)

    buffer.on_writable(fills_it)
    buffer.on_writable(lambda: called.append("second"))
    buffer.tell_listeners()
    assert called == ["first"]
    buffer.left(2_000)
    buffer.tell_listeners()
    assert called == ["first", "second"]


# -- bytes without a permit -----------------------------------------------------------------------


def test_bytes_paid_for_by_a_permit_are_pending_but_not_unpaid() -> None:
    totals = OutboundTotals()
    buffer = OutboundBuffer(MARKS, totals)
    queued(buffer, 1_000, 900)
    # Then the head and the fixed part are unpaid
    assert (totals.pending_bytes, totals.unpaid_bytes) == (1_096, 196)
    buffer.left(1_000, 900)
    assert (totals.pending_bytes, totals.unpaid_bytes) == (0, 0)


def test_totals_are_full_when_unpaid_bytes_exceed_the_cap() -> None:
    totals = OutboundTotals(1_000)
    totals.change(1_000)
    assert not totals.full
    totals.change(1)
    assert totals.full
    totals.change(500, 500)
    totals.change(-1)
    assert not totals.full


@pytest.mark.parametrize("cap", [0, -1])
def test_without_a_cap_totals_are_never_full(cap: int) -> None:
    totals = OutboundTotals(cap)
    totals.change(10**12)
    assert not totals.full


def test_a_waiting_callback_is_called_once_when_unpaid_bytes_fall_to_half_of_the_cap() -> None:
    totals, called = OutboundTotals(1_000), []
    totals.change(2_000)
    totals.call_when_less(callback := lambda: called.append("told"))
    totals.call_when_less(callback)
    totals.change(-1_499)
    assert called == []
    totals.change(-1)
    assert called == ["told"]
    totals.change(-1)
    assert called == ["told"]


def test_bytes_paid_for_by_a_permit_do_not_keep_a_callback_waiting() -> None:
    totals, called = OutboundTotals(1_000), []
    totals.change(5_000, 3_800)
    totals.call_when_less(lambda: called.append("told"))
    # When the unpaid part has left
    totals.change(-1_200)
    assert totals.pending_bytes == 3_800
    assert called == ["told"]


def test_a_forgotten_callback_is_not_called() -> None:
    totals, called = OutboundTotals(1_000), []
    totals.change(2_000)
    totals.call_when_less(callback := lambda: called.append("told"))
    totals.forget(callback)
    totals.forget(callback)
    totals.change(-2_000)
    assert called == []


def test_a_callback_may_wait_again_when_called() -> None:
    totals, called = OutboundTotals(1_000), []

    def fills_it_again() -> None:
        called.append("told")
        totals.change(2_000)
        totals.call_when_less(fills_it_again)

    totals.change(2_000)
    totals.call_when_less(fills_it_again)
    totals.change(-2_000)
    assert called == ["told"]
    assert totals.full


ENTRIES = st.lists(st.tuples(st.integers(0, 3_000), st.floats(0, 1)), max_size=40)


@settings(max_examples=many(200), deadline=None)
@given(ENTRIES, st.lists(st.booleans(), max_size=80))
def test_in_any_order_totals_equal_the_pending_entries_and_return_to_zero(entries, queues) -> None:
    totals, most = OutboundTotals(), 0
    buffers = [OutboundBuffer(MARKS, totals), OutboundBuffer(MARKS, totals)]
    waiting = [(buffers[size % 2], size, int(size * paid)) for size, paid in entries]
    pending: list[tuple[OutboundBuffer, int, int]] = []
    for queue in [*queues, *[False] * len(entries)]:
        if queue and waiting:
            buffer, size, paid = one = waiting.pop()
            was_writable = buffer.writable
            assert queued(buffer, size, paid) is (was_writable and not buffer.writable)
            pending.append(one)
        elif pending:
            buffer, size, paid = pending.pop(0)
            was_writable = buffer.writable
            assert buffer.left(size, paid) is (not was_writable and buffer.writable)
        weight = sum(size + ENTRY_OVERHEAD_BYTES for _, size, _ in pending)
        most = max(most, weight)
        assert (totals.pending_bytes, totals.peak_bytes) == (weight, most)
        assert totals.unpaid_bytes == weight - sum(paid for _, _, paid in pending)
        for one in buffers:
            assert one.pending_bytes <= 1_000 if one.writable else one.pending_bytes >= 500
    assert (totals.pending_bytes, totals.unpaid_bytes) == (0, 0)
    assert all(one.writable for one in buffers)
