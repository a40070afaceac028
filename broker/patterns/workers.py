"""The processes that match patterns only a backtracking engine can compile.

Such a pattern may take for ever on one name, and nothing but the end of its process stops it. So
each evaluation has a process for itself, which is ended when its time is up or nobody waits for
it any more; the event loop and its interpreter do nothing for it but pass bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from broker.patterns.worker import LENGTH, pack_job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType
    from typing import Self

    import pyarrow as pa

    from broker.topic_lists.block import Mask

MAX_WORKERS = 2
"""Evaluations at a time; others wait for their turn."""
_SCRIPT = str(Path(__file__).with_name("worker.py"))


class WorkerFailedError(Exception):
    """A process ended in the middle of its work, or could not be started."""


class PatternWorker:
    """One process, for one evaluation at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._idle = True

    @property
    def usable(self) -> bool:
        """True while it waits for the next job."""
        return self._idle and not self.is_gone

    @property
    def is_gone(self) -> bool:
        """True if the process has ended."""
        return self._process.returncode is not None

    async def matching(self, pattern: str, paths: pa.StringArray, seconds: float) -> Mask | None:
        """Tell of each path whether it matches; None if the time was up.

        Args:
            pattern: One that a backtracking engine compiled before.
            paths: A text column that is no slice.
            seconds: The time limit.

        Raises:
            WorkerFailedError: The process has ended.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise WorkerFailedError("a pattern worker has no pipes")
        self._idle = False
        _, offsets, data = paths.buffers()
        ends = np.frombuffer(offsets, np.int32, len(paths) + 1)
        names = data.to_pybytes()[: ends[-1]] if data is not None else b""
        try:
            stdin.write(pack_job(seconds, pattern, len(paths), ends.tobytes(), names))
            await stdin.drain()
            size = LENGTH.unpack(await stdout.readexactly(LENGTH.size))[0]
            answer = await stdout.readexactly(size)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise WorkerFailedError(f"a pattern worker ended: {error}") from None
        self._idle = True
        return np.frombuffer(answer, np.bool_) if size == len(paths) else None

    def end(self) -> None:
        """End the process at once. Idempotent."""
        if not self.is_gone:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def gone(self) -> None:
        """Wait until the process is gone."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()


class PatternWorkers:
    """Up to MAX_WORKERS processes, started when first needed: ``async with PatternWorkers()``.

    Bound: evaluations beyond that wait in the order of asking.
    """

    def __init__(self, max_workers: int = MAX_WORKERS) -> None:
        self._places = asyncio.Semaphore(max_workers)
        self._spare: list[PatternWorker] = []
        self._all: set[PatternWorker] = set()
        self._ending: set[PatternWorker] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all processes at once. Idempotent."""
        for worker in self._all:
            worker.end()
        for worker in self._all | self._ending:
            await worker.gone()
        self._all, self._ending, self._spare = set(), set(), []

    @contextlib.asynccontextmanager
    async def worker(self) -> AsyncIterator[PatternWorker]:
        """Lend a process for a block; it is ended if it has not finished its work.

        Raises:
            WorkerFailedError: It cannot be started.
        """
        async with self._places:
            worker = self._spare.pop() if self._spare else await self._started()
            if not worker.usable:
                self._take_back(worker)
                worker = await self._started()
            try:
                yield worker
            finally:
                self._take_back(worker)

    def _take_back(self, worker: PatternWorker) -> None:
        if worker.usable:
            self._spare.append(worker)
        else:
            self._all.discard(worker)
            worker.end()
            self._ending = {one for one in self._ending if not one.is_gone} | {worker}

    async def _started(self) -> PatternWorker:
        try:
            # Of a session of its own: a Ctrl-C is for the broker, which then ends it. Isolated
            # (-I): with PYTHONUNBUFFERED, an answer might be written only in part.
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", _SCRIPT, stdin=PIPE, stdout=PIPE, start_new_session=True
            )
        except OSError as error:
            raise WorkerFailedError(f"no pattern worker can be started: {error}") from None
        worker = PatternWorker(process)
        self._all.add(worker)
        return worker
