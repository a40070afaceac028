"""The rows of a task: what was due in the warm-up is left out, unless it was wrong; Ctrl-C."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pyarrow as pa

from loadgen.scenarios.discovery.scenario import DiscoveryScenario
from loadgen.scenarios.discovery.task import DiscoveryTask, counted
from loadgen.tasks.task import TaskPlan
from tests.unit.loadgen.scenarios.discovery.clients import NAMESPACE


def test_the_warm_up_is_left_out_unless_it_was_wrong():
    rows = pa.table(
        {
            "intended_start_seconds": [0.0, 1.0, 5.0, 6.0, None],
            "outcome": ["answered", "wrong", "answered", "refused", "unfinished"],
        }
    )
    # When
    found = counted(rows, 5.0)
    # Then
    assert found["outcome"].to_pylist() == ["wrong", "answered", "refused", "unfinished"]
    assert counted(rows, 0.0).num_rows == 5


def test_a_ctrl_c_ends_the_course_at_once():
    # Given
    groups = ({"name": "g", "clients": 1},)
    scenario = DiscoveryScenario(
        service_url="pulsar://127.0.0.1", namespaces=(NAMESPACE,), groups=groups
    )
    ended = []

    async def interrupted():
        task = DiscoveryTask(TaskPlan(scenario=scenario, task=0, tasks=1), lambda now: now)
        task._begun, task._course = True, SimpleNamespace(stop=lambda: ended.append("course"))
        task.end_early()
        task.end_early()

    # When
    asyncio.run(interrupted())
    # Then
    assert ended == ["course"]
