"""The rules for client connections, and the flow control objects that connections share."""

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
    """Rules for client connections that differ between profiles floodgate and pulsar.

    Attributes:
        parse: Parses the bytes of a command.
        bounds_commands: A command larger than real clients' closes the connection before its body
            is buffered; otherwise it may be as large as a frame after CONNECT.
        answers_pings_once: A queued PONG answers every PING until it is sent; otherwise each PING
            gets its own, even from a non-reading peer.
        passes_queue: Frames may be written past the outbound queue; otherwise the water marks act
            as Netty's.
        keeps_alive_by_progress: A peer that reads counts as alive; see KeepAlive.
        resets_dead_peers: The connection of a dead peer is closed by a TCP reset, which frees
            bytes in the kernel.
        spares_proxies: A proxy is exempt from a single client's budget and cooldown.
        spares_messages: Published messages, and commands about received messages, are exempt from
            the cooldown.
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
    """The flow control objects that all connections of a process share.

    Attributes:
        clock: The source of time.
        rules: The rules of new connections; present connections follow changed marks (see
            ServerService.change_water_marks).
        keep_alive_seconds: The interval of keep-alive checks; 0 or less for none.
        connection_rules: The rules of the profile.
        process: Outbound totals and watches of the process.
        totals: Flow control counters.
        slow_peers: Finds and closes connections whose peers do not read.
        limits: Limits on connections and their requests.
    """

    clock: Clock
    rules: FlowRules
    keep_alive_seconds: float
    connection_rules: ConnectionRules
    process: ProcessFlow
    totals: FlowTotals
    slow_peers: SlowPeers
    limits: ClientLimits = field(default_factory=ClientLimits)
