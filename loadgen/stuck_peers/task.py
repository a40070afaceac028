"""One task's share of a scenario with stuck peers: its healthy clients and its peers."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from loadgen.clients.schedule import due_moments, scheduled_plans
from loadgen.clients.scheduled_client import Reconnector, ScheduledClient, ScheduledConnection
from loadgen.stuck_peers.close_watch import CloseWatch
from loadgen.stuck_peers.scenario import BesidePeersScenario, peer_plans
from loadgen.tasks.ground import SOCKETS
from loadgen.tasks.task import ScenarioTask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.scenario import ClientPlan
    from loadgen.stuck_peers.peer import StuckPeer
    from loadgen.tasks.ground import Ground
    from loadgen.tasks.task import TaskPlan

BesidePeersT = TypeVar("BesidePeersT", bound=BesidePeersScenario)


class BesidePeersTask(ScenarioTask[BesidePeersT]):
    """A task of healthy clients and stuck peers, which are its mutable state.

    It is over when the duration has passed and every healthy client is done; stuck peers
    leave then at the latest.
    """

    connection: type[ScheduledConnection] = ScheduledConnection
    """The connections of healthy clients."""
    operation = "list"
    """The requests of healthy clients."""

    def __init__(
        self,
        plan: TaskPlan[BesidePeersT],
        agree: Callable[[float], float],
        ground: Ground = SOCKETS,
    ) -> None:
        super().__init__(plan, agree, ground)
        self.close_watch = CloseWatch(self.context.clock, loopback=plan.loopback)
        self._connector = ground.new_connector()
        self._reconnector = Reconnector(
            self._connector, self.scenario.receive_buffer_bytes, self.connection
        )
        self._peers: list[StuckPeer] = []
        self._over = False

    @abstractmethod
    def new_peer(self, plan: ClientPlan) -> StuckPeer:
        """Return a stuck peer that is not connected."""

    @abstractmethod
    def frame(self, plan: ClientPlan, request_id: int) -> bytes:
        """Return a healthy client's request."""

    async def connect_all(self) -> None:
        """Connect healthy clients and stuck peers; nobody asks for anything yet."""
        scenario, plan = self.scenario, self.plan
        share = (scenario, plan.task, plan.tasks)
        plans = scheduled_plans(*share, loopback=plan.loopback)
        clients = [self._client(each) for each in plans]
        self.clients: Sequence[ScheduledClient] = clients
        self._peers = [self.new_peer(each) for each in peer_plans(*share, loopback=plan.loopback)]
        self._connector.allow(len(clients) + len(self._peers))
        self.unfinished = len(clients) + 1  # the duration
        await self._connector.resolve(scenario)
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(self._reconnector.connect(client))
            for peer in self._peers:
                group.create_task(self._connect_peer(peer))

    def _client(self, plan: ClientPlan) -> ScheduledClient:
        due = due_moments(self.scenario, plan.client)
        reconnect = self._reconnector.reconnect
        return ScheduledClient(
            plan,
            self.context,
            due,
            lambda number: self.frame(plan, number),
            reconnect,
            operation=self.operation,
        )

    async def _connect_peer(self, peer: StuckPeer) -> None:
        buffer_bytes = self.scenario.peers.receive_buffer_bytes
        failure = await self._connector.connect(peer, buffer_bytes)
        if failure is None:
            await peer.connected()
        else:
            peer.unreachable(failure)

    def start(self) -> None:
        """Begin with the schedule and arm the peers' actions."""
        super().start()
        self.at(self.scenario.duration_seconds, self._duration_over)
        wanted = self.scenario.peers
        if self._peers:
            self.at(wanted.at_seconds, self._let_peers_begin)
            if wanted.until_seconds is not None:
                self.at(wanted.until_seconds, self._let_peers_leave)

    def stop_asking(self) -> None:
        """Let healthy clients ask for nothing more, and wait no longer for the duration."""
        for client in self.clients:
            client.stop()
        self._duration_over()

    def _duration_over(self) -> None:
        if not self._over:
            self._over = True
            self.client_finished()

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
        """Return the records of the peers."""
        return tuple(peer.detail() for peer in self._peers)
