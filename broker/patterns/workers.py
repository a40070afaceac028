"""Such a pattern may run forever on one name, and only the end of the process stops the match."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from broker.patterns.worker import TOOK, pack_job
from server.tasks.worker_processes import MAX_WORKERS, WorkerProcess, WorkerProcesses

if TYPE_CHECKING:
    import pyarrow as pa

    from broker.topic_lists.block import Mask

_SCRIPT = str(Path(__file__).with_name("worker.py"))


class PatternWorker(WorkerProcess):
    """A process for one evaluation at a time."""

    called = "pattern worker"

    async def matching(
        self, pattern: str, paths: pa.StringArray, seconds: float
    ) -> tuple[Mask, float]:
        """Match each path; return the matches and the processor time.

        Args:
            pattern: A pattern already compiled by a backtracking engine.
            paths: An unsliced text column.
            seconds: Limit of processor time.

        Raises:
            TimeoutError: The time was up.
            WorkerFailedError: The process has ended.
        """
        answer = await self.ask(_job(pattern, paths, seconds))
        mask = np.frombuffer(answer, np.bool_, offset=TOOK.size)
        if len(mask) != len(paths):
            raise TimeoutError
        return mask, TOOK.unpack_from(answer)[0]


def _job(pattern: str, paths: pa.StringArray, seconds: float) -> bytes:
    _, offsets, data = paths.buffers()
    ends = np.frombuffer(offsets, np.int32, len(paths) + 1)
    names = data.to_pybytes()[: ends[-1]] if data is not None else b""
    return pack_job(seconds, pattern, len(paths), ends.tobytes(), names)


class PatternWorkers(WorkerProcesses[PatternWorker]):
    """The processes of a broker: ``async with PatternWorkers()``. See WorkerProcesses."""

    def __init__(self, max_workers: int = MAX_WORKERS) -> None:
        # Isolated (-I): with PYTHONUNBUFFERED, an answer might be written incompletely.
        super().__init__((sys.executable, "-I", _SCRIPT), PatternWorker, max_workers)
