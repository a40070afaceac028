"""Calls are counted while a run goes on, under the names that their rows have."""

from __future__ import annotations

from unittest.mock import AsyncMock

from client.admin.errors import AdminTimeoutError
from loadgen.scenarios.watch_churn.churn import Churn
from loadgen.scenarios.watch_churn.scenario import Change, WatchChurnScenario
from loadgen.scenarios.watch_churn.task import WatchChurnTask
from loadgen.tasks.task import TaskPlan
from tests.unit.loadgen.scenarios.watch_churn.test_churn import NAMESPACE, TOPIC


async def test_each_call_is_counted_as_what_it_was() -> None:
    # Given
    scenario = WatchChurnScenario(namespaces=(NAMESPACE,), admin_url="http://127.0.0.1:1")
    task = WatchChurnTask(TaskPlan(scenario=scenario, task=0, tasks=1), lambda now: now)
    task._admin = AsyncMock()
    task._admin.topics.delete.side_effect = AdminTimeoutError("no answer")
    changes = [Change(0.0, TOPIC, created=each) for each in (True, False)]
    churn = Churn(NAMESPACE.name, 1, changes, [])
    # When
    for number, change in enumerate(changes):
        await task._change(churn, number, change, None)
    # Then
    counters = task.context.counters
    assert counters.ended == {"create.answered": 1, "delete.timeout": 1}
    assert sum(counters.latencies) == 1
    assert [each.operation for each in churn.records(1.0)] == ["create", "delete"]
