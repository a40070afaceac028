"""One task's share of a storm: connects all its clients, starts them, collects their rows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from loadgen.clients.connect import Connector, raise_open_file_limit
from loadgen.scenarios.storm.client import StormClient
from loadgen.scenarios.storm.scenario import StormScenario, client_plans
from loadgen.tasks.task import ScenarioTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.records import TaskReport
    from loadgen.tasks.plan import TaskPlan


class StormTask(ScenarioTask[StormScenario]):
    """A storm's task. Mutable state: the clients, and those that could not connect."""

    def __init__(self, plan: TaskPlan[StormScenario], agree: Callable[[float], float]) -> None:
        super().__init__(plan, agree)
        self._clients: list[StormClient] = []
        self._unreachable: list[tuple[StormClient, str, float]] = []
        self._start_error_seconds = 0.0

    async def connect_all(self) -> None:
        """Connect every client."""
        plan = self.plan
        plans = client_plans(self.scenario, plan.task, plan.tasks, loopback=plan.loopback)
        self._clients = [StormClient(each, self.context) for each in plans]
        raise_open_file_limit(len(self._clients))
        self.unfinished = len(self._clients)
        connector = Connector()
        await connector.resolve(self.scenario)
        async with asyncio.TaskGroup() as group:
            for client in self._clients:
                group.create_task(self._connect(client, connector))

    async def _connect(self, client: StormClient, connector: Connector) -> None:
        failure = await connector.connect(client, self.scenario.receive_buffer_bytes)
        if failure is not None:
            self._unreachable.append((client, failure, self.time.monotonic()))

    def start(self) -> None:
        """Start each client at its moment; those that could not connect get rows at once."""
        lost = set()
        for client, reason, failed_at in self._unreachable:
            lost.add(client.plan.client)
            client.unreachable(reason, failed_at - self.time.t0)
        waiting = [client for client in self._clients if client.plan.client not in lost]
        waiting.sort(key=lambda client: client.plan.intended_start_seconds, reverse=True)
        self._start_due(waiting)

    def _start_due(self, waiting: list[StormClient]) -> None:
        """Start those whose moment has come; ``waiting`` ends with the next one."""
        clock = self.context.clock
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
        """Close every connection."""
        for client in self._clients:
            client.close()

    def report(self, t0_epoch_seconds: float) -> TaskReport:
        """Verify the answers and describe every request."""
        return self.report_of(self._clients, t0_epoch_seconds, self._start_error_seconds)
