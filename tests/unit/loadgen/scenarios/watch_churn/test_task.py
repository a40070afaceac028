"""Calls are counted while a run goes on, under the names that their rows have."""

from __future__ import annotations

import asyncio
import time
from unittest.mock import AsyncMock

from client.admin.errors import AdminRefusedError, AdminTimeoutError
from loadgen.scenarios.watch_churn.churn import Churn
from loadgen.scenarios.watch_churn.scenario import Change, WatchChurnScenario
from loadgen.scenarios.watch_churn.task import WatchChurnTask
from loadgen.tasks.task import TaskPlan
from proto.names import TopicName
from tests.support.clocks.settle import settle
from tests.unit.loadgen.scenarios.watch_churn.test_churn import NAMESPACE, TOPIC


def task_of(*, deletions: list[Exception | None], stays: float = 60.0) -> WatchChurnTask:
    """Return a task that creates a topic at once and deletes it a minute later."""
    scenario = WatchChurnScenario(namespaces=(NAMESPACE,), admin_url="http://127.0.0.1:1")
    task = WatchChurnTask(TaskPlan(scenario=scenario, task=0, tasks=1), lambda now: now)
    task._admin = AsyncMock()
    task._admin.topics.delete.side_effect = deletions
    changes = [Change(0.0, TOPIC, created=True), Change(stays, TOPIC, created=False)]
    task._churns = [Churn(NAMESPACE.name, 1, changes, [])]
    task.time.agree(time.time())
    task.unfinished = 1
    return task


async def test_an_interrupted_run_ends_with_the_calls_under_way_and_deletes_what_is_left() -> None:
    # Given: the topic is being made
    task = task_of(deletions=[None])
    answer = asyncio.Event()

    async def create(topic: TopicName) -> None:
        await answer.wait()

    task._admin.topics.create.side_effect = create
    task._begun = True
    task.start()
    await settle()
    # When
    task.end_early()
    await settle()
    assert not task.all_finished.is_set()
    answer.set()
    await task.all_finished.wait()
    await task._leave_nothing()
    # Then
    task._admin.topics.delete.assert_awaited_once_with(TopicName.parse(TOPIC))
    assert [each.operation for each in task._churns[0].records(1.0)] == ["create"]


async def test_an_interrupted_run_with_no_call_under_way_ends_at_once() -> None:
    task = task_of(deletions=[None])
    task._begun = True
    task.start()
    await settle()
    task.end_early()
    await settle()
    assert task.all_finished.is_set()


async def test_what_was_deleted_or_never_made_is_not_deleted_again() -> None:
    task = task_of(deletions=[None], stays=0.0)
    task.start()
    await task.all_finished.wait()
    await task._leave_nothing()
    task._admin.topics.delete.assert_awaited_once()
    refused = task_of(deletions=[])
    refused._admin.topics.create.side_effect = AdminRefusedError(403, "no")
    churn = refused._churns[0]
    refused._begin(churn, 0, churn.changes[0])
    await refused._leave_nothing()
    refused._admin.topics.delete.assert_not_awaited()


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
