"""Progress of a peer's reads: acknowledged bytes, and time without any."""

import pytest

from limiter.slow_peers.peer import DRAIN_WINDOW_SECONDS, WriteProgress


def sent_at(now: float) -> WriteProgress:
    progress = WriteProgress()
    progress.sent(now)
    return progress


# -- stalled time ---------------------------------------------------------------------------------


def test_a_peer_without_sent_bytes_is_not_stalled() -> None:
    progress = WriteProgress()
    assert not progress.outstanding
    assert progress.stalled_seconds(1_000.0) == 0.0


def test_stalled_time_runs_from_the_first_sent_bytes() -> None:
    assert sent_at(10.0).stalled_seconds(13.0) == 3.0


def test_further_sent_bytes_do_not_restart_the_stalled_time() -> None:
    progress = sent_at(10.0)
    progress.sent(12.0)
    assert progress.stalled_seconds(13.0) == 3.0


def test_each_acknowledged_byte_restarts_the_stalled_time() -> None:
    progress = sent_at(10.0)
    progress.sample(1, 12.0, outstanding=True)
    assert progress.stalled_seconds(13.0) == 1.0


@pytest.mark.parametrize("acknowledged", [100, 99])
def test_a_sample_without_more_bytes_is_no_progress(acknowledged: int) -> None:
    progress = sent_at(10.0)
    progress.sample(100, 11.0, outstanding=True)
    progress.sample(acknowledged, 12.0, outstanding=True)
    assert progress.stalled_seconds(13.0) == 2.0


def test_a_peer_that_acknowledged_everything_is_not_stalled() -> None:
    progress = sent_at(10.0)
    progress.sample(100, 11.0, outstanding=False)
    assert progress.stalled_seconds(1_000.0) == 0.0


def test_after_full_acknowledgement_stalled_time_runs_from_the_next_sent_bytes() -> None:
    progress = sent_at(10.0)
    progress.sample(100, 11.0, outstanding=False)
    progress.sent(50.0)
    assert progress.stalled_seconds(52.0) == 2.0


def test_a_sample_may_be_the_first_to_report_outstanding_bytes() -> None:
    progress = WriteProgress()
    progress.sample(0, 20.0, outstanding=True)
    assert progress.outstanding
    assert progress.stalled_seconds(21.0) == 1.0


# -- the rate of draining -------------------------------------------------------------------------


def test_there_is_no_drain_rate_before_a_whole_window_has_passed() -> None:
    progress = sent_at(10.0)
    progress.sample(5_000, 19.0, outstanding=True)
    assert progress.drain_rate(10.0 + DRAIN_WINDOW_SECONDS - 0.001) is None
    assert progress.drain_rate(10.0 + DRAIN_WINDOW_SECONDS) == 500.0


def test_the_drain_rate_covers_the_elapsed_time() -> None:
    progress = sent_at(0.0)
    progress.sample(5_000, 20.0, outstanding=True)
    assert progress.drain_rate(20.0) == 250.0


def test_each_window_has_its_own_drain_rate() -> None:
    progress = sent_at(0.0)
    progress.sample(5_000, 10.0, outstanding=True)
    progress.drain_rate(10.0)
    progress.sample(6_000, 20.0, outstanding=True)
    assert progress.drain_rate(15.0) is None
    assert progress.drain_rate(20.0) == 100.0


def test_there_is_no_drain_rate_while_no_bytes_are_outstanding() -> None:
    progress = sent_at(0.0)
    progress.sample(5_000, 9.0, outstanding=False)
    assert progress.drain_rate(20.0) is None


def test_the_drain_window_begins_when_bytes_are_outstanding_again() -> None:
    progress = sent_at(0.0)
    progress.sample(5_000, 9.0, outstanding=False)
    progress.sent(15.0)
    progress.sample(6_000, 25.0, outstanding=True)
    assert progress.drain_rate(24.0) is None
    assert progress.drain_rate(25.0) == 100.0


def test_a_peer_without_progress_has_a_drain_rate_of_zero() -> None:
    assert sent_at(0.0).drain_rate(10.0) == 0.0


def test_a_few_acknowledged_bytes_are_no_progress_unless_none_are_outstanding() -> None:
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


def test_a_peer_that_has_acknowledged_enough_bytes_stays_proven() -> None:
    progress = WriteProgress()
    progress.sent(0.0)
    progress.sample(16_383, 1.0, outstanding=True, least_bytes=16_384)
    assert not progress.proven
    progress.sample(16_384, 2.0, outstanding=True, least_bytes=16_384)
    assert progress.proven
