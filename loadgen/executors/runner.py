"""Runs one task of any scenario on a loop of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import uvloop

from loadgen.scenario import StormScenario
from loadgen.scenarios.storm.task import StormTask
from loadgen.scenarios.stuck.task import StuckTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.records import TaskReport
    from loadgen.tasks.plan import TaskPlan
    from loadgen.tasks.task import TaskFrame


def run_task(
    plan: TaskPlan, agree: Callable[[float], float], ends_early_on: int | None = None
) -> TaskReport:
    """Run one task's clients to their end.

    Args:
        plan: The task's share.
        agree: Called once all clients are connected, in a thread of its own, with the wall
            clock; returns the T0 that all tasks agree on, in seconds of the epoch.
        ends_early_on: Number of the signal that makes it report what has ended by then.

    Raises:
        LoadgenError: The server's name is unknown, or this process may not open enough files.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        task = _task_of(plan, agree)
        if ends_early_on is not None:
            runner.get_loop().add_signal_handler(ends_early_on, task.end_early)
        return runner.run(task.run())


def _task_of(plan: TaskPlan, agree: Callable[[float], float]) -> TaskFrame:
    scenario = plan.scenario
    if isinstance(scenario, StormScenario):
        return StormTask(plan, scenario, agree)
    return StuckTask(plan, scenario, agree)
