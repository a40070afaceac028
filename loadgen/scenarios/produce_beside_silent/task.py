"""One task's share of the scenario ``produce-beside-silent``."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from loadgen.clients.connect import Connector, raise_open_file_limit
from loadgen.clients.schedule import due_moments, scheduled_plans
from loadgen.clients.scheduled_client import ScheduledClient
from loadgen.scenarios.produce_beside_silent.messages import send_frame, topic_of
from loadgen.scenarios.produce_beside_silent.producing import ProducerReconnector
from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario, silent_plans
from loadgen.scenarios.produce_beside_silent.silent import (
    SilentConsumer,
    SilentPeer,
    SilentProducer,
)
from loadgen.scenarios.stuck.close_watch import CloseWatch
from loadgen.tasks.task import ScenarioTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.scenario import ClientPlan
    from loadgen.tasks.task import TaskPlan


class SilentTask(ScenarioTask[SilentScenario]):
    """A task of producers and of clients that read nothing, which are its mutable state."""

    def __init__(self, plan: TaskPlan[SilentScenario], agree: Callable[[float], float]) -> None:
        super().__init__(plan, agree)
        self._close_watch = CloseWatch(self.context.clock, loopback=plan.loopback)
        self._connector = Connector()
        self._reconnector = ProducerReconnector(self._connector, self.scenario.receive_buffer_bytes)
        self._payload = bytes(self.scenario.message_bytes)
        self._peers: list[SilentPeer] = []

    async def connect_all(self) -> None:
        """Connect all, and open their producers and consumers; nobody publishes yet."""
        scenario, plan = self.scenario, self.plan
        share = (scenario, plan.task, plan.tasks)
        clients = [self._client(each) for each in scheduled_plans(*share, loopback=plan.loopback)]
        self.clients = clients
        self._peers = [self._peer(each) for each in silent_plans(*share, loopback=plan.loopback)]
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
        return ScheduledClient(plan, self.context, due, self._frame, self._reconnector.reconnect)

    def _frame(self, request_id: int) -> bytes:
        return send_frame(request_id, self._payload)

    def _peer(self, plan: ClientPlan) -> SilentPeer:
        scenario = self.scenario
        number = plan.client - scenario.silent_producers
        if number < 0:
            return SilentProducer(plan, self.context, self._close_watch)
        client = number % scenario.clients
        namespace = scenario.namespaces[client % len(scenario.namespaces)]
        topic = topic_of(replace(plan, client=client, namespace=namespace))
        return SilentConsumer(plan, self.context, self._close_watch, topic)

    async def _connect_peer(self, peer: SilentPeer) -> None:
        buffer_bytes = self.scenario.silent_receive_buffer_bytes
        failure = await self._connector.connect(peer, buffer_bytes)
        if failure is None:
            await peer.open()
        else:
            peer.unreachable(failure)

    def start(self) -> None:
        """Begin with the schedule and arm what silent clients do."""
        super().start()
        self.at(self.scenario.duration_seconds, self.client_finished)
        if self._peers:
            self.at(self.scenario.silent_at_seconds, self._let_peers_begin)
            if self.scenario.silent_until_seconds is not None:
                self.at(self.scenario.silent_until_seconds, self._let_peers_leave)

    def _let_peers_begin(self) -> None:
        for peer in self._peers:
            peer.begin()

    def _let_peers_leave(self) -> None:
        for peer in self._peers:
            peer.leave()

    def close_all(self) -> None:
        """Close every connection."""
        super().close_all()
        self._reconnector.close()
        self._let_peers_leave()

    def details(self) -> tuple[dict[str, Any], ...]:
        """Return the records of the silent clients."""
        return tuple(
            {**asdict(peer.record), "sent": peer.sent, "held_up": peer.held_up}
            for peer in self._peers
        )
