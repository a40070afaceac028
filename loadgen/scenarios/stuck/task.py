"""One task's share of the scenario ``stuck``: its healthy clients and its stuck peers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from loadgen.clients.answers import AnswerChecker
from loadgen.clients.close_watch import ServerSide
from loadgen.clients.connect import (
    ServerAddress,
    connect,
    connect_failure,
    raise_open_file_limit,
    resolve,
)
from loadgen.clients.connection import ConnectFailedError
from loadgen.clients.context import StormContext
from loadgen.clients.records import TaskFacts, TaskReport, report_rows
from loadgen.scenarios.stuck.healthy_client import HealthyClient, HealthyConnection
from loadgen.scenarios.stuck.peer import StuckPeer
from loadgen.scenarios.stuck.scenario import StuckScenario, healthy_plans, peer_plans
from loadgen.tasks.task import CONNECTING_AT_ONCE, TaskFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.tasks.plan import TaskPlan


class StuckTask(TaskFrame):
    """Mutable state: the clients, the peers, and the connections that are being made.

    The task is over when the duration has passed and every healthy client is done; stuck peers
    leave then at the latest.
    """

    def __init__(
        self, plan: TaskPlan, scenario: StuckScenario, agree: Callable[[float], float]
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
        self._server_side = ServerSide(self._context.clock, loopback=plan.loopback)
        self._clients: list[HealthyClient] = []
        self._peers: list[StuckPeer] = []
        self._address: ServerAddress | None = None
        self._places = asyncio.Semaphore(CONNECTING_AT_ONCE)
        self._connecting: set[asyncio.Task[None]] = set()
        self._begun_seconds = 0.0

    async def connect_all(self) -> None:
        """Connect healthy clients and stuck peers; nobody asks for anything yet."""
        scenario, plan = self._scenario, self.plan
        share = (scenario, plan.task, plan.tasks)
        self._clients = [
            HealthyClient(each, self._context, self._reconnect)
            for each in healthy_plans(*share, loopback=plan.loopback)
        ]
        self._peers = [
            StuckPeer(each, self._context, self._server_side)
            for each in peer_plans(*share, loopback=plan.loopback)
        ]
        raise_open_file_limit(len(self._clients) + len(self._peers))
        self.unfinished = len(self._clients) + 1  # the duration
        self._address = await resolve(scenario)
        async with asyncio.TaskGroup() as group:
            for client in self._clients:
                group.create_task(self._connect_client(client))
            for peer in self._peers:
                group.create_task(self._connect_peer(peer))

    def _reconnect(self, client: HealthyClient) -> None:
        task = asyncio.get_running_loop().create_task(self._connect_client(client))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect_client(self, client: HealthyClient) -> None:
        connection = HealthyConnection(client)
        try:
            async with self._places:
                await connect(connection, self._server(), self._scenario.receive_buffer_bytes)
        except (OSError, ConnectFailedError) as error:
            client.unreachable(connect_failure(error))
        else:
            client.connected(connection)

    async def _connect_peer(self, peer: StuckPeer) -> None:
        try:
            async with self._places:
                await connect(peer, self._server(), self._scenario.stuck_receive_buffer_bytes)
        except (OSError, ConnectFailedError) as error:
            peer.unreachable(connect_failure(error))
        else:
            peer.connected()

    def _server(self) -> ServerAddress:
        assert self._address is not None
        return self._address

    def start(self) -> None:
        """Begin with the schedule and arm what the peers do."""
        self._begun_seconds = self.time.seconds()
        for client in self._clients:
            client.begin()
        self._at(self._scenario.duration_seconds, self.client_finished)
        if self._peers:
            self._at(self._scenario.stuck_at_seconds, self._let_peers_ask)
            if self._scenario.stuck_until_seconds is not None:
                self._at(self._scenario.stuck_until_seconds, self._let_peers_leave)

    def _at(self, seconds: float, action: Callable[[], None]) -> None:
        clock = self._context.clock
        clock.call_at(clock.now() + max(0.0, seconds - self.time.seconds()), action)

    def _let_peers_ask(self) -> None:
        for peer in self._peers:
            peer.ask()

    def _let_peers_leave(self) -> None:
        for peer in self._peers:
            peer.leave()

    def close_all(self) -> None:
        """Let everybody leave."""
        for connecting in self._connecting:
            connecting.cancel()
        for client in self._clients:
            client.close()
        self._let_peers_leave()

    def report(self, t0_epoch_seconds: float) -> TaskReport:
        """Verify the answers and describe every request and every peer."""
        records = [
            record
            for client in self._clients
            for record in client.records
            if record.outcome is not None or not self.interrupted
        ]
        facts = TaskFacts(
            task=self.plan.task,
            clients=len(self._clients),
            start_error_seconds=max(0.0, self._begun_seconds),
            client_start_error_seconds=max(
                (client.start_error_seconds for client in self._clients), default=0.0
            ),
            t0_epoch_seconds=t0_epoch_seconds,
            attempt=self.plan.attempt,
            interrupted=self.interrupted,
            connections_lost=sum(client.connections_lost for client in self._clients),
        )
        peers = tuple(peer.record for peer in self._peers)
        return TaskReport(report_rows(self.plan.task, records), facts, peers)
