"""One task's share of a storm: connect all its clients, start them, collect their rows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from loadgen.clients.answers import AnswerChecker
from loadgen.clients.connect import (
    ServerAddress,
    connect,
    connect_failure,
    raise_open_file_limit,
    resolve,
)
from loadgen.clients.context import StormContext
from loadgen.clients.records import TaskFacts, TaskReport, report_rows
from loadgen.scenario import StormScenario, client_plans
from loadgen.scenarios.storm.client import ConnectFailedError, StormClient
from loadgen.tasks.task import CONNECTING_AT_ONCE, TaskFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.tasks.plan import TaskPlan


class StormTask(TaskFrame):
    """Mutable state: the clients, and those that could not connect."""

    def __init__(
        self, plan: TaskPlan, scenario: StormScenario, agree: Callable[[float], float]
    ) -> None:
        super().__init__(plan, agree)
        self._scenario = scenario
        self._context = StormContext(
            scenario,
            AnswerChecker(filtered=scenario.pattern is not None),
            self.counters,
            self.client_finished,
            self.time,
        )
        self._clients: list[StormClient] = []
        self._unreachable: list[tuple[StormClient, str, float]] = []
        self._start_error_seconds = 0.0

    async def connect_all(self) -> None:
        """Connect every client, so many at once as a listen backlog takes."""
        plan = self.plan
        plans = list(client_plans(self._scenario, plan.task, plan.tasks, loopback=plan.loopback))
        raise_open_file_limit(len(plans))
        self.unfinished = len(plans)
        address = await resolve(self._scenario)
        places = asyncio.Semaphore(CONNECTING_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for each in plans:
                client = StormClient(each, self._context)
                self._clients.append(client)
                await places.acquire()
                group.create_task(self._connect(client, address, places))

    async def _connect(
        self, client: StormClient, address: ServerAddress, places: asyncio.Semaphore
    ) -> None:
        try:
            await connect(client, address, self._scenario.receive_buffer_bytes)
        except (OSError, ConnectFailedError) as error:
            failed_at = self.time.monotonic()
            self._unreachable.append((client, connect_failure(error), failed_at))
        finally:
            places.release()

    def start(self) -> None:
        """Start each client at its moment; who could not connect gets rows at once."""
        lost = set()
        for client, reason, failed_at in self._unreachable:
            lost.add(client.plan.client)
            client.unreachable(reason, failed_at - self.time.t0)
        waiting = [client for client in self._clients if client.plan.client not in lost]
        waiting.sort(key=lambda client: client.plan.intended_start_seconds, reverse=True)
        self._start_due(waiting)

    def _start_due(self, waiting: list[StormClient]) -> None:
        """Start those whose moment has come; ``waiting`` ends with the next one."""
        clock = self._context.clock
        while waiting:
            late_seconds = self.time.seconds() - waiting[-1].plan.intended_start_seconds
            if late_seconds < 0:
                clock.call_at(clock.now() - late_seconds, self._start_due, waiting)
                return
            self._start_error_seconds = max(self._start_error_seconds, late_seconds)
            moment = waiting[-1].plan.intended_start_seconds
            while waiting and waiting[-1].plan.intended_start_seconds == moment:
                waiting.pop().begin()

    def close_all(self) -> None:
        """Let every client leave."""
        for client in self._clients:
            client.close()

    def report(self, t0_epoch_seconds: float) -> TaskReport:
        """Verify the answers and describe every request."""
        records = [
            record
            for client in self._clients
            for record in client.records
            if record.outcome is not None or not self.interrupted
        ]
        facts = TaskFacts(
            task=self.plan.task,
            clients=len(self._clients),
            start_error_seconds=self._start_error_seconds,
            client_start_error_seconds=max(
                (client.start_error_seconds for client in self._clients), default=0.0
            ),
            t0_epoch_seconds=t0_epoch_seconds,
            attempt=self.plan.attempt,
            interrupted=self.interrupted,
        )
        return TaskReport(report_rows(self.plan.task, records), facts)
