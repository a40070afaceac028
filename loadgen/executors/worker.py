"""The worker process: runs one task for :mod:`loadgen.executors.processes`."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import TYPE_CHECKING, Any

import uvloop

from loadgen.errors import LoadgenError
from loadgen.scenarios.registry import SCENARIOS, kind_of
from loadgen.tasks.task import TaskPlan

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


def agree(now_epoch_seconds: float) -> float:
    """Tell the driver that all clients are connected and wait for T0.

    Raises:
        LoadgenError: The driver has gone.
    """
    sys.stdout.write(f"CONNECTED {now_epoch_seconds!r}\n")
    sys.stdout.flush()
    word, _, t0_epoch_seconds = sys.stdin.readline().partition(" ")
    if word != "T0":
        raise LoadgenError("the driver ended before the run began")
    return float(t0_epoch_seconds)


def write_report(descriptor: int, report: bytes) -> None:
    """Write a report and its length.

    With PYTHONUNBUFFERED standard output may take only a part of it, unnoticed.
    """
    with open(descriptor, "wb", closefd=False) as out:
        out.write(f"REPORT {len(report)}\n".encode())
        out.write(report)


def main() -> None:
    """Read the plan, run it, write the report."""
    try:
        plan = read_plan(sys.stdin.readline())
        report = run_task(plan, agree, ends_early_on=signal.SIGTERM).to_bytes()
    except LoadgenError as error:
        sys.stdout.write(f"ERROR {json.dumps([str(error), error.exit_code])}\n")
        sys.exit(int(error.exit_code))
    write_report(sys.stdout.fileno(), report)


if __name__ == "__main__":
    main()
