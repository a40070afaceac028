"""Small jobs sharing turns of the event loop."""

import itertools
from collections.abc import Iterator
from functools import partial

import pytest

from server.tasks import cooperative
from server.tasks.cooperative import TURN_SECONDS, SharedTurns
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle

CLOCK = ManualClock()


@pytest.fixture(autouse=True)
def _the_tests_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooperative, "perf_counter", CLOCK.now)


def long_work() -> None:
    """Take a whole turn."""
    CLOCK.advance(TURN_SECONDS)


async def test_a_job_that_fits_the_turn_runs_immediately() -> None:
    turns, ran = SharedTurns(), []
    told = turns.now(lambda: ran.append(1))
    assert (told, ran) == (True, [1])


async def test_after_the_turn_is_over_further_jobs_wait_for_the_next_turn() -> None:
    turns, ran = SharedTurns(), []
    turns.now(long_work)
    told = turns.now(lambda: ran.append("now"))
    turns.later(lambda: ran.append("later"))
    assert (told, ran) == (False, [])
    await settle()
    assert ran == ["later"]


async def test_no_job_overtakes_a_waiting_job() -> None:
    turns, ran = SharedTurns(), []
    turns.later(lambda: ran.append(1))
    told = turns.now(lambda: ran.append(2))
    assert (told, ran) == (False, [])


@pytest.mark.parametrize(("seconds_a_look", "most"), [(0.0, 5), (3_600.0, 1)])
async def test_a_turn_runs_between_1_and_the_maximum_of_jobs_under_any_clock(
    monkeypatch: pytest.MonkeyPatch, seconds_a_look: float, most: int
) -> None:
    moments = itertools.count()
    monkeypatch.setattr(cooperative, "perf_counter", lambda: next(moments) * seconds_a_look)
    monkeypatch.setattr(cooperative, "MOST_STEPS", 5)
    turns, ran, seen = SharedTurns(), list[int](), list[int]()
    for number in range(20):
        turns.later(partial(ran.append, number))
    while len(ran) < 20:
        turns._next_turn()
        seen.append(len(ran) - sum(seen))
    assert ran == list(range(20))
    assert set(seen) == {most}


async def test_a_turn_ends_when_its_time_is_used_up() -> None:
    turns, ran = SharedTurns(), []
    for number in range(3):
        turns.later(long_work)
        turns.later(lambda number=number: ran.append(number))
    seen = []
    for _ in range(6):
        turns._next_turn()
        seen.append(len(ran))
    # Each turn ends after a long job
    assert seen[:4] == [0, 1, 2, 3]


async def test_long_work_takes_its_first_step_immediately_and_each_further_step_in_turn() -> None:
    turns, ran = SharedTurns(), []

    def work() -> Iterator[None]:
        for number in range(3):
            ran.append(number)
            yield

    turns.in_steps(work())
    turns.later(lambda: ran.append("another"))
    assert ran == [0]
    await settle()
    assert ran == [0, 1, "another", 2]


async def test_long_work_without_steps_waits_for_no_turn() -> None:
    turns = SharedTurns()
    turns.in_steps(iter(()))
    assert not turns._due
