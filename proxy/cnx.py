"""One client's connection to the proxy.

Its CONNECT decides: without proxy_to_broker_url the proxy answers lookups and topic lists itself;
with it, the connection becomes a pipe to that broker. The commands stand in proxy.commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.commands import NO_REQUEST, error_command
from proxy.pipe.direct_handler import PipeLeg
from proxy.pipe.ending import end_pipe
from server.connection.permitted_requests import PermitRules, PermittedRequests
from server.connection.served_connection import ServedConnection

if TYPE_CHECKING:
    from collections.abc import Callable

    from proxy.brokers import Address, BrokerConnections
    from proxy.config import ProxyConfig
    from proxy.errors import ErrorForms
    from proxy.listing.flights import Flights
    from proxy.lookup_handler import LookupProxyHandler
    from proxy.pipe.direct_handler import DirectProxyHandler
    from server.connection.command_table import CommandTable
    from server.connection.counters import ConnectionCounters, ProxyCounters
    from server.connection.flow_parts import FlowParts

TOO_MANY_CONNECTIONS = "Reached the maximum number of connections of the proxy"


class ProxyConnectionState(Enum):
    """A stage of a connection's life (upstream: ProxyConnection.State)."""

    INIT = "before CONNECT"
    PROXY_LOOKUP_REQUESTS = "on a connection for lookups, whose CONNECT names no broker"
    PROXY_CONNECTING_TO_BROKER = "connecting to the broker"
    PROXY_CONNECTION_TO_BROKER = "piping"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ProxyRules:
    """The rules by which a proxy deals with clients.

    Attributes:
        refuses_proxies: A client that is a proxy itself is refused.
        announced_message_bytes: The largest message as CONNECTED announces it; None: not at all.
        tells_unavailable_targets: A client whose broker cannot be reached is told so.
        checks_namespaces: A malformed namespace is refused before the broker is asked.
    """

    refuses_proxies: bool
    announced_message_bytes: int | None
    tells_unavailable_targets: bool
    checks_namespaces: bool


@dataclass(frozen=True, slots=True)
class ProxyParts:
    """The parts of a proxy that all its connections work with."""

    config: ProxyConfig
    rules: ProxyRules
    commands: CommandTable
    address: Address
    permits: PermitRules
    lookup_handler: LookupProxyHandler
    flights: Flights
    new_brokers: Callable[[], BrokerConnections]
    direct_handler: DirectProxyHandler
    error_forms: ErrorForms
    counters: ProxyCounters
    connection_counters: ConnectionCounters
    per_ip: dict[str, int]
    flow: FlowParts
    connections: set[ProxyConnection]


class ProxyConnection(ServedConnection, PipeLeg):
    """The proxy's side of one client's connection.

    Attributes:
        parts: Those of its proxy.
        requests: Its requests that are under way; a listing waits for a flight instead.
        brokers: Its connections to brokers.

    Source: upstream ProxyConnection.
    """

    def __init__(self, parts: ProxyParts) -> None:
        super().__init__(parts.flow, parts.commands, parts.config.max_message_size)
        self.parts = parts
        self.brokers = parts.new_brokers()
        self._counted_ip = ""
        self.when_lost(parts.flights.cancel_owner)
        self.requests = PermittedRequests(self, parts.permits)
        self.when_lost(lambda _: self.brokers.release(), PipeLeg.end_other)

    def connected(self) -> None:
        """Count the connection, or refuse it when there are too many."""
        super().connected()
        parts = self.parts
        parts.connections.add(self)
        parts.connection_counters.opened()
        self._counted_ip = self.peer.rsplit(":", 1)[0]
        parts.per_ip[self._counted_ip] = parts.per_ip.get(self._counted_ip, 0) + 1
        if self._one_too_many():
            parts.counters.rejected_connections += 1
            self.send(error_command(NO_REQUEST, pb.NotAllowedError, TOO_MANY_CONNECTIONS))
            self.close()
        else:
            parts.counters.new_connections += 1

    def _one_too_many(self) -> bool:
        parts, config = self.parts, self.parts.config
        if 0 < config.max_concurrent_inbound_connections < parts.connection_counters.active:
            return True
        of_ip = parts.per_ip[self._counted_ip]
        return 0 < config.max_concurrent_inbound_connections_per_ip < of_ip

    def lost(self, error: Exception | None) -> None:
        """Count its end; those who hold something for it are told next (see ``when_lost``)."""
        super().lost(error)
        self.state = ProxyConnectionState.CLOSED
        parts = self.parts
        parts.connections.discard(self)
        parts.connection_counters.closed()
        parts.per_ip[self._counted_ip] -= 1
        if not parts.per_ip[self._counted_ip]:
            del parts.per_ip[self._counted_ip]

    def begin_drain(self) -> None:
        """Take no more requests; a pipe goes on for a while (see ``drain``)."""
        if self.other is None:
            super().begin_drain()

    async def drain(self) -> None:
        """Let requests under way answer, and a pipe's receipts pass, then close."""
        await self.requests.tasks.finished()
        await self.parts.flights.finished(self)
        await end_pipe(self, self.parts.flow.clock, self.parts.config.pipe_drain_seconds)
        self.close()
