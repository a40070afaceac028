"""Progress of a peer's reads: acknowledged bytes, and time without any."""

import pytest

from limiter.slow_peers.peer import DRAIN_WINDOW_SECONDS, WriteProgress


def sent_at(now: float) -> WriteProgress:
    progress = WriteProgress()
    progress.sent(now)
    return progress


# -- standing still -------------------------------------------------------------------------------


def test_who_was_sent_nothing_does_not_stand_still() -> None:
    progress = WriteProgress()
    assert not progress.outstanding
    assert progress.stalled_seconds(1_000.0) == 0.0


def test_time_runs_from_the_moment_something_is_sent() -> None:
    assert sent_at(10.0).stalled_seconds(13.0) == 3.0


def test_what_is_sent_in_addition_does_not_begin_the_time_anew() -> None:
    progress = sent_at(10.0)
    progress.sent(12.0)
    assert progress.stalled_seconds(13.0) == 3.0


def test_time_begins_anew_with_each_byte_that_is_acknowledged() -> None:
    progress = sent_at(10.0)
    progress.sample(1, 12.0, outstanding=True)
    assert progress.stalled_seconds(13.0) == 1.0


@pytest.mark.parametrize("acknowledged", [100, 99])
def test_a_sample_without_more_bytes_is_no_progress(acknowledged: int) -> None:
    progress = sent_at(10.0)
    progress.sample(100, 11.0, outstanding=True)
    progress.sample(acknowledged, 12.0, outstanding=True)
    assert progress.stalled_seconds(13.0) == 2.0


def test_who_acknowledged_everything_does_not_stand_still() -> None:
    progress = sent_at(10.0)
    progress.sample(100, 11.0, outstanding=False)
    assert progress.stalled_seconds(1_000.0) == 0.0


def test_after_everything_was_acknowledged_time_runs_from_the_next_sending() -> None:
    progress = sent_at(10.0)
    progress.sample(100, 11.0, outstanding=False)
    progress.sent(50.0)
    assert progress.stalled_seconds(52.0) == 2.0


def test_a_sample_may_be_the_first_to_tell_that_something_is_outstanding() -> None:
    progress = WriteProgress()
    progress.sample(0, 20.0, outstanding=True)
    assert progress.outstanding
    assert progress.stalled_seconds(21.0) == 1.0


# -- the rate of draining -------------------------------------------------------------------------


def test_there_is_no_rate_before_a_whole_window_is_over() -> None:
    progress = sent_at(10.0)
    progress.sample(5_000, 19.0, outstanding=True)
    assert progress.drain_rate(10.0 + DRAIN_WINDOW_SECONDS - 0.001) is None
    assert progress.drain_rate(10.0 + DRAIN_WINDOW_SECONDS) == 500.0


def test_the_rate_is_that_of_the_time_that_passed() -> None:
    progress = sent_at(0.0)
    progress.sample(5_000, 20.0, outstanding=True)
    assert progress.drain_rate(20.0) == 250.0


def test_each_window_is_judged_for_itself() -> None:
    progress = sent_at(0.0)
    progress.sample(5_000, 10.0, outstanding=True)
    progress.drain_rate(10.0)
    progress.sample(6_000, 20.0, outstanding=True)
    assert progress.drain_rate(15.0) is None
    assert progress.drain_rate(20.0) == 100.0


def test_there_is_no_rate_while_nothing_is_outstanding() -> None:
    progress = sent_at(0.0)
    progress.sample(5_000, 9.0, outstanding=False)
    assert progress.drain_rate(20.0) is None


def test_the_window_begins_when_something_is_outstanding_again() -> None:
    progress = sent_at(0.0)
    progress.sample(5_000, 9.0, outstanding=False)
    progress.sent(15.0)
    progress.sample(6_000, 25.0, outstanding=True)
    assert progress.drain_rate(24.0) is None
    assert progress.drain_rate(25.0) == 100.0


def test_who_took_nothing_has_a_rate_of_nothing() -> None:
    assert sent_at(0.0).drain_rate(10.0) == 0.0


def test_a_drip_is_no_progress_unless_it_is_everything() -> None:
    progress = WriteProgress()
    progress.sent(0.0)
    # When a few bytes arrive every second
    for second in (1.0, 2.0, 3.0):
        progress.sample(int(second) * 5_000, second, outstanding=True, least_bytes=16_384)
    assert progress.stalled_seconds(3.0) == 3.0
    progress.sample(20_000, 4.0, outstanding=True, least_bytes=16_384)
    assert progress.stalled_seconds(5.0) == 1.0
    progress.sample(20_001, 6.0, outstanding=False, least_bytes=16_384)
    assert progress.stalled_seconds(7.0) == 0.0


def test_who_has_taken_enough_is_proven_for_good() -> None:
    progress = WriteProgress()
    progress.sent(0.0)
    progress.sample(16_383, 1.0, outstanding=True, least_bytes=16_384)
    assert not progress.proven
    progress.sample(16_384, 2.0, outstanding=True, least_bytes=16_384)
    assert progress.proven
