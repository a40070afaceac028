"""Runs tasks in worker processes: no Spark and no Java, the same schedule.

The driver and each worker talk over a pipe: the worker says what its clock was when all of its
clients were connected, is told the start, and says its facts once it has written its rows; or,
instead of either, the error that the user made.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

import uvloop

from loadgen.errors import ExitCode, LoadgenError
from loadgen.places.server_process import signals_taken
from loadgen.places.task import Task, TaskFacts, TaskPlan
from loadgen.results.tables import write_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

LEAD_SECONDS = 0.5
"""From the last "connected" to the start: time enough for the message to reach every worker."""
_END_SECONDS = 5.0


def run_task(plan: TaskPlan, agree: Callable[[float], float]) -> TaskFacts:
    """Run one task's clients to their end, and write its rows.

    Args:
        plan: Its share of the run.
        agree: See Task.

    Raises:
        LoadgenError: The server's name is unknown, this process may not open enough files, or the
            rows cannot be written.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        facts, rows = runner.run(Task(plan, agree).run())
    try:
        write_rows(plan.directory, plan.run, plan.task, facts.t0_epoch_seconds, rows)
    except OSError as error:
        raise LoadgenError(f"the run cannot be written to {plan.directory}: {error}") from error
    return facts


def run_in_processes(plans: Sequence[TaskPlan], end_early: Callable[[], None]) -> list[TaskFacts]:
    """Run each plan in a process of its own, all with the same start.

    Once it has begun, the first Ctrl-C calls ``end_early``, which asks the tasks to end.

    Raises:
        LoadgenError: A worker says why it cannot run its plan, or ended without a word.
    """
    handled = signal.getsignal(signal.SIGINT)

    def interrupt(number: int, frame: object) -> None:
        signal.signal(number, handled)  # A second one ends everything.
        end_early()

    with ExitStack() as stack:
        workers = dict(stack.enter_context(_worker(plan)) for plan in plans)
        t0_epoch_seconds = max(as_they_come(workers)) + LEAD_SECONDS
        for pipe in workers:
            with suppress(OSError):  # One that has died meanwhile is heard of below.
                pipe.send(t0_epoch_seconds)
        with signals_taken(interrupt, signal.SIGINT):
            return as_they_come(workers)


def as_they_come(workers: Mapping[Connection, BaseProcess]) -> list[Any]:
    """Return each worker's message; a worker's death is noticed at once.

    Raises:
        LoadgenError: A worker sent an error, or ended without a report.
    """
    said: dict[Any, Any] = {}
    while silent := workers.keys() - said.keys():
        for pipe in silent.intersection(wait([*silent])):
            process = workers[pipe]
            try:
                said[pipe] = pipe.recv()
            except (EOFError, OSError):
                process.join()
                code = process.exitcode
                sentence = f"{process.name} ended without a report: exit code {code}"
                raise LoadgenError(sentence) from None
            if isinstance(said[pipe], LoadgenError):
                raise said[pipe]
    return [said[pipe] for pipe in workers]


@contextmanager
def _worker(plan: TaskPlan) -> Iterator[tuple[Connection, BaseProcess]]:
    """Start a worker process, which ends with the block in any case."""
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(
        target=_work,
        args=(plan.model_dump_json(by_alias=True), theirs),
        name=f"worker process {plan.task}",
    )
    try:
        # Ctrl-C in a terminal reaches the worker too: the driver alone decides.
        with signals_taken(signal.SIG_IGN, signal.SIGINT):
            process.start()
        theirs.close()
        yield ours, process
        process.join(_END_SECONDS)
    except BrokenPipeError:
        raise LoadgenError(f"{process.name} ended while it started") from None
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        ours.close()


def _work(plan: str, pipe: Connection) -> None:
    """Run a plan in a worker process, and send the result to the driver."""
    os.setsid()  # A signal to the driver's group is the driver's to handle.
    threading.Thread(target=end_with_driver, daemon=True).start()

    def agree(now_epoch_seconds: float) -> float:
        pipe.send(now_epoch_seconds)
        t0_epoch_seconds: float = pipe.recv()
        return t0_epoch_seconds

    try:
        pipe.send(run_task(TaskPlan.model_validate_json(plan), agree))
    except LoadgenError as error:
        pipe.send(error)
    except EOFError:
        return  # The driver has gone.


def end_with_driver() -> None:
    """Wait, in a worker process, until the driver has died; then end, and report to nobody."""
    driver = parent_process()
    assert driver is not None
    driver.join()
    os._exit(ExitCode.INTERRUPTED)
