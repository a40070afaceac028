"""One task's share of the scenario ``produce-beside-silent``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.scenarios.produce_beside_silent.messages import send_frame, topic_of
from loadgen.scenarios.produce_beside_silent.producing import ProducingConnection
from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario
from loadgen.scenarios.produce_beside_silent.silent import (
    SilentConsumer,
    SilentPeer,
    SilentProducer,
)
from loadgen.stuck_peers.task import BesidePeersTask

if TYPE_CHECKING:
    from loadgen.scenario import ClientPlan


class SilentTask(BesidePeersTask[SilentScenario]):
    """A task of producers and of clients that read nothing."""

    connection = ProducingConnection
    operation = "publish"

    def new_peer(self, plan: ClientPlan) -> SilentPeer:
        """Return a silent client that is not connected."""
        scenario = self.scenario
        number = plan.client - scenario.silent_producers
        if number < 0:
            return SilentProducer(plan, self.context, self.close_watch)
        client = number % scenario.clients
        topic = topic_of(scenario.namespaces[client % len(scenario.namespaces)].name, client)
        return SilentConsumer(plan, self.context, self.close_watch, topic)

    def frame(self, plan: ClientPlan, request_id: int) -> bytes:
        """Return a message."""
        del plan
        return send_frame(request_id, bytes(self.scenario.message_bytes))
