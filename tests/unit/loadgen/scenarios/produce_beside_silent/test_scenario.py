"""The scenario beside silent clients as a value."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario
from loadgen.stuck_peers.scenario import peer_plans


def scenario(**changes) -> SilentScenario:
    namespaces = (NamespaceExpectation(name="load/ns"),)
    values = {"service_url": "pulsar://127.0.0.1:6650", "namespaces": namespaces, **changes}
    return SilentScenario(**values)


def test_silent_clients_are_shared_out_among_the_tasks() -> None:
    wanted = scenario(silent_producers=2, silent_consumers=3)
    found = [[plan.client for plan in peer_plans(wanted, task, 2)] for task in (0, 1)]
    assert found == [[0, 2, 4], [1, 3]]
    assert wanted.connections == 4 + 5


def test_silent_clients_leave_when_their_time_is_over() -> None:
    assert scenario().peers.until_seconds is None
    assert scenario(silent_at_seconds=1, silent_seconds=2).peers.until_seconds == 3


def test_silent_clients_that_begin_behind_the_end_are_refused() -> None:
    with pytest.raises(ValidationError, match="--silent-at-seconds 20 is not before the end"):
        scenario(silent_at_seconds=20)
