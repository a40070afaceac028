from __future__ import annotations

import pytest

from loadgen.engine.pacing import ReadBudget

RATE = 100_000.0


def read_all(size: int, rate: float, lateness_seconds: float = 0.0) -> tuple[float, int]:
    """Read ``size`` bytes that are all there; return the time it took and the number of reads."""
    now, reads = 0.0, 0
    budget = ReadBudget(rate, now)
    while size > 0:
        pause = budget.pause_seconds(now)
        if pause > 0:
            now += pause + lateness_seconds
        taken = min(size, budget.available_bytes(now))
        assert taken > 0
        budget.spend(taken)
        size -= taken
        reads += 1
        now += 1e-5
    return now, reads


def test_a_megabyte_takes_ten_seconds_at_100_kilobytes_a_second() -> None:
    seconds, reads = read_all(1_000_000, RATE)
    assert seconds == pytest.approx(10, rel=0.02)
    assert reads <= 110


def test_late_timers_do_not_make_the_reader_slower() -> None:
    seconds, _ = read_all(1_000_000, RATE, lateness_seconds=0.05)
    assert seconds == pytest.approx(10, rel=0.02)


def test_never_more_than_the_rate_and_a_burst_of_two_quanta() -> None:
    # Given a reader that was kept waiting for a minute
    budget = ReadBudget(RATE, 0.0)
    # When
    available = budget.available_bytes(60.0)
    # Then
    assert available == 20_000


def test_an_empty_budget_waits_for_a_whole_quantum() -> None:
    # Given
    budget = ReadBudget(RATE, 0.0)
    budget.spend(budget.available_bytes(0.0))
    # When
    pause = budget.pause_seconds(0.0)
    # Then
    assert pause == pytest.approx(0.1)
    assert budget.available_bytes(pause) == pytest.approx(10_000, abs=1)


def test_half_a_quantum_is_read_without_a_pause() -> None:
    budget = ReadBudget(RATE, 0.0)
    budget.spend(4_000)
    assert budget.pause_seconds(0.0) == 0


def test_a_clock_that_steps_back_takes_no_tokens() -> None:
    budget = ReadBudget(RATE, 10.0)
    assert budget.available_bytes(5.0) == 10_000
