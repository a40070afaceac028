"""One task's share of a storm: connect all its clients, agree on T0, start them, collect rows.

Runs on a loop of its own, in a Spark task or in a worker process; which of them it is decides
only how T0 is agreed.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING

import uvloop
from pydantic import BaseModel, ConfigDict

from limiter.clock import LoopClock
from loadgen.answers import AnswerChecker
from loadgen.connecting import (
    ServerAddress,
    connect,
    connect_failure,
    raise_open_file_limit,
    resolve,
)
from loadgen.live import REPORT_SECONDS, ProgressSender, StormCounters
from loadgen.scenario import ClientPlan, StormScenario, client_plans
from loadgen.storm import ConnectFailedError, StormClient
from loadgen.storm_context import StormContext
from loadgen.task_report import TaskFacts, TaskReport, report_rows

if TYPE_CHECKING:
    from collections.abc import Callable

# Below the smallest listen backlog in use (128), so that no SYN is dropped and sent again a
# second later.
_CONNECTING_AT_ONCE = 64


class TaskPlan(BaseModel):
    """What a task has to know; travels as JSON.

    Attributes:
        scenario: The whole storm.
        task: Number of this task, from 0.
        tasks: Number of tasks.
        loopback: Whether the server is on the loopback.
        progress_address: Where totals are sent once a second, or None.
        attempt: How often this task was started before.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: StormScenario
    task: int
    tasks: int
    loopback: bool = True
    progress_address: tuple[str, int] | None = None
    attempt: int = 0


def run_task(
    plan: TaskPlan, agree: Callable[[float], float], ends_early_on: int | None = None
) -> TaskReport:
    """Run one task's clients to their end.

    Args:
        plan: The task's share.
        agree: Called once all clients are connected, in a thread of its own, with the wall
            clock; returns the T0 that all tasks agree on, in seconds of the epoch.
        ends_early_on: Number of the signal that makes it report what has ended by then.

    Raises:
        LoadgenError: The server's name is unknown, or this process may not open enough files.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        task = _StormTask(plan, agree)
        if ends_early_on is not None:
            runner.get_loop().add_signal_handler(ends_early_on, task.end_early)
        return runner.run(task.run())


class _StormTask:
    """Mutable state: the clients, those that could not connect, and how many are not done."""

    def __init__(self, plan: TaskPlan, agree: Callable[[float], float]) -> None:
        self._plan = plan
        self._agree = agree
        self._counters = StormCounters()
        self._context = StormContext(
            plan.scenario,
            AnswerChecker(filtered=plan.scenario.pattern is not None),
            self._counters,
            self._client_finished,
        )
        self._clients: list[StormClient] = []
        self._unreachable: list[tuple[StormClient, str, float]] = []
        self._unfinished = 0
        self._start_error_seconds = 0.0
        self._interrupted = False
        self._all_finished = asyncio.Event()
        self._progress = ProgressSender(plan.task, plan.progress_address)

    async def run(self) -> TaskReport:
        plans = list(
            client_plans(
                self._plan.scenario,
                self._plan.task,
                self._plan.tasks,
                loopback=self._plan.loopback,
            )
        )
        raise_open_file_limit(len(plans))
        self._unfinished = len(plans)
        self._report_progress()
        try:
            await self._connect_all(plans)
            t0_epoch_seconds = await self._agree_on_t0()
            if not self._interrupted:
                self._start()
            if self._unfinished:
                await self._all_finished.wait()
        finally:
            self._end()
        return self._report(t0_epoch_seconds)

    def end_early(self) -> None:
        """Leave out of the report what has not ended."""
        self._interrupted = True
        self._all_finished.set()

    async def _connect_all(self, plans: list[ClientPlan]) -> None:
        address = await resolve(self._plan.scenario)
        places = asyncio.Semaphore(_CONNECTING_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for plan in plans:
                client = StormClient(plan, self._context)
                self._clients.append(client)
                await places.acquire()
                group.create_task(self._connect(client, address, places))

    async def _connect(
        self, client: StormClient, address: ServerAddress, places: asyncio.Semaphore
    ) -> None:
        try:
            await connect(client, address, self._plan.scenario.receive_buffer_bytes)
        except (OSError, ConnectFailedError) as error:
            failed_at = self._context.time.monotonic()
            self._unreachable.append((client, connect_failure(error), failed_at))
        finally:
            places.release()

    async def _agree_on_t0(self) -> float:
        # Garbage collection of what exists by now would stop the loop at the wrong moment.
        gc.collect()
        gc.freeze()
        t0_epoch_seconds = await asyncio.to_thread(self._agree, time.time())
        self._context.time.agree(t0_epoch_seconds)
        return t0_epoch_seconds

    def _start(self) -> None:
        lost = set()
        for client, reason, failed_at in self._unreachable:
            lost.add(client.plan.client)
            client.unreachable(reason, failed_at - self._context.time.t0)
        waiting = [client for client in self._clients if client.plan.client not in lost]
        waiting.sort(key=lambda client: client.plan.intended_start_seconds, reverse=True)
        self._start_due(waiting)

    def _start_due(self, waiting: list[StormClient]) -> None:
        """Start those whose moment has come; ``waiting`` ends with the next one."""
        context = self._context
        while waiting:
            late_seconds = context.time.seconds() - waiting[-1].plan.intended_start_seconds
            if late_seconds < 0:
                context.clock.call_at(context.clock.now() - late_seconds, self._start_due, waiting)
                return
            self._start_error_seconds = max(self._start_error_seconds, late_seconds)
            moment = waiting[-1].plan.intended_start_seconds
            while waiting and waiting[-1].plan.intended_start_seconds == moment:
                waiting.pop().begin()

    def _client_finished(self) -> None:
        self._unfinished -= 1
        if self._unfinished == 0:
            self._all_finished.set()

    def _report_progress(self) -> None:
        self._progress.send(self._counters)
        clock = LoopClock()
        if not self._all_finished.is_set():
            clock.call_at(clock.now() + REPORT_SECONDS, self._report_progress)

    def _end(self) -> None:
        self._all_finished.set()
        for client in self._clients:
            client.close()
        self._progress.send(self._counters)
        self._progress.close()
        gc.unfreeze()

    def _report(self, t0_epoch_seconds: float) -> TaskReport:
        records = [
            record
            for client in self._clients
            for record in client.records
            if record.outcome is not None or not self._interrupted
        ]
        facts = TaskFacts(
            task=self._plan.task,
            clients=len(self._clients),
            start_error_seconds=self._start_error_seconds,
            client_start_error_seconds=max(
                (client.start_error_seconds for client in self._clients), default=0.0
            ),
            t0_epoch_seconds=t0_epoch_seconds,
            attempt=self._plan.attempt,
            interrupted=self._interrupted,
        )
        return TaskReport(report_rows(self._plan.task, records), facts)
