"""One client's connection to the proxy, for lookups or as one end of a pipe.

The client's CONNECT decides its use: without proxy_to_broker_url the proxy answers lookups and
topic lists; with it, the connection becomes a pipe to the named broker. proxy.commands has the
commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from proxy.pipe.leg import PipeLeg, end_pipe
from server.connection.permitted_requests import PermitRules, PermittedRequests
from server.connection.served_connection import ServedConnection

if TYPE_CHECKING:
    from collections.abc import Callable

    from proto.frames import Frame
    from proxy.brokers import Address, BrokerConnections
    from proxy.config import ProxyConfig
    from proxy.credentials import OriginalClient
    from proxy.errors import ErrorForms
    from proxy.listing.flights import Flights
    from proxy.lookup_handler import LookupProxyHandler
    from proxy.metrics import ProxyCounters
    from proxy.pipe.direct_handler import DirectProxyHandler
    from server.authentication.service import AuthenticationService
    from server.authentication.session import ClientSession, CredentialRefresh
    from server.connection.command_table import CommandTable
    from server.connection.counters import ConnectionCounters
    from server.connection.flow_parts import FlowParts
    from server.tls.handshakes import AcceptedTls


class ProxyConnectionState(Enum):
    """Stages in the life of a client's connection to the proxy.

    Upstream: ProxyConnection.State.
    """

    INIT = "before CONNECT"
    PROXY_LOOKUP_REQUESTS = "on a connection for lookups, whose CONNECT names no broker"
    PROXY_CONNECTING_TO_BROKER = "connecting to the broker"
    PROXY_CONNECTION_TO_BROKER = "piping"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ProxyRules:
    """Rules for clients of the proxy that depend on the profile, floodgate or pulsar.

    Attributes:
        refuses_proxies: Whether clients that are proxies are refused.
        announced_message_bytes: The message limit announced in CONNECTED; None announces no limit.
        tells_unavailable_targets: Whether a client is informed of its broker's unreachability.
        checks_namespaces: Whether a malformed namespace is refused before a broker request.
        ends_expired_pipes: Whether a pipe ends with its client's credentials, unless brokers see
            them.
    """

    refuses_proxies: bool
    announced_message_bytes: int | None
    tells_unavailable_targets: bool
    checks_namespaces: bool
    ends_expired_pipes: bool


@dataclass(frozen=True, slots=True)
class ClientAuthentication:
    """The settings and services with which the proxy authenticates its clients.

    Attributes:
        service: Verifies credentials.
        refresh_seconds: authenticationRefreshCheckSeconds.
        forwards_credentials: forwardAuthorizationCredentials: whether brokers receive them, too.
        connections_for: Returns the broker connections on behalf of a client.
    """

    service: AuthenticationService
    refresh_seconds: float
    forwards_credentials: bool
    connections_for: Callable[[OriginalClient], BrokerConnections]


@dataclass(frozen=True, slots=True)
class ProxyParts:
    """Configuration, services and counters that all client connections of a proxy share.

    Attributes:
        authentication: Identifies clients; None to serve every client.
    """

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
    flow: FlowParts
    connections: set[ProxyConnection]
    authentication: ClientAuthentication | None = None


class ProxyConnection(ServedConnection, PipeLeg):
    """The proxy's side of one client's connection.

    Attributes:
        parts: The proxy's parts.
        requests: In-flight requests; a listing waits for a flight instead.
        brokers: The client's connections to brokers.
        session: The client's identity; None without authentication.
        original: The client's identity for brokers.
        refresh: Checks the expiry of the client's credentials.

    Source: upstream ProxyConnection.
    """

    def __init__(self, parts: ProxyParts, tls: AcceptedTls | None = None) -> None:
        super().__init__(parts.flow, parts.commands, parts.config.max_message_size, tls)
        self.parts = parts
        self.brokers = parts.new_brokers()
        self.session: ClientSession | None = None
        self.original: OriginalClient | None = None
        self.refresh: CredentialRefresh | None = None
        self.when_lost(parts.flights.cancel_owner)
        self.requests = PermittedRequests(self, parts.permits)
        self.when_lost(ProxyConnection._release_brokers, PipeLeg.end_other)

    def _release_brokers(self) -> None:
        self.brokers.release()

    def connected(self) -> None:
        """Count the new connection as open, and as accepted or refused."""
        parts = self.parts
        parts.connections.add(self)
        parts.connection_counters.opened()
        if self.refusal is None:
            parts.counters.new_connections += 1
        else:
            parts.counters.rejected_connections += 1
        super().connected()

    def frame_received(self, frame: Frame) -> None:
        """Process a received frame; if the connection is a pipe, forward the frame."""
        if self.takes_frame is not None:
            self.takes_frame(frame)
        else:
            super().frame_received(frame)

    def lost(self, error: Exception | None) -> None:
        """Count the connection as closed, and stop checking the client's credentials.

        Holders of resources are notified next (see ``when_lost``).
        """
        super().lost(error)
        self.state = ProxyConnectionState.CLOSED
        if self.refresh is not None:
            self.refresh.stop()
            self.refresh = None
        if self.original is not None and self.original.credentials is not None:
            self.original.credentials.client_left()
        if self.served:
            self.parts.connections.discard(self)
            self.parts.connection_counters.closed()

    def begin_drain(self) -> None:
        """Accept no further requests; a pipe continues until ``drain`` ends it."""
        if self.other is None:
            super().begin_drain()

    async def drain(self) -> None:
        """Wait for requests in flight or for the pipe to end, then close the connection."""
        await self.requests.tasks.finished()
        await self.parts.flights.finished(self)
        await end_pipe(self, self.parts.flow.clock, self.parts.config.pipe_drain_seconds)
        self.close()
