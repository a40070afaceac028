"""Runs one task of any scenario on a loop of its own."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import uvloop

from loadgen.scenarios.registry import SCENARIOS, kind_of
from loadgen.tasks.plan import TaskPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.records import TaskReport


def read_plan(text: str) -> TaskPlan[Any]:
    """Return the plan that was written as JSON."""
    model = SCENARIOS[json.loads(text)["scenario"]["kind"]].model
    return TaskPlan[model].model_validate_json(text)  # type: ignore[valid-type]


def run_task(
    plan: TaskPlan[Any], agree: Callable[[float], float], ends_early_on: int | None = None
) -> TaskReport:
    """Run one task's clients to their end.

    Args:
        plan: The scenario, and the task's share of it.
        agree: Called once all clients are connected, in a thread of its own, with the wall
            clock; returns the T0 that all tasks agree on, in seconds of the epoch.
        ends_early_on: Number of the signal that makes it report what has ended by then.

    Raises:
        LoadgenError: The server's name is unknown, or this process may not open enough files.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        loop = runner.get_loop()
        task = kind_of(plan.scenario).new_task(plan, agree)
        if ends_early_on is not None:
            loop.add_signal_handler(ends_early_on, task.end_early)
        return runner.run(task.run())
