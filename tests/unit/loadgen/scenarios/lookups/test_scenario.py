"""The schedule of the lookups follows from the scenario alone."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from loadgen.clients.schedule import due_moments
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.lookups.scenario import LookupsScenario


def scenario(**changes) -> LookupsScenario:
    namespaces = (NamespaceExpectation(name="load/ns"),)
    values = {"service_url": "pulsar://127.0.0.1:6650", "namespaces": namespaces, **changes}
    return LookupsScenario(**values)


def test_each_client_looks_up_so_often_a_second_and_in_its_turn() -> None:
    wanted = scenario(clients=2, lookups_per_second=2, lookup_seconds=1)
    assert [list(due_moments(wanted, client)) for client in (0, 1)] == [[0, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"lookups_per_second": 0}, "greater than 0"),
        ({"lookup_seconds": 0}, "greater than 0"),
        (
            {"clients": 100_000, "lookups_per_second": 1_000},
            "--lookups-per-second and --lookup-seconds make 1,000,000,000 requests",
        ),
    ],
)
def test_an_impossible_schedule_is_refused(changes: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        scenario(**changes)
