"""Runs tasks in worker processes: no Spark and no Java, the same schedule.

The driver and each worker, which is this module run as a program, talk over the worker's standard
input and output: the plan goes in as one line of JSON, ``CONNECTED <clock>`` comes back, ``T0
<clock>`` goes in, and ``FACTS <JSON>`` comes back once the task has written its rows. ``ERROR
<sentence and exit code>`` comes instead of an expected failure.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import AbstractContextManager, ExitStack
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

import uvloop

from loadgen.errors import ExitCode, LoadgenError
from loadgen.places.server_process import signals_taken
from loadgen.places.task import Task, TaskFacts, TaskPlan, TaskResult
from loadgen.results.tables import write_rows
from server.module_names import module_name, python_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEAD_SECONDS = 0.5
"""From the last "connected" to the start: time enough for the message to reach every worker."""
_WORKER = module_name("loadgen.places.processes")
_END_SECONDS = 5.0


def run_task(
    plan: TaskPlan, agree: Callable[[float], float], ends_early_on: int | None = None
) -> TaskFacts:
    """Run one task's clients to their end, and write its rows.

    Args:
        plan: Its share of the run.
        agree: See Task.
        ends_early_on: Number of the signal at which it begins nothing new.

    Raises:
        LoadgenError: The server's name is unknown, this process may not open enough files, or the
            rows cannot be written.
    """

    async def run() -> TaskResult:
        task = Task(plan, agree)
        if ends_early_on is not None:
            asyncio.get_running_loop().add_signal_handler(ends_early_on, task.interrupt)
        return await task.run()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        facts, rows = runner.run(run())
    try:
        write_rows(plan.directory, plan.run, plan.task, facts.t0_epoch_seconds, rows)
    except OSError as error:
        raise LoadgenError(f"the run cannot be written to {plan.directory}: {error}") from error
    return facts


# -- the driver's side ----------------------------------------------------------------------------


def run_in_processes(plans: Sequence[TaskPlan]) -> list[TaskFacts]:
    """Run each plan in a process of its own, all with the same start.

    Once it has begun, the first Ctrl-C makes the workers end, with what has ended by then.

    Raises:
        LoadgenError: A worker says why it cannot run its plan, or ended without a word; then the
            message is its last line of error output.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(_Worker(plan)) for plan in plans]
        connected_at = as_they_come(workers, _Worker.connected_at)
        t0_epoch_seconds = max(connected_at) + LEAD_SECONDS
        for worker in workers:
            worker.start_at(t0_epoch_seconds)
        with _interrupt_ends_early(workers):
            return as_they_come(workers, _Worker.facts)


def as_they_come(workers: Sequence[Any], read: Callable[[Any], Any]) -> list[Any]:
    """Return what each worker says, read as it comes: that one has died is known at once."""
    found: dict[Any, Any] = {}
    while len(found) < len(workers):
        for worker in wait([each for each in workers if each not in found]):
            found[worker] = read(worker)
    return [found[worker] for worker in workers]


def _interrupt_ends_early(workers: Sequence[_Worker]) -> AbstractContextManager[None]:
    """Let the first Ctrl-C ask the workers to end; a second one ends everything."""
    handled = signal.getsignal(signal.SIGINT)

    def end_early(number: int, frame: object) -> None:
        del number, frame
        signal.signal(signal.SIGINT, handled)
        for worker in workers:
            worker.end_early()

    return signals_taken(end_early, signal.SIGINT)


class _Worker:
    """One worker process; ended with the ``with`` block in any case."""

    def __init__(self, plan: TaskPlan) -> None:
        self._plan = plan

    def __enter__(self) -> _Worker:
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **python_path()},
            process_group=0,  # Ctrl-C in a terminal reaches the driver alone, which decides
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._told, self._says = self._process.stdin, self._process.stdout
        self._write(self._plan.model_dump_json(by_alias=True))
        return self

    def __exit__(self, *exc: object) -> None:
        self._told.close()
        try:
            self._process.wait(_END_SECONDS if exc[0] is None else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._says.close()
        self._errors.close()

    def fileno(self) -> int:
        return self._says.fileno()

    def connected_at(self) -> float:
        return float(self._read("CONNECTED"))

    def start_at(self, t0_epoch_seconds: float) -> None:
        self._write(f"T0 {t0_epoch_seconds!r}")

    def end_early(self) -> None:
        self._process.terminate()

    def facts(self) -> TaskFacts:
        return TaskFacts.model_validate_json(self._read("FACTS"))

    def _write(self, line: str) -> None:
        try:
            self._told.write(f"{line}\n".encode())
            self._told.flush()
        except BrokenPipeError:
            raise self._failure() from None

    def _read(self, word: str) -> str:
        first, _, rest = self._says.readline().decode().partition(" ")
        if first == "ERROR":
            sentence, exit_code = json.loads(rest)
            raise LoadgenError(sentence, ExitCode(exit_code))
        if first != word or not rest.endswith("\n"):
            raise self._failure()
        return rest

    def _failure(self) -> LoadgenError:
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        said = lines[-1] if lines else f"exit code {self._process.returncode}"
        return LoadgenError(f"worker process {self._plan.task} ended without a report: {said}")


# -- the worker's side ----------------------------------------------------------------------------


def _agree(now_epoch_seconds: float) -> float:
    """Tell the driver that all clients are connected and wait for the start.

    Raises:
        LoadgenError: The driver has gone.
    """
    _say(f"CONNECTED {now_epoch_seconds!r}")
    word, _, t0_epoch_seconds = sys.stdin.readline().partition(" ")
    if word != "T0":
        raise LoadgenError("the driver ended before the run began")
    return float(t0_epoch_seconds)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Read the plan, run it, tell of it."""
    try:
        plan = TaskPlan.model_validate_json(sys.stdin.readline())
        facts = run_task(plan, _agree, ends_early_on=signal.SIGTERM)
        _say(f"FACTS {facts.model_dump_json()}")
    except LoadgenError as error:
        _say(f"ERROR {json.dumps([str(error), error.exit_code])}")
        sys.exit(int(error.exit_code))


if __name__ == "__main__":
    main()
