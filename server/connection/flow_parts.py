"""The rules of client connections and the parts of flow control that they share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proto.parsing.parser import parse_as_pulsar, parse_from_client
from server.limits.clients import ClientLimits

if TYPE_CHECKING:
    from limiter.clock import Clock
    from limiter.flow.flow_control import FlowRules
    from limiter.flow.totals import FlowTotals
    from limiter.slow_peers.eviction import SlowPeers
    from proto.parsing.parser import Parser
    from proto.transport.process_flow import ProcessFlow


@dataclass(frozen=True, slots=True)
class ConnectionRules:
    """The rules of one profile.

    Attributes:
        parse: Reads a command.
        bounds_commands: A command larger than those of the field's clients closes, before its body
            is buffered; otherwise it may be as large as a frame once CONNECT was answered.
        answers_pings_once: A PONG that has not left yet answers every PING until it does;
            otherwise each gets its own, also from a peer that reads none of them.
        passes_queue: Frames may be written past the outbound queue; otherwise every mark is
            Netty's, and its queue's.
        keeps_alive_by_progress: A peer that takes what it is sent lives; see KeepAlive.
        resets_dead_peers: The kernel forgets what a peer that is closed as dead has not read.
        spares_proxies: A proxy has neither the budget nor the cooldown of one client.
        spares_messages: What a client publishes, and what it says of messages it was sent, is not
            counted in the cooldown.
    """

    parse: Parser = parse_from_client
    bounds_commands: bool = True
    answers_pings_once: bool = True
    passes_queue: bool = True
    keeps_alive_by_progress: bool = True
    resets_dead_peers: bool = True
    spares_proxies: bool = True
    spares_messages: bool = True


FLOODGATE_RULES = ConnectionRules()
PULSAR_RULES = ConnectionRules(
    parse_as_pulsar,
    bounds_commands=False,
    answers_pings_once=False,
    passes_queue=False,
    keeps_alive_by_progress=False,
    resets_dead_peers=False,
    spares_proxies=False,
    spares_messages=False,
)


@dataclass(slots=True)
class FlowParts:
    """The parts of flow control that all connections of a process share.

    Attributes:
        rules: Those of connections that come; the marks of the others follow (see
            ServerService.change_water_marks).
        connection_rules: Those of the profile.
        limits: How many connections there may be, and what one may ask for.
    """

    clock: Clock
    rules: FlowRules
    keep_alive_seconds: float
    connection_rules: ConnectionRules
    process: ProcessFlow
    totals: FlowTotals
    slow_peers: SlowPeers
    limits: ClientLimits = field(default_factory=ClientLimits)
