"""Tasks of a run in worker processes on this machine, which need neither Spark nor Java.

Each worker sends its facts to the driver over a pipe once its rows are written, or an error that
the user caused. All other messages use the control channel.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import uvloop

from loadgen.access import access_taken
from loadgen.engine.control import ControlClient
from loadgen.errors import LoadgenError
from loadgen.places.task import Task, TaskFacts, TaskPlan
from loadgen.results.tables import write_rows
from loadgen.workers import end_with_driver, signals_taken

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from loadgen.engine.control_server import ControlServer

_END_SECONDS = 5.0


def run_task(plan: TaskPlan) -> TaskFacts:
    """Run a task's clients until the run ends, and write their rows.

    Raises:
        LoadgenError: The driver or the server's name is unknown, this process may not open enough
            files, or the run's folder does not exist so that rows cannot be written.
    """
    if "://" not in plan.directory and not os.path.isdir(plan.directory):
        raise LoadgenError(
            f"{plan.directory} of the driver is not there on {socket.gethostname()}: name an --out "
            "that all hosts share, a folder or an object store"
        )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run_task(plan))


async def _run_task(plan: TaskPlan) -> TaskFacts:
    assert plan.control is not None
    control = ControlClient(plan.task, plan.control)
    try:
        carried = await control.connect()
        with (
            access_taken(carried.get("access", {})),
            patch.dict(os.environ, carried.get("store", {})),
        ):
            facts, rows = await Task(plan, control).run()
            write_rows(plan.directory, plan.run, plan.task, facts.t0_epoch_seconds, rows)
        control.end(facts.model_dump(mode="json"))
    finally:
        await control.close()
    return facts


def run_in_processes(
    plans: Sequence[TaskPlan], control: ControlServer
) -> tuple[list[TaskFacts], str]:
    """Run each task in its own process; all start at the same moment.

    After the agreed start, the first Ctrl-C requests the tasks to end.

    Returns:
        The facts of the tasks, and words on the lost tasks; empty if no task was lost.

    Raises:
        LoadgenError: A worker reported an error, or ended without a report.
    """
    handled = signal.getsignal(signal.SIGINT)

    def interrupt(number: int, frame: object) -> None:
        signal.signal(number, handled)  # A second signal ends all processes.
        if not control.agreed:
            raise KeyboardInterrupt
        control.stop()

    with ExitStack() as stack:
        workers = dict(stack.enter_context(_worker(plan)) for plan in plans)
        with signals_taken(interrupt, signal.SIGINT):
            try:
                return as_they_come(workers), ""
            except LoadgenError as error:
                facts, lost = control.rest(error)
    return [TaskFacts.model_validate(each) for each in facts], lost


def as_they_come(workers: Mapping[Connection, BaseProcess]) -> list[Any]:
    """Wait for one message from each worker process, and return all messages.

    The end of a worker without a message is noticed immediately.

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
    """Start a worker process for a ``with`` block; kill it at the end if it still runs."""
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
    """Run a task's plan in a worker process, and send the result to the driver."""
    os.setsid()  # Signals to the driver's group are the driver's to handle.
    threading.Thread(target=end_with_driver, daemon=True).start()
    with suppress(BrokenPipeError):  # The driver is gone.
        try:
            pipe.send(run_task(TaskPlan.model_validate_json(plan)))
        except LoadgenError as error:
            pipe.send(error)
