"""The hold-and-wait stall, case by case."""

import pytest

from examples.growth import CASES, Case, simulate, times_at_once, times_of_seed
from limiter.admission.rules import AdmissionPolicy

FIFO, FAIR = AdmissionPolicy.FIFO, AdmissionPolicy.FAIR


@pytest.mark.parametrize("policy", AdmissionPolicy)
def test_requests_that_do_not_grow_are_served_four_at_a_time(policy: AdmissionPolicy) -> None:
    figures = simulate(Case(20, 24, 24), times_at_once(20), policy)
    assert (figures.completed, figures.timed_out) == (20, 0)
    assert figures.last_completed_seconds == pytest.approx(0.1)
    assert figures.high_water_permits == 96


def test_under_fifo_four_growing_holders_complete_only_after_the_waiters_time_out() -> None:
    figures = simulate(Case(20, 24, 25), times_at_once(20), FIFO)
    assert (figures.completed, figures.timed_out) == (4, 16)
    assert figures.first_completed_seconds == pytest.approx(25.01)
    assert figures.last_completed_seconds == pytest.approx(25.01)


def test_under_fifo_ten_holders_of_all_permits_complete_only_after_timeouts() -> None:
    figures = simulate(Case(20, 10, 20), times_at_once(20), FIFO)
    assert (figures.completed, figures.timed_out) == (5, 15)
    assert figures.first_completed_seconds == pytest.approx(25.02)
    assert figures.high_water_permits == 100


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [None, 1, 2, 3, 4, 5])
def test_under_fair_every_request_completes_within_a_second(case: Case, seed: int | None) -> None:
    number = case.requests
    times = times_at_once(number) if seed is None else times_of_seed(number, seed)
    figures = simulate(case, times, FAIR)
    assert (figures.completed, figures.timed_out, figures.stalled) == (number, 0, 0)
    assert figures.last_completed_seconds is not None
    assert figures.last_completed_seconds < 1.0
    assert figures.high_water_permits <= 110


def test_under_fair_a_stall_of_all_holders_ends_with_an_overdraft() -> None:
    figures = simulate(Case(20, 10, 20), times_at_once(20), FAIR)
    assert figures.overdrafts >= 1
    assert figures.high_water_permits == 110


def test_equal_seeds_give_equal_times_and_different_seeds_different_times() -> None:
    assert times_of_seed(20, 1) == times_of_seed(20, 1)
    assert times_of_seed(20, 1) != times_of_seed(20, 2)
