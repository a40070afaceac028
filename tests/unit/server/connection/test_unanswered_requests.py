"""Requests never answered by profile pulsar are all counted, and logged within bounds."""

import pytest

from server.connection.unanswered_requests import UnansweredRequests
from tests.support.clocks.manual_clock import ManualClock

REASON = "Requested permits=2 is larger than maxPermits=1"


def leave(unanswered: UnansweredRequests, times: int) -> None:
    for _ in range(times):
        unanswered.left("public/big", "10.0.0.1:4000", REASON)


def test_each_unanswered_request_is_counted_and_logged_with_client_and_reason(caplog) -> None:
    unanswered = UnansweredRequests(ManualClock(), " and keeps its lookup permit")
    leave(unanswered, 1)
    assert unanswered.total == 1
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        "as shipped, a request about 'public/big' for 10.0.0.1:4000 is never answered and keeps "
        f"its lookup permit: {REASON}"
    )


def test_a_storm_logs_ten_lines_per_minute_and_then_the_number_of_suppressed_lines(caplog) -> None:
    clock = ManualClock()
    unanswered = UnansweredRequests(clock)
    leave(unanswered, 5_000)
    clock.advance(59.9)
    leave(unanswered, 1)
    in_first_minute = len(caplog.records)
    clock.advance(0.1)
    leave(unanswered, 1)
    clock.advance(60)
    leave(unanswered, 1)
    lines = [record.getMessage() for record in caplog.records]
    assert in_first_minute == 10
    assert len(lines) == 13
    assert lines[10] == "as shipped, 4991 more requests were never answered; 5001 since the start"
    assert unanswered.total == 5_003


def test_a_minute_without_a_storm_logs_no_summary(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    unanswered = UnansweredRequests(clock)
    for _ in range(3):
        leave(unanswered, 10)
        clock.advance(60)
    assert len(caplog.records) == 30


def test_a_namespace_sent_by_a_client_is_logged_shortened_and_on_a_single_line(caplog) -> None:
    unanswered = UnansweredRequests(ManualClock())
    unanswered.left("a\nb" + "x" * 10_000, "10.0.0.1:4000", REASON)
    (record,) = caplog.records
    assert "a\\nb" in record.getMessage()
    assert len(record.getMessage()) < 400
