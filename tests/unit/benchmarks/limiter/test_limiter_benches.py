"""The limiter's benchmarks compare like with like and notice when they measure something else."""

from __future__ import annotations

import asyncio
import gc

import pytest

from benchmarks.limiter import client_memory
from benchmarks.limiter import memory as limiter_memory
from benchmarks.limiter import tasks as limiter_tasks
from benchmarks.limiter import uncontended as limiter
from benchmarks.limiter import waiters as limiter_waiters
from benchmarks.limiter.waiting_queue import (
    BLOCKER,
    Outcomes,
    Spread,
    growth_figure,
    occupied,
    undisturbed,
)
from benchmarks.processes import BenchError
from benchmarks.result import BenchOptions
from limiter.admission.rules import AdmissionPolicy
from limiter.permits.permit import AcquireOutcome


def an_uncontended_round(**nanos: float) -> dict[str, dict[str, float]]:
    return {"uvloop": {**dict.fromkeys(limiter.LABELS, 1000.0), **nanos}}


def test_times_of_the_yardstick_compare_what_was_measured_in_the_same_round() -> None:
    # Given a machine that was half as fast in the second round
    rounds = [
        an_uncontended_round(asyncio=500.0, fifo=600.0),
        an_uncontended_round(asyncio=1000.0, fifo=1200.0),
    ]
    # When
    figures = {one.name: one for one in limiter.conclude("uvloop", rounds)}
    # Then
    judged = figures["uvloop: AsyncSemaphore, fifo / asyncio's"]
    assert list(judged.values) == [1.2, 1.2]
    assert judged.met


def test_only_the_plain_pair_is_judged() -> None:
    figures = limiter.conclude("uvloop", [an_uncontended_round()])
    assert [one.name for one in figures if one.goal is not None] == [
        "uvloop: AsyncSemaphore, fifo / asyncio's"
    ]


def test_of_client_memory_the_reservations_are_judged() -> None:
    result = client_memory.run(BenchOptions(rounds=2, seconds=0.01))
    assert [one.goal for one in result.figures] == [client_memory.GOAL_MICROSECONDS, None]
    assert all(value > 0 for one in result.figures for value in one.values)


@pytest.mark.parametrize("case", limiter_waiters.CASES, ids=lambda case: case.name)
def test_every_waiter_ends_as_its_case_says(case: limiter_waiters.Case) -> None:
    assert asyncio.run(limiter_waiters.measure(case, 30)) > 0


def test_a_shared_request_ends_with_the_last_of_its_sharers() -> None:
    assert asyncio.run(limiter_waiters.measure_sharers(30)) > 0


def test_waiters_that_end_in_another_way_are_no_measurement() -> None:
    # Given requests that are said to be granted and are abandoned
    lying = limiter_waiters.Ending("granted", AcquireOutcome.GRANTED, limiter_waiters.abandon)
    case = limiter_waiters.Case(AdmissionPolicy.FIFO, Spread.ONE_OWNER, lying)
    # Then
    with pytest.raises(BenchError, match="requests ended as"):
        asyncio.run(limiter_waiters.measure(case, 3))


def test_own_owners_are_as_many_as_waiters_and_in_several_namespaces_of_several_tenants() -> None:
    who = Spread.OWN_OWNERS.of(1000)
    assert len({owner for owner, _ in who}) == 1000
    assert len({namespace for _, namespace in who}) == 20
    assert len({namespace.partition("/")[0] for _, namespace in who}) == 4


def test_growth_compares_the_same_round() -> None:
    # Given a machine that was half as fast in the second round
    rounds = [{"case": {"1000": 10.0, "10000": 12.0}}, {"case": {"1000": 20.0, "10000": 24.0}}]
    # When
    figure = growth_figure("case", rounds, goal=1.5)
    # Then
    assert list(figure.values) == [1.2, 1.2]
    assert figure.met


def test_a_cost_that_grows_with_the_number_of_waiters_misses_the_goal() -> None:
    assert growth_figure("case", [{"case": {"1000": 10.0, "10000": 16.0}}], goal=1.5).met is False


def test_a_hundred_thousand_waiters_are_told_of_where_they_were_measured() -> None:
    # Given
    usual = {"1000": 1.0, "10000": 2.0}
    rounds = [{"case": {**usual, "100000": 3.0}}, {"case": usual}]
    # When
    names = {one.name: one.values for one in limiter_waiters.conclude(rounds)}
    # Then
    assert names["case, 100,000 / 10,000"] == [1.5]
    assert "case, 100,000 / 10,000" not in {
        one.name for one in limiter_waiters.conclude(rounds[1:])
    }


def test_collections_are_on_again_after_a_measurement() -> None:
    async def fail() -> None:
        assert not gc.isenabled()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        asyncio.run(undisturbed(fail()))
    assert gc.isenabled()


@pytest.mark.parametrize(("side", "ending"), limiter_tasks.KEYS)
def test_every_task_ends_as_its_case_says(side: str, ending: str) -> None:
    assert asyncio.run(limiter_tasks.measure(side, ending, 30)) > 0


@pytest.mark.parametrize(
    ("ending", "order"),
    [(limiter_tasks.CANCELLED, [0, 1, 2]), (limiter_tasks.REVERSED, [2, 1, 0])],
)
def test_tasks_are_cancelled_in_the_order_that_is_said(ending: str, order: list[int]) -> None:
    # Given
    left: list[int] = []

    async def wait(number: int) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            left.append(number)

    # When
    uses = (wait(number) for number in range(3))
    asyncio.run(limiter_tasks.whole_lives(ending, uses, lambda: None))
    # Then
    assert left == order


def test_tasks_are_compared_with_those_that_ended_the_same_way() -> None:
    # Given
    costs = {
        limiter_tasks.name_of(*key): {"1000": 10.0, "10000": 10.0} for key in limiter_tasks.KEYS
    }
    costs["asyncio.Semaphore: cancelled"]["10000"] = 5.0
    # When
    figures = {one.name: list(one.values) for one in limiter_tasks.conclude([costs])}
    # Then
    assert figures["fifo: cancelled / asyncio's"] == [2.0]
    assert figures["fifo: granted / asyncio's"] == [1.0]


def test_what_waits_behind_the_blocker_waits() -> None:
    async def scenario() -> int:
        semaphore = occupied(AdmissionPolicy.FAIR, Outcomes())
        semaphore.request(1, None, "other", "tenant/namespace")
        assert semaphore.queue_size == 1
        semaphore.owners.cancel(BLOCKER)
        return semaphore.queue_size

    assert asyncio.run(scenario()) == 0


def test_memory_is_of_all_waiters_divided_by_their_number() -> None:
    # Given
    few = asyncio.run(limiter_memory.measure_tasks("fifo", 500))
    many = asyncio.run(limiter_memory.measure_tasks("fifo", 1000))
    bare = asyncio.run(limiter_memory.measure_tasks(limiter_memory.BARE_TASK, 1000))
    # Then
    assert 0.8 < many / few < 1.25
    assert bare < many


def test_a_request_alone_holds_less_than_with_its_task() -> None:
    for side in limiter_memory.SIDES:
        alone = asyncio.run(limiter_memory.measure_requests(side, 300))
        assert 0 < alone < asyncio.run(limiter_memory.measure_tasks(side, 300)), side
