"""The frame of every task: connect, agree on T0, report progress, end.

A task runs on a loop of its own, in a Spark task or in a worker process; which of them it is
decides only how T0 is agreed.
"""

from __future__ import annotations

import asyncio
import gc
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, SerializeAsAny

from loadgen.clients.context import ClientContext
from loadgen.clients.records import RequestCounters, TaskFacts, TaskReport, report_rows
from loadgen.scenario import Scenario
from loadgen.tasks.ground import SOCKETS, Ground
from loadgen.tasks.progress import REPORT_SECONDS, ProgressSender
from loadgen.tasks.task_watch import TaskWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.clients.records import RequestRecord


DRAIN_SECONDS = 5.0

ScenarioT = TypeVar("ScenarioT", bound=Scenario)


class TaskPlan(BaseModel, Generic[ScenarioT]):
    """The instructions for one task; they travel as JSON.

    Attributes:
        task: Its number, from 0.
        loopback: Whether the server is on the loopback.
        progress_address: Where totals are sent once a second, or None.
        drain_seconds: How long requests under way may take when the run is to end early.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: SerializeAsAny[ScenarioT]
    task: int
    tasks: int
    loopback: bool = True
    progress_address: tuple[str, int] | None = None
    drain_seconds: float = DRAIN_SECONDS


class TaskClient(Protocol):
    """The part of a client that every task needs."""

    @property
    def connections_lost(self) -> int: ...  # noqa: D102
    @property
    def records(self) -> list[RequestRecord]: ...  # noqa: D102
    @property
    def start_error_seconds(self) -> float: ...  # noqa: D102
    def begin(self) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class ScenarioTask(Generic[ScenarioT]):
    """A task. Mutable state: how many clients are not done, and whether it was interrupted.

    Args:
        plan: The scenario, and the task's share of it.
        agree: Called once all clients are connected, in a thread of its own, with the wall
            clock; returns the T0 that all tasks agree on, in seconds of the epoch.
        ground: Its time, and its ways to a server.
    """

    def __init__(
        self,
        plan: TaskPlan[ScenarioT],
        agree: Callable[[float], float],
        ground: Ground = SOCKETS,
    ) -> None:
        self.plan = plan
        self.scenario = plan.scenario
        self.ground = ground
        self.context = ClientContext(
            plan.scenario,
            RequestCounters(),
            self.client_finished,
            ground.new_time(),
            ground.clock,
        )
        self.time = self.context.time
        self.clients: Sequence[TaskClient] = ()
        self.start_error_seconds = 0.0  # how late the task itself began
        self.unfinished = 0
        self.interrupted = False
        self._begun = False
        self.all_finished = asyncio.Event()
        self._agree = agree
        self._watch = TaskWatch(self.context.clock, self.time)
        self._watched: dict[str, Any] = {}
        self._progress = ProgressSender(plan.task, plan.progress_address)

    async def run(self) -> TaskReport:
        """Connect, agree, let the clients do their part, and report.

        Raises:
            LoadgenError: The server's name is unknown, or this process may not open enough files.
        """
        self._report_progress()
        self._progress.on_stop(self.end_early)
        try:
            await self.connect_all()
            t0_epoch_seconds = await self._agree_on_t0()
            if not self.interrupted:
                self._watch.begin()
                self._begun = True
                self.start()
            if self.unfinished:
                await self.all_finished.wait()
            self._watched = self._watch.end(self.context.lags)
        finally:
            self._end()
        return self.report(t0_epoch_seconds)

    @abstractmethod
    async def connect_all(self) -> None:
        """Connect every client of the task."""

    def start(self) -> None:
        """Begin with every client; T0 may be in the future."""
        self.start_error_seconds = self.time.seconds()
        for client in self.clients:
            client.begin()

    def close_all(self) -> None:
        """Close every connection."""
        for client in self.clients:
            client.close()

    def details(self) -> tuple[dict[str, Any], ...]:
        """Return rows that the scenario adds to the report; JSON values."""
        return ()

    def report(self, t0_epoch_seconds: float) -> TaskReport:
        """Verify the answers and describe every request."""
        records = [
            record
            for client in self.clients
            for record in client.records
            if record.outcome is not None or not self.interrupted
        ]
        late = (client.start_error_seconds for client in self.clients)
        facts = TaskFacts(
            task=self.plan.task,
            clients=len(self.clients),
            start_error_seconds=max(0.0, self.start_error_seconds),
            client_start_error_seconds=max(0.0, max(late, default=0.0)),
            t0_epoch_seconds=t0_epoch_seconds,
            interrupted=self.interrupted,
            connections_lost=sum(client.connections_lost for client in self.clients),
            **self._watched,
        )
        return TaskReport(report_rows(self.plan.task, records), facts, self.details())

    def at(self, seconds: float, action: Callable[[], None]) -> None:
        """Call ``action`` at a moment of the run, or at once if it is past."""
        clock = self.context.clock
        clock.call_at(clock.now() + max(0.0, seconds - self.time.seconds()), action)

    def client_finished(self) -> None:
        """Count a client that has nothing more to do."""
        self.unfinished -= 1
        if self.unfinished == 0:
            self.all_finished.set()

    def stop_asking(self) -> None:
        """Ask for nothing more; what is under way may end. Called once, after the start."""

    def end_early(self) -> None:
        """Ask for nothing more and end when nothing is under way, or when draining takes too long.

        Requests that are under way even then are left out of the report.
        """
        if self.interrupted:
            return
        self.interrupted = True
        if self._begun and self.plan.drain_seconds:
            clock = self.context.clock
            clock.call_at(clock.now() + self.plan.drain_seconds, self.all_finished.set)
            self.stop_asking()
        else:
            self.all_finished.set()

    async def _agree_on_t0(self) -> float:
        # Collecting the objects that exist by now would stop the loop at the wrong moment.
        if gc.isenabled():
            gc.collect()
            gc.freeze()
        t0_epoch_seconds = await asyncio.to_thread(self._agree, time.time())
        self.time.agree(t0_epoch_seconds)
        self._progress.t0_epoch_seconds = t0_epoch_seconds
        self._progress.send(self.context.counters)
        return t0_epoch_seconds

    def _report_progress(self) -> None:
        self._progress.send(self.context.counters)
        clock = self.context.clock
        if not self.all_finished.is_set():
            clock.call_at(clock.now() + REPORT_SECONDS, self._report_progress)

    def _end(self) -> None:
        self.all_finished.set()
        self.close_all()
        self._progress.send(self.context.counters)
        self._progress.close()
        if gc.isenabled():
            gc.unfreeze()
