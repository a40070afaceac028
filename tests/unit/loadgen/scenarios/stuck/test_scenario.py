"""The schedule beside stuck peers is a function of the scenario alone."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError

from loadgen.clients.schedule import due_moments, scheduled_plans
from loadgen.executors.worker import read_plan
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.storm.scenario import StormScenario
from loadgen.scenarios.stuck.scenario import StuckScenario
from loadgen.stuck_peers.scenario import peer_plans
from loadgen.tasks.task import TaskPlan


def names(*parts: str) -> tuple[NamespaceExpectation, ...]:
    return tuple(NamespaceExpectation(name=f"load/{part}") for part in parts)


def scenario(**changes) -> StuckScenario:
    values = {"service_url": "pulsar://127.0.0.1:6650", "namespaces": names("a", "b", "c")}
    return StuckScenario(**{**values, **changes})


@pytest.mark.parametrize("tasks", [1, 2, 3, 10])
@pytest.mark.parametrize("plans", [scheduled_plans, peer_plans])
def test_plans_do_not_depend_on_the_number_of_tasks(plans, tasks: int) -> None:
    stuck = scenario(stuck_peers=7)
    split = [plan for task in range(tasks) for plan in plans(stuck, task, tasks)]
    assert sorted(split, key=lambda plan: plan.client) == list(plans(stuck, 0, 1))


def test_clients_take_turns_within_the_interval() -> None:
    plans = scheduled_plans(scenario(clients=4, interval_seconds=2), 0, 1)
    assert [plan.intended_start_seconds for plan in plans] == [0.0, 0.5, 1.0, 1.5]


def test_listings_are_due_at_equal_distances_until_the_duration_is_over() -> None:
    stuck = scenario(clients=4, interval_seconds=2, duration_seconds=6)
    assert list(due_moments(stuck, 0)) == [0.0, 2.0, 4.0]
    assert list(due_moments(stuck, 3)) == [1.5, 3.5, 5.5]


def test_a_client_whose_turn_comes_after_the_end_has_nothing_due() -> None:
    stuck = scenario(clients=4, interval_seconds=2, duration_seconds=1.5, stuck_at_seconds=1)
    assert [len(list(due_moments(stuck, client))) for client in range(4)] == [1, 1, 1, 0]


def test_a_moment_is_a_multiple_of_the_interval_however_many_came_before() -> None:
    stuck = scenario(clients=1, interval_seconds=0.1, duration_seconds=1000)
    moments = list(due_moments(stuck, 0))
    assert len(moments) == 10_000
    assert moments[-1] == 9_999 * 0.1


def test_stuck_peers_ask_for_what_the_healthy_clients_ask_for_unless_told() -> None:
    named = [plan.namespace.name for plan in peer_plans(scenario(stuck_peers=4), 0, 1)]
    assert named == ["load/a", "load/b", "load/c", "load/a"]
    own = scenario(stuck_peers=3, stuck_namespaces=names("x", "y"))
    assert [plan.namespace.name for plan in peer_plans(own, 0, 1)] == ["load/x", "load/y", "load/x"]


def test_peers_take_source_addresses_after_those_of_the_clients() -> None:
    stuck = scenario(clients=20_000, stuck_peers=2, interval_seconds=10)
    plans = peer_plans(stuck, 0, 1, loopback=True)
    assert Counter(plan.source_address for plan in plans) == {"127.0.0.2": 2}
    assert {plan.source_address for plan in peer_plans(stuck, 0, 1)} == {None}


def test_peers_leave_after_their_time_or_at_the_end() -> None:
    assert scenario(stuck_at_seconds=2, stuck_seconds=6).peers.until_seconds == 8
    assert scenario().peers.until_seconds is None


@pytest.mark.parametrize(
    "change",
    [
        {"clients": 0},
        {"interval_seconds": 0},
        {"duration_seconds": 0},
        {"stuck_peers": -1},
        {"stuck_pipelined": 0},
        {"stuck_read_rate_bytes_per_second": -1},
        {"stuck_seconds": -1},
        {"spread_seconds": 1},
    ],
)
def test_impossible_scenarios_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        scenario(**change)


def test_peers_that_would_come_after_the_end_are_refused_in_words() -> None:
    words = "--stuck-at-seconds 20 is not before the end of --duration-seconds 20"
    with pytest.raises(ValidationError, match=words):
        scenario(stuck_at_seconds=20, duration_seconds=20)
    assert scenario(stuck_at_seconds=20, duration_seconds=20, stuck_peers=0).stuck_peers == 0


def test_more_requests_than_a_run_keeps_are_refused_in_words() -> None:
    with pytest.raises(ValidationError, match="make 2,000,001 requests"):
        scenario(clients=100_000, duration_seconds=20.00001)
    assert scenario(clients=100_000, duration_seconds=20.0).clients == 100_000


def test_more_listings_of_peers_than_a_run_keeps_are_refused_in_words() -> None:
    with pytest.raises(ValidationError, match="make 2,000,100 listings"):
        scenario(stuck_peers=20_001, stuck_pipelined=100)
    assert scenario(stuck_peers=20_000, stuck_pipelined=100).stuck_peers == 20_000


def test_a_task_is_told_which_scenario_it_runs() -> None:
    storm = StormScenario(service_url="pulsar://127.0.0.1:6650", namespaces=names("a"))
    for wanted in (scenario(stuck_seconds=3), storm):
        plan = TaskPlan(scenario=wanted, task=0, tasks=1)
        assert read_plan(plan.model_dump_json()).scenario == wanted
