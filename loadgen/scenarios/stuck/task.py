"""One task's share of the scenario ``stuck``: clients and peers that ask for listings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.clients.connection import request_frame
from loadgen.scenarios.stuck.peer import ListingPeer
from loadgen.scenarios.stuck.scenario import StuckScenario
from loadgen.stuck_peers.task import BesidePeersTask

if TYPE_CHECKING:
    from loadgen.scenario import ClientPlan


class StuckTask(BesidePeersTask[StuckScenario]):
    """A task in which everybody asks for listings."""

    def new_peer(self, plan: ClientPlan) -> ListingPeer:
        """Return a stuck peer that is not connected."""
        return ListingPeer(plan, self.context, self.close_watch)

    def frame(self, plan: ClientPlan, request_id: int) -> bytes:
        """Return the request of a listing."""
        return request_frame(plan.namespace.name, self.scenario.pattern, request_id)
