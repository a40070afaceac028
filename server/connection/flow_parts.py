"""The parts of flow control that all client connections of a process share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.clock import Clock
    from limiter.flow.flow_control import FlowRules
    from limiter.flow.totals import FlowTotals
    from limiter.slow_peers.eviction import SlowPeers
    from proto.transport.process_flow import ProcessFlow
    from server.connection.connection_rules import ConnectionRules


@dataclass(slots=True)
class FlowParts:
    """The parts of flow control that all connections of a process share.

    Attributes:
        rules: Those of connections that come; the marks of the others follow (see
            ServerService.change_water_marks).
        connection_rules: Those of the profile.
    """

    clock: Clock
    rules: FlowRules
    keep_alive_seconds: float
    connection_rules: ConnectionRules
    process: ProcessFlow
    totals: FlowTotals
    slow_peers: SlowPeers
