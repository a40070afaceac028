"""One task's share of a storm: connects all its clients, starts them, collects their rows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from loadgen.clients.schedule import ON_TIME_SECONDS
from loadgen.scenarios.storm.client import StormClient
from loadgen.scenarios.storm.scenario import StormScenario, client_plans
from loadgen.tasks.ground import SOCKETS
from loadgen.tasks.task import ScenarioTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.connect import Connects
    from loadgen.tasks.ground import Ground
    from loadgen.tasks.task import TaskPlan


class StormTask(ScenarioTask[StormScenario]):
    """A storm's task. Mutable state: the clients, and those that could not connect."""

    def __init__(
        self,
        plan: TaskPlan[StormScenario],
        agree: Callable[[float], float],
        ground: Ground = SOCKETS,
    ) -> None:
        super().__init__(plan, agree, ground)
        self._connected: list[StormClient] = []
        self._unreachable: list[tuple[StormClient, str, float]] = []
        self._waiting: list[StormClient] = []  # for their moments; it ends with the next one

    async def connect_all(self) -> None:
        """Connect every client."""
        plan = self.plan
        plans = client_plans(self.scenario, plan.task, plan.tasks, loopback=plan.loopback)
        self.clients = clients = [StormClient(each, self.context) for each in plans]
        self.unfinished = len(clients)
        connector = self.ground.new_connector()
        connector.allow(len(clients))
        await connector.resolve(self.scenario)
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(self._connect(client, connector))

    async def _connect(self, client: StormClient, connector: Connects) -> None:
        failure = await connector.connect(client, self.scenario.receive_buffer_bytes)
        if failure is None:
            self._connected.append(client)
        else:
            self._unreachable.append((client, failure, self.time.monotonic()))

    def start(self) -> None:
        """Start each client at its moment; those that could not connect get rows at once."""
        for client, reason, failed_at in self._unreachable:
            client.unreachable(reason, failed_at - self.time.t0)
        by_client = sorted(self._connected, key=lambda client: client.plan.client)
        by_client.sort(key=lambda client: client.plan.intended_start_seconds, reverse=True)
        self._waiting = by_client
        self._start_due()

    def stop_asking(self) -> None:
        """Start no more clients; those under way may end."""
        for client in self._connected:
            client.stop()
        for _ in self._waiting:
            self.client_finished()
        self._waiting.clear()

    def _start_due(self) -> None:
        """Start those whose moment has come."""
        clock, waiting = self.context.clock, self._waiting
        while waiting:
            late_seconds = self.time.seconds() - waiting[-1].plan.intended_start_seconds
            if late_seconds < -ON_TIME_SECONDS:
                clock.call_at(clock.now() - late_seconds, self._start_due)
                return
            self.start_error_seconds = max(self.start_error_seconds, late_seconds)
            self.context.lags.append(max(0.0, late_seconds))
            moment = waiting[-1].plan.intended_start_seconds
            while waiting and waiting[-1].plan.intended_start_seconds == moment:
                waiting.pop().begin()
