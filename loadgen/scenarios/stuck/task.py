"""One task's share of the scenario ``stuck``: its healthy clients and its stuck peers."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from loadgen.clients.connect import Connector, raise_open_file_limit
from loadgen.clients.connection import request_frame
from loadgen.clients.schedule import due_moments, scheduled_plans
from loadgen.clients.scheduled_client import Reconnector, ScheduledClient
from loadgen.scenarios.stuck.close_watch import CloseWatch
from loadgen.scenarios.stuck.peer import StuckPeer
from loadgen.scenarios.stuck.scenario import StuckScenario, peer_plans
from loadgen.tasks.task import ScenarioTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.scenario import ClientPlan
    from loadgen.tasks.task import TaskPlan


class StuckTask(ScenarioTask[StuckScenario]):
    """A task of healthy clients and stuck peers, which are its mutable state.

    It is over when the duration has passed and every healthy client is done; stuck peers
    leave then at the latest.
    """

    def __init__(self, plan: TaskPlan[StuckScenario], agree: Callable[[float], float]) -> None:
        super().__init__(plan, agree)
        self._close_watch = CloseWatch(self.context.clock, loopback=plan.loopback)
        self._connector = Connector()
        self._reconnector = Reconnector(self._connector, self.scenario.receive_buffer_bytes)
        self._peers: list[StuckPeer] = []

    async def connect_all(self) -> None:
        """Connect healthy clients and stuck peers; nobody asks for anything yet."""
        scenario, plan = self.scenario, self.plan
        share = (scenario, plan.task, plan.tasks)
        plans = scheduled_plans(*share, loopback=plan.loopback)
        self.clients = clients = [self._client(each) for each in plans]
        self._peers = [
            StuckPeer(each, self.context, self._close_watch)
            for each in peer_plans(*share, loopback=plan.loopback)
        ]
        raise_open_file_limit(len(clients) + len(self._peers))
        self.unfinished = len(clients) + 1  # the duration
        await self._connector.resolve(scenario)
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(self._reconnector.connect(client))
            for peer in self._peers:
                group.create_task(self._connect_peer(peer))

    def _client(self, plan: ClientPlan) -> ScheduledClient:
        due = due_moments(self.scenario, plan.client)
        frame = partial(request_frame, plan.namespace.name, self.scenario.pattern)
        return ScheduledClient(plan, self.context, due, frame, self._reconnector.reconnect)

    async def _connect_peer(self, peer: StuckPeer) -> None:
        buffer_bytes = self.scenario.stuck_receive_buffer_bytes
        failure = await self._connector.connect(peer, buffer_bytes)
        if failure is None:
            peer.connected()
        else:
            peer.unreachable(failure)

    def start(self) -> None:
        """Begin with the schedule and arm the peers' actions."""
        super().start()
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
        super().close_all()
        self._reconnector.close()
        self._let_peers_leave()

    def details(self) -> tuple[dict[str, Any], ...]:
        """Return the records of the peers."""
        return tuple(asdict(peer.record) for peer in self._peers)
