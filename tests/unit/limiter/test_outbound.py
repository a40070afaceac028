"""Netty's marks: strictly above, strictly below, and 96 bytes an entry."""

from __future__ import annotations

from limiter.outbound import (
    ENTRY_OVERHEAD_BYTES,
    OutboundBuffer,
    OutboundTotals,
    WriteBufferMarks,
)

MARKS = WriteBufferMarks(1_000, 500)


def test_each_entry_weighs_96_bytes_more_than_it_has() -> None:
    # Given
    buffer = OutboundBuffer(WriteBufferMarks())
    # When
    buffer.queued(0)
    buffer.queued(10)
    # Then
    assert buffer.pending_bytes == 2 * 96 + 10
    assert repr(buffer) == "<OutboundBuffer 202 bytes, writable>"


def test_the_default_marks_are_nettys() -> None:
    assert WriteBufferMarks() == WriteBufferMarks(65_536, 32_768)


def test_unwritable_begins_strictly_above_the_high_mark() -> None:
    # Given
    buffer = OutboundBuffer(MARKS)
    # When, Then
    assert not buffer.queued(1_000 - ENTRY_OVERHEAD_BYTES)
    assert buffer.writable
    assert buffer.queued(0)
    assert not buffer.writable
    assert not buffer.queued(5)
    assert repr(buffer) == "<OutboundBuffer 1197 bytes, unwritable>"


def test_writable_begins_strictly_below_the_low_mark() -> None:
    # Given
    buffer = OutboundBuffer(MARKS)
    buffer.queued(500 - ENTRY_OVERHEAD_BYTES)
    buffer.queued(1_000)
    # When, Then
    assert not buffer.left(1_000)
    assert buffer.pending_bytes == 500
    assert not buffer.writable
    buffer.queued(0)
    assert buffer.left(500 - ENTRY_OVERHEAD_BYTES)
    assert buffer.writable


def test_between_the_marks_nothing_changes() -> None:
    # Given
    buffer = OutboundBuffer(MARKS)
    # When
    buffer.queued(600)
    # Then
    assert buffer.writable
    assert not buffer.left(600)


def test_totals_add_up_all_connections_and_keep_the_most() -> None:
    # Given
    totals = OutboundTotals()
    one, two = OutboundBuffer(MARKS, totals), OutboundBuffer(MARKS, totals)
    # When
    one.queued(4)
    two.queued(4)
    one.left(4)
    # Then
    assert (totals.pending_bytes, totals.peak_bytes) == (100, 200)
