"""Runs tasks in worker processes: no Spark and no Java, the same schedule.

The driver and each worker talk over the worker's standard input and output: the plan goes in as
one line of JSON, ``CONNECTED <clock>`` comes back, ``T0 <clock>`` goes in, and the report comes
back behind its length. ``ERROR <sentence and exit code>`` comes instead of an expected failure.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Any

from loadgen.clients.records import TaskReport
from loadgen.errors import ExitCode, LoadgenError
from loadgen.servers.processes import python_path
from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.tasks.task import TaskPlan

# From the last "connected" to T0: time enough for the message to reach every worker.
LEAD_SECONDS = 0.5
_WORKER = module_name("loadgen.executors.worker")
_END_SECONDS = 5.0


class ExecutorKind(StrEnum):
    """The places where topics are made and clients run."""

    SPARK = "spark"
    PROCESS = "process"


class RunExecutor(StrEnum):
    """The places where clients run: also in virtual time, servers and all."""

    SPARK = "spark"
    PROCESS = "process"
    VIRTUAL = "virtual"


def run_in_processes(plans: Sequence[TaskPlan[Any]]) -> list[TaskReport]:
    """Run each plan in a process of its own, all with the same T0.

    Once it has begun, the first Ctrl-C makes the workers report the requests that have ended.

    Raises:
        LoadgenError: A worker says why it cannot run its plan, or ended without a word; then the
            message is its last line of error output.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(_Worker(plan)) for plan in plans]
        connected_at = [worker.connected_at() for worker in workers]
        t0_epoch_seconds = max(connected_at) + LEAD_SECONDS
        for worker in workers:
            worker.start_at(t0_epoch_seconds)
        with _interrupt_ends_early(workers):
            return [worker.report() for worker in workers]


@contextmanager
def _interrupt_ends_early(workers: Sequence[_Worker]) -> Iterator[None]:
    """Let the first Ctrl-C ask the workers for their reports; a second one ends everything."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)

    def end_early(number: int, frame: object) -> None:
        del number, frame
        signal.signal(signal.SIGINT, handler)
        for worker in workers:
            worker.end_early()

    signal.signal(signal.SIGINT, end_early)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


class _Worker:
    """One worker process; ended with the ``with`` block in any case."""

    def __init__(self, plan: TaskPlan[Any]) -> None:
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
        self._write(self._plan.model_dump_json())
        return self

    def __exit__(self, *exc: object) -> None:
        self._pipe(self._process.stdin).close()
        try:
            self._process.wait(_END_SECONDS if exc[0] is None else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._pipe(self._process.stdout).close()
        self._errors.close()

    def connected_at(self) -> float:
        return float(self._read("CONNECTED"))

    def start_at(self, t0_epoch_seconds: float) -> None:
        self._write(f"T0 {t0_epoch_seconds!r}")

    def end_early(self) -> None:
        self._process.terminate()

    def report(self) -> TaskReport:
        size_bytes = int(self._read("REPORT"))
        data = self._pipe(self._process.stdout).read(size_bytes)
        if len(data) < size_bytes:
            raise self._failure()
        return TaskReport.from_bytes(data)

    def _write(self, line: str) -> None:
        try:
            pipe = self._pipe(self._process.stdin)
            pipe.write(f"{line}\n".encode())
            pipe.flush()
        except BrokenPipeError:
            raise self._failure() from None

    def _read(self, word: str) -> str:
        first, _, rest = self._pipe(self._process.stdout).readline().decode().partition(" ")
        if first == "ERROR":
            sentence, exit_code = json.loads(rest)
            raise LoadgenError(sentence, ExitCode(exit_code))
        if first != word:
            raise self._failure()
        return rest

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe

    def _failure(self) -> LoadgenError:
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        said = lines[-1] if lines else f"exit code {self._process.returncode}"
        return LoadgenError(f"worker process {self._plan.task} ended without a report: {said}")
