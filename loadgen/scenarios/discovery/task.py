"""One task's share of the scenario ``discovery``, over real sockets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from loadgen.clients.records import CLIENT_ROWS, Outcome
from loadgen.scenarios.discovery.course import Course
from loadgen.scenarios.discovery.driver.family_client import FamilyClient
from loadgen.scenarios.discovery.scenario import DiscoveryScenario, client_plans
from loadgen.scenarios.discovery.socket_wires import Connecting, SocketWires
from loadgen.tasks.ground import SOCKETS
from loadgen.tasks.task import ScenarioTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.records import TaskReport
    from loadgen.tasks.ground import Ground
    from loadgen.tasks.task import TaskPlan


class DiscoveryTask(ScenarioTask[DiscoveryScenario]):
    """A task of clients of families. Mutable state: the clients, and how far the run has come."""

    def __init__(
        self,
        plan: TaskPlan[DiscoveryScenario],
        agree: Callable[[float], float],
        ground: Ground = SOCKETS,
    ) -> None:
        super().__init__(plan, agree, ground)
        service = self.scenario.address if self.scenario.service_url else None
        self._connecting = Connecting(ground.new_connector(), service)
        self._course = Course(self.scenario, self.context, self.client_finished)
        self._family_clients: list[FamilyClient] = []

    async def connect_all(self) -> None:
        """Connect every client that starts at a moment of its own."""
        plan, scenario = self.plan, self.scenario
        connector = self._connecting.connector
        connector.allow(-(-scenario.connections // plan.tasks))
        await connector.resolve(scenario)
        clients = [
            FamilyClient(
                each,
                self.context,
                SocketWires(each, self.context, self._connecting),
                self._course.settled,
            )
            for each in client_plans(scenario, plan.task, plan.tasks, loopback=plan.loopback)
        ]
        self.clients = self._family_clients = clients
        self.unfinished = 1  # the course of all of them
        for client in clients:
            if client.plan.start_seconds is not None:
                client.connect()
        await self._connecting.all_made()

    def start(self) -> None:
        """Begin with the course; T0 may be in the future."""
        self._course.start(self._family_clients)

    def stop_asking(self) -> None:
        """End the course, whatever its phase; requests under way may end."""
        self._course.stop()

    def close_all(self) -> None:
        """Close every connection; what is under way has ended by then, or is left out."""
        for client in self._family_clients:
            if self.interrupted:
                client.close()
            else:
                client.end()
        self._connecting.close()

    def report(self, t0_epoch_seconds: float) -> TaskReport:
        """See ScenarioTask; clients have rows as well. The warm-up is left out."""
        self.start_error_seconds = self._course.start_error_seconds
        rows = [client.row(self.plan.task) for client in self._family_clients]
        clients = pa.Table.from_pylist(rows, schema=CLIENT_ROWS)
        report = super().report(t0_epoch_seconds)
        begins = self.scenario.phases.warm_up_seconds
        return replace(report, rows=counted(report.rows, begins), clients=counted(clients, begins))


def counted(rows: pa.Table, begins_seconds: float) -> pa.Table:
    """Return what was due when the warm-up was over, and of before what was wrong."""
    due = pc.greater_equal(rows["intended_start_seconds"], begins_seconds)
    wrong = pc.equal(rows["outcome"], Outcome.WRONG.value)
    return rows.filter(pc.or_(pc.fill_null(due, fill_value=True), wrong))
