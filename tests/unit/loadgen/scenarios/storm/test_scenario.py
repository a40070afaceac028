from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError

from loadgen.scenario import NamespaceExpectation, parse_service_url, source_address
from loadgen.scenarios.storm.scenario import StormScenario, client_plans


def scenario(**changes) -> StormScenario:
    namespaces = tuple(NamespaceExpectation(name=f"load/ns-{index}") for index in range(7))
    values = {"service_url": "pulsar://127.0.0.1:6650", "namespaces": namespaces, "clients": 50}
    return StormScenario(**{**values, **changes})


@pytest.mark.parametrize("tasks", [1, 2, 3, 50])
def test_schedule_does_not_depend_on_number_of_tasks(tasks: int) -> None:
    # Given
    storm = scenario(spread_seconds=10)
    # When
    split = [plan for task in range(tasks) for plan in client_plans(storm, task, tasks)]
    # Then
    assert sorted(split, key=lambda plan: plan.client) == list(client_plans(storm, 0, 1))


def test_starts_are_spread_evenly_and_in_seeded_order() -> None:
    # Given
    storm = scenario(spread_seconds=10, seed=3)
    # When
    starts = [plan.intended_start_seconds for plan in client_plans(storm, 0, 1)]
    # Then
    assert sorted(starts) == pytest.approx([index * 0.2 for index in range(50)])
    assert starts != sorted(starts)
    assert starts == [plan.intended_start_seconds for plan in client_plans(storm, 0, 1)]
    other = client_plans(scenario(spread_seconds=10, seed=4), 0, 1)
    assert starts != [plan.intended_start_seconds for plan in other]


def test_without_spread_all_start_at_the_same_moment() -> None:
    assert {plan.intended_start_seconds for plan in client_plans(scenario(), 0, 1)} == {0.0}


def test_namespaces_are_asked_for_in_turn() -> None:
    counted = Counter(plan.namespace.name for plan in client_plans(scenario(), 0, 1))
    assert set(counted.values()) == {7, 8}


def test_each_20000_clients_get_a_source_address_of_their_own_on_the_loopback() -> None:
    # Given
    storm = scenario(clients=40_001)
    # When
    plans = list(client_plans(storm, 0, 1, loopback=True))
    # Then
    counted = Counter(plan.source_address for plan in plans)
    assert counted == {None: 20_000, "127.0.0.2": 20_000, "127.0.0.3": 1}
    assert source_address(19_999) is None
    assert next(client_plans(storm, 40_000, 40_001)).source_address is None


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("pulsar://127.0.0.1:6650", ("127.0.0.1", 6650)),
        ("pulsar://broker.example", ("broker.example", 6650)),
        ("pulsar://[::1]:7000/", ("::1", 7000)),
        ("pulsar+ssl://broker.example", ("broker.example", 6651)),
    ],
)
def test_service_url_gives_host_and_port(url: str, address: tuple[str, int]) -> None:
    assert parse_service_url(url) == address


@pytest.mark.parametrize("url", ["http://a:1", "pulsar://", "pulsar://a:1,b:2", "pulsar://a:x", ""])
def test_other_service_urls_are_refused_by_name(url: str) -> None:
    with pytest.raises(ValueError, match="not of the form pulsar://host:port"):
        parse_service_url(url)


@pytest.mark.parametrize(
    "change",
    [
        {"clients": 0},
        {"namespaces": ()},
        {"read_rate_bytes_per_second": -1},
        {"timeout_seconds": 0},
        {"requests_per_client": 0},
        {"spread_seconds": -1},
        {"unknown": 1},
    ],
)
def test_impossible_scenarios_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        scenario(**change)


def test_a_scenario_survives_its_journey_as_json() -> None:
    storm = scenario(pattern="load/.*", spread_seconds=1.5)
    assert StormScenario.model_validate_json(storm.model_dump_json()) == storm


@pytest.mark.parametrize("name", ["public", "a/b/c", "/b", "a/", ""])
def test_a_namespace_is_tenant_and_namespace(name: str) -> None:
    with pytest.raises(ValidationError, match="tenant/namespace"):
        NamespaceExpectation(name=name)
