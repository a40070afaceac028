"""One task's share of the scenario ``stuck``: its healthy clients and its stuck peers."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from loadgen.clients.connect import Connector, raise_open_file_limit
from loadgen.clients.frames import listing_frame
from loadgen.clients.schedule import due_moments, scheduled_plans
from loadgen.clients.scheduled_client import ScheduledClient
from loadgen.clients.scheduled_clients import ScheduledClients
from loadgen.scenarios.stuck.close_watch import CloseWatch
from loadgen.scenarios.stuck.peer import StuckPeer
from loadgen.scenarios.stuck.scenario import StuckScenario, peer_plans
from loadgen.tasks.task import ScenarioTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.records import TaskReport
    from loadgen.scenario import ClientPlan
    from loadgen.tasks.plan import TaskPlan


class StuckTask(ScenarioTask[StuckScenario]):
    """A task of healthy clients and stuck peers, which are its mutable state.

    It is over when the duration has passed and every healthy client is done; stuck peers
    leave then at the latest.
    """

    def __init__(self, plan: TaskPlan[StuckScenario], agree: Callable[[float], float]) -> None:
        super().__init__(plan, agree)
        self._close_watch = CloseWatch(self.context.clock, loopback=plan.loopback)
        self._connector = Connector()
        self._clients = ScheduledClients(self._connector, self.scenario.receive_buffer_bytes)
        self._peers: list[StuckPeer] = []
        self._begun_seconds = 0.0

    async def connect_all(self) -> None:
        """Connect healthy clients and stuck peers; nobody asks for anything yet."""
        scenario, plan = self.scenario, self.plan
        share = (scenario, plan.task, plan.tasks)
        clients = scheduled_plans(*share, loopback=plan.loopback)
        self._clients.all = [self._client(each) for each in clients]
        self._peers = [
            StuckPeer(each, self.context, self._close_watch)
            for each in peer_plans(*share, loopback=plan.loopback)
        ]
        raise_open_file_limit(len(self._clients.all) + len(self._peers))
        self.unfinished = len(self._clients.all) + 1  # the duration
        await self._connector.resolve(scenario)
        async with asyncio.TaskGroup() as group:
            for client in self._clients.all:
                group.create_task(self._clients.connect(client))
            for peer in self._peers:
                group.create_task(self._connect_peer(peer))

    def _client(self, plan: ClientPlan) -> ScheduledClient:
        due = due_moments(self.scenario, plan.client)
        frame = partial(listing_frame, plan.namespace.name, self.scenario.pattern)
        return ScheduledClient(plan, self.context, due, frame, self._clients.reconnect)

    async def _connect_peer(self, peer: StuckPeer) -> None:
        buffer_bytes = self.scenario.stuck_receive_buffer_bytes
        failure = await self._connector.connect(peer, buffer_bytes)
        if failure is None:
            peer.connected()
        else:
            peer.unreachable(failure)

    def start(self) -> None:
        """Begin with the schedule and arm the peers' actions."""
        self._begun_seconds = self.time.seconds()
        self._clients.begin()
        self.at(self.scenario.duration_seconds, self.client_finished)
        if self._peers:
            self.at(self.scenario.stuck_at_seconds, self._let_peers_ask)
            if self.scenario.stuck_until_seconds is not None:
                self.at(self.scenario.stuck_until_seconds, self._let_peers_leave)

    def _let_peers_ask(self) -> None:
        for peer in self._peers:
            peer.ask()

    def _let_peers_leave(self) -> None:
        for peer in self._peers:
            peer.leave()

    def close_all(self) -> None:
        """Close every connection."""
        self._clients.close()
        self._let_peers_leave()

    def report(self, t0_epoch_seconds: float) -> TaskReport:
        """Verify the answers and describe every request and every peer."""
        return self.report_of(
            self._clients.all,
            t0_epoch_seconds,
            max(0.0, self._begun_seconds),
            connections_lost=self._clients.connections_lost,
            details=tuple(asdict(peer.record) for peer in self._peers),
        )
