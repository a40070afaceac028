"""Processes for long work."""

import os
import sys

from server.tasks.worker_processes import (
    MOST_NICENESS,
    NICENESS,
    ChildProcess,
    WorkerProcess,
    WorkerProcesses,
)


class _Worker(WorkerProcess):
    def __init__(self, process: ChildProcess) -> None:
        super().__init__(process)
        self.pid = process.pid


async def test_a_worker_process_has_a_lower_priority_than_the_server() -> None:
    async with (
        WorkerProcesses((sys.executable, "-c", "input()"), _Worker) as workers,
        workers.worker() as worker,
    ):
        own = max(os.getpriority(os.PRIO_PROCESS, 0), 0)
        given = os.getpriority(os.PRIO_PROCESS, worker.pid)
        assert given == min(own + NICENESS, MOST_NICENESS)
