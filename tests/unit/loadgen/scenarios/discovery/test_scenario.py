"""The requests of a document are known before the run, if its families decide that alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.scenarios.discovery.scenario import DiscoveryScenario, client_plans
from tests.unit.loadgen.scenarios.discovery.clients import NAMESPACE

STEADY = {"kind": "constant", "per_second": 1}


def scenario(*groups, **phases) -> DiscoveryScenario:
    named = [{"name": f"g{number}", **group} for number, group in enumerate(groups)]
    return DiscoveryScenario(namespaces=(NAMESPACE,), groups=named, phases=phases)


def test_those_who_ask_once_ask_for_as_much_as_was_planned():
    assert scenario({"clients": 5}, {"clients": 2, "pipelined": 10}).planned_requests == 25


def test_what_is_due_in_the_warm_up_or_after_the_end_is_not_planned():
    late = {"clients": 20, "arrivals": STEADY}
    found = scenario(late, warm_up_seconds=3, measure_seconds=4, hold_seconds=5)
    assert found.planned_requests == 9  # those of 3 s to 11 s


@pytest.mark.parametrize(
    "group",
    [
        {"family": "cpp"},
        {"repeat_seconds": 5},
        {"restart_seconds": 5},
        {"attach": 1},
        {"arrivals": {"kind": "concurrency", "clients_at_once": 1}},
    ],
)
def test_it_is_open_when_a_group_polls_asks_again_or_starts_in_turn(group):
    assert scenario({"clients": 5}, {"clients": 5, **group}).planned_requests is None


@given(
    seed=st.integers(0, 99),
    rate=st.floats(0.1, 100),
    warm_up=st.floats(0, 10),
    measure=st.floats(0.1, 20),
)
def test_every_client_is_warmed_up_planned_or_warned_of(seed, rate, warm_up, measure):
    # Given
    arrivals = {"kind": "poisson", "per_second": rate}
    wanted = scenario(
        {"clients": 30, "arrivals": arrivals}, warm_up_seconds=warm_up, measure_seconds=measure
    ).model_copy(update={"seed": seed})
    # When
    starts = [plan.start_seconds for plan in client_plans(wanted, 0, 1)]
    # Then
    early = sum(start < warm_up for start in starts)
    late = sum(start >= wanted.phases.end_seconds for start in starts)
    assert early + wanted.planned_requests + late == 30
    told = [f"group g0: {late} of 30 clients never start"] if late else []
    assert [warning.partition(": the last")[0] for warning in wanted.warnings] == told
