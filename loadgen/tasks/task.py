"""What every task of a run does, whatever its clients do: agree on T0, tell of progress, end.

Runs on a loop of its own, in a Spark task or in a worker process; which of them it is decides
only how T0 is agreed.
"""

from __future__ import annotations

import asyncio
import gc
import time
from abc import abstractmethod
from typing import TYPE_CHECKING

from limiter.clock import LoopClock
from loadgen.clients.context import StormTime
from loadgen.clients.counters import StormCounters
from loadgen.tasks.progress import REPORT_SECONDS, ProgressSender

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.records import TaskReport
    from loadgen.tasks.plan import TaskPlan

# Below the smallest listen backlog in use (128), so that no SYN is dropped and sent again a
# second later.
CONNECTING_AT_ONCE = 64


class TaskFrame:
    """Mutable state: how many clients are not done, and whether the run was interrupted.

    Args:
        plan: The task's share.
        agree: Called once all clients are connected, in a thread of its own, with the wall
            clock; returns the T0 that all tasks agree on, in seconds of the epoch.
    """

    def __init__(self, plan: TaskPlan, agree: Callable[[float], float]) -> None:
        self.plan = plan
        self.counters = StormCounters()
        self.time = StormTime()
        self.unfinished = 0
        self.interrupted = False
        self.all_finished = asyncio.Event()
        self._agree = agree
        self._progress = ProgressSender(plan.task, plan.progress_address)

    async def run(self) -> TaskReport:
        """Connect, agree, let the clients do their part, and report.

        Raises:
            LoadgenError: The server's name is unknown, or this process may not open enough files.
        """
        self._report_progress()
        try:
            await self.connect_all()
            t0_epoch_seconds = await self._agree_on_t0()
            if not self.interrupted:
                self.start()
            if self.unfinished:
                await self.all_finished.wait()
        finally:
            self._end()
        return self.report(t0_epoch_seconds)

    @abstractmethod
    async def connect_all(self) -> None:
        """Connect every client of the task."""

    @abstractmethod
    def start(self) -> None:
        """Begin; T0 may be in the future."""

    @abstractmethod
    def close_all(self) -> None:
        """Let every client leave."""

    @abstractmethod
    def report(self, t0_epoch_seconds: float) -> TaskReport:
        """Describe what the clients met."""

    def client_finished(self) -> None:
        """Count a client that has nothing more to do."""
        self.unfinished -= 1
        if self.unfinished == 0:
            self.all_finished.set()

    def end_early(self) -> None:
        """Leave out of the report what has not ended."""
        self.interrupted = True
        self.all_finished.set()

    async def _agree_on_t0(self) -> float:
        # Garbage collection of what exists by now would stop the loop at the wrong moment.
        gc.collect()
        gc.freeze()
        t0_epoch_seconds = await asyncio.to_thread(self._agree, time.time())
        self.time.agree(t0_epoch_seconds)
        return t0_epoch_seconds

    def _report_progress(self) -> None:
        self._progress.send(self.counters)
        clock = LoopClock()
        if not self.all_finished.is_set():
            clock.call_at(clock.now() + REPORT_SECONDS, self._report_progress)

    def _end(self) -> None:
        self.all_finished.set()
        self.close_all()
        self._progress.send(self.counters)
        self._progress.close()
        gc.unfreeze()
