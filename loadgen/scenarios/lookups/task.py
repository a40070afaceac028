"""One task's share of the scenario ``lookups``."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from loadgen.clients.schedule import due_moments, scheduled_plans
from loadgen.clients.scheduled_client import Reconnector, ScheduledClient
from loadgen.errors import LoadgenError
from loadgen.scenarios.lookups.connections import LookupConnection, TopicListing, frame_in_turn
from loadgen.scenarios.lookups.scenario import LookupsScenario
from loadgen.tasks.ground import SOCKETS
from loadgen.tasks.task import ScenarioTask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.scenario import ClientPlan
    from loadgen.tasks.ground import Ground
    from loadgen.tasks.task import TaskPlan


class LookupsTask(ScenarioTask[LookupsScenario]):
    """A task of clients that look topics up. Mutable state: the clients."""

    def __init__(
        self,
        plan: TaskPlan[LookupsScenario],
        agree: Callable[[float], float],
        ground: Ground = SOCKETS,
    ) -> None:
        super().__init__(plan, agree, ground)
        self._connector = ground.new_connector()
        receive_buffer_bytes = self.scenario.receive_buffer_bytes
        self._reconnector = Reconnector(self._connector, receive_buffer_bytes, LookupConnection)

    async def connect_all(self) -> None:
        """List each namespace once, then connect every client."""
        share = (self.scenario, self.plan.task, self.plan.tasks)
        plans = list(scheduled_plans(*share, loopback=self.plan.loopback))
        self._connector.allow(len(plans))
        await self._connector.resolve(self.scenario)
        askers = {each.namespace.name: each for each in plans}
        topics = {name: await self._topics(asker) for name, asker in askers.items()}
        clients = [self._client(each, topics[each.namespace.name]) for each in plans]
        self.clients: Sequence[ScheduledClient] = clients
        self.unfinished = len(plans)
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(self._reconnector.connect(client))

    def stop_asking(self) -> None:
        """Let clients ask for nothing more."""
        for client in self.clients:
            client.stop()

    async def _topics(self, plan: ClientPlan) -> list[str]:
        listing = TopicListing(plan, self.context)
        failure = await self._connector.connect(listing, self.scenario.receive_buffer_bytes)
        if failure is not None:
            raise LoadgenError(f"{self.scenario.service_url} cannot be reached: {failure}")
        try:
            return await listing.topics()
        finally:
            listing.close()
            self.context.counters.connected -= 1  # it is none of the clients

    def _client(self, plan: ClientPlan, topics: Sequence[str]) -> ScheduledClient:
        due = due_moments(self.scenario, plan.client)
        turns = in_turn(plan.client, self.scenario.clients, len(self.scenario.namespaces))
        frame = partial(frame_in_turn, topics, *turns)
        reconnect = self._reconnector.reconnect
        return ScheduledClient(plan, self.context, due, frame, reconnect, operation="lookup")

    def close_all(self) -> None:
        """Close every connection."""
        super().close_all()
        self._reconnector.close()


def in_turn(client: int, clients: int, namespaces: int) -> tuple[int, int]:
    """Return a client's first topic and its step: those of a namespace take its topics in turn."""
    first, namespace = divmod(client, namespaces)
    return first, len(range(namespace, clients, namespaces))
