"""One client's connection to the proxy.

Decided by its CONNECT: without proxy_to_broker_url the proxy answers lookups and topic lists
itself; with it, the connection becomes a pipe to that broker.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from limiter.flow.causes import PauseCause
from proto.command_bounds import type_name
from proto.commands import error_command, with_body
from proto.errors import RemoteProtocolError
from proto.frames import DEFAULT_MAX_MESSAGE_BYTES
from proto.names import InvalidNameError, NamespaceName
from proto.version import SERVER_VERSION
from proxy.errors import TOO_MANY_LOOKUPS, ErrorForm, ErrorForms, RequestError
from proxy.listing.requesters import Requester
from proxy.pipe.direct_handler import PipeLeg, UnavailableTargetError, set_shipped_flags
from server.connection.served_connection import FlowParts, ServedConnection
from server.tasks.request_tasks import RequestTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from limiter.flow.lookup_semaphore import LookupPermit, LookupSemaphore
    from proto.frames import Frame
    from proxy.brokers import Address, BrokerConnections
    from proxy.config import ProxyConfig
    from proxy.listing.flights import Flights
    from proxy.lookup_handler import LookupProxyHandler
    from proxy.pipe.direct_handler import DirectProxyHandler
    from server.connection.counters import ConnectionCounters, ProxyCounters

logger = logging.getLogger(__name__)

Type = pb.BaseCommand
PROTOCOL_VERSION = 21
OLDEST_PROTOCOL_VERSION = 10
"""Older clients cannot be proxied: upstream closes them."""
NO_REQUEST = 2**64 - 1
BEHIND_A_PROXY = "Must not provide proxyVersion"
"""A real proxy stands behind no other."""
TOO_MANY_CONNECTIONS = "Reached the maximum number of connections of the proxy"


class ProxyConnectionState(Enum):
    """A stage of a connection's life (upstream: ProxyConnection.State)."""

    INIT = "before CONNECT"
    PROXY_LOOKUP_REQUESTS = "answering lookups"
    PROXY_CONNECTING_TO_BROKER = "connecting to the broker"
    PROXY_CONNECTION_TO_BROKER = "piping"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ProxyParts:
    """The parts of a proxy that all its connections work with."""

    config: ProxyConfig
    as_shipped: bool
    address: Address
    lookups: LookupSemaphore
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

    Source: upstream ProxyConnection.
    """

    def __init__(self, parts: ProxyParts) -> None:
        super().__init__(parts.flow, parts.config.max_message_size)
        self._parts = parts
        self._requests = RequestTasks(self._answer_unexpected)
        self._brokers = parts.new_brokers()
        self._counted_ip = ""
        self.state = ProxyConnectionState.INIT

    # -- life ---------------------------------------------------------------------------------

    def connected(self) -> None:
        """Count the connection, or refuse it when there are too many."""
        super().connected()
        parts = self._parts
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
        config = self._parts.config
        most, most_per_ip = (
            config.max_concurrent_inbound_connections,
            config.max_concurrent_inbound_connections_per_ip,
        )
        if 0 < most < self._parts.connection_counters.active:
            return True
        return 0 < most_per_ip < self._parts.per_ip[self._counted_ip]

    def lost(self, error: Exception | None) -> None:
        """Give back everything in this turn: waiting flights, permits, lookup places."""
        super().lost(error)
        parts = self._parts
        self.state = ProxyConnectionState.CLOSED
        parts.flights.cancel_owner(self)
        parts.lookups.cancel_owner(self)
        self._requests.cancel_all()
        self._brokers.release()
        parts.connections.discard(self)
        parts.connection_counters.closed()
        parts.per_ip[self._counted_ip] -= 1
        if not parts.per_ip[self._counted_ip]:
            del parts.per_ip[self._counted_ip]
        self.end_other()

    async def drain(self) -> None:
        """Take no more requests, let those under way answer, then close."""
        self.take_no_more()
        await self._requests.finished()
        await self._parts.flights.finished(self)
        self.close()

    # -- handshake ----------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """True if CONNECT was answered."""
        return self.state not in (
            ProxyConnectionState.INIT,
            ProxyConnectionState.PROXY_CONNECTING_TO_BROKER,
        )

    def serves(self, kind: int) -> bool:
        """Tell whether a command of this type is legal now."""
        return kind in TRANSITIONS[self.state]

    def command_received(self, command: pb.BaseCommand) -> None:
        """Handle one command that is legal now."""
        self._parts.counters.binary_ops += 1
        TRANSITIONS[self.state][command.type](self, command)

    def refuse(self, kind: int, frame: Frame) -> None:
        """Close: the proxy answers nothing else."""
        raise RemoteProtocolError(f"{type_name(kind)} is not legal {self.state.value}")

    def handle_ping(self, command: pb.BaseCommand) -> None:
        """Answer PING."""
        with_body(command, "ping")
        self.answer_ping()

    def handle_pong(self, command: pb.BaseCommand) -> None:
        """A PONG proves that the peer lives; the frame itself already did."""
        with_body(command, "pong")

    def handle_connect(self, command: pb.BaseCommand) -> None:
        """Answer lookups here, or open a pipe to the broker the client names."""
        connect = with_body(command, "connect").connect
        if connect.protocol_version < OLDEST_PROTOCOL_VERSION:
            raise RemoteProtocolError(
                f"protocol version {connect.protocol_version} is older than the proxy can serve"
            )
        if connect.HasField("proxy_version") and self._parts.as_shipped:
            self.send(error_command(NO_REQUEST, pb.NotAllowedError, BEHIND_A_PROXY))
            self.close()
            return
        if connect.HasField("proxy_to_broker_url"):
            self.state = ProxyConnectionState.PROXY_CONNECTING_TO_BROKER
            self.becomes_pipe()
            self.gate.close_for(PauseCause.CONNECTING_TO_BROKER)
            self._requests.start(NO_REQUEST, partial(self._pipe, connect))
            return
        if connect.HasField("proxy_version"):
            self.stands_for_many()
            self._parts.flights.exempt_from_share(self)
        self.state = ProxyConnectionState.PROXY_LOOKUP_REQUESTS
        self._parts.connection_counters.connect_succeeded()
        version = min(connect.protocol_version, PROTOCOL_VERSION)
        connected = pb.CommandConnected(server_version=SERVER_VERSION, protocol_version=version)
        set_shipped_flags(connected.feature_flags, topic_watchers=False)
        max_message_size = self._parts.config.max_message_size
        if not self._parts.as_shipped and max_message_size != DEFAULT_MAX_MESSAGE_BYTES:
            connected.max_message_size = max_message_size
        self.send(pb.BaseCommand(type=Type.CONNECTED, connected=connected))

    async def _pipe(self, connect: pb.CommandConnect) -> None:
        """Become a pipe to the broker the client named, or refuse and close."""
        counters = self._parts.connection_counters
        try:
            await self._parts.direct_handler.open(self, connect)
        except RequestError as error:
            counters.connect_failed()
            if not (self._parts.as_shipped and isinstance(error, UnavailableTargetError)):
                self.send(error_command(NO_REQUEST, error.server_error, error.message))
            self.close()
        else:
            counters.connect_succeeded()
            self.state = ProxyConnectionState.PROXY_CONNECTION_TO_BROKER
            self.gate.open_for(PauseCause.CONNECTING_TO_BROKER)

    # -- lookups ------------------------------------------------------------------------------

    def handle_lookup(self, command: pb.BaseCommand) -> None:
        """Forward a LOOKUP."""
        request = with_body(command, "lookupTopic").lookupTopic
        counters, form = self._parts.counters, self._parts.error_forms.lookup
        if self._start(request.request_id, form, partial(self._lookup, request)):
            counters.lookup_requests += 1
        else:
            counters.rejected_lookup_requests += 1

    async def _lookup(self, request: pb.CommandLookupTopic) -> None:
        response = await self._parts.lookup_handler.lookup(request, self._brokers)
        self.send(pb.BaseCommand(type=Type.LOOKUP_RESPONSE, lookupTopicResponse=response))

    def handle_partitioned_metadata(self, command: pb.BaseCommand) -> None:
        """Forward a PARTITIONED_METADATA."""
        request = with_body(command, "partitionMetadata").partitionMetadata
        self._parts.lookup_handler.check_topic(request.topic)
        counters, form = self._parts.counters, self._parts.error_forms.partitions
        if self._start(request.request_id, form, partial(self._partitions, request)):
            counters.partitions_metadata_requests += 1
        else:
            counters.rejected_partitions_metadata_requests += 1

    async def _partitions(self, request: pb.CommandPartitionedTopicMetadata) -> None:
        response = await self._parts.lookup_handler.partitions(request, self._brokers)
        command = pb.BaseCommand(type=Type.PARTITIONED_METADATA_RESPONSE)
        command.partitionMetadataResponse.CopyFrom(response)
        self.send(command)

    def handle_get_topics(self, command: pb.BaseCommand) -> None:
        """Let a GET_TOPICS_OF_NAMESPACE wait for the flight that asks the same."""
        request = with_body(command, "getTopicsOfNamespace").getTopicsOfNamespace
        counters = self._parts.counters
        refusal = self._refusal(request)
        permit = None if refusal else self._place(self._parts.flights.expected_bytes(request))
        if permit is None:
            counters.rejected_get_topics_requests += 1
            form = self._parts.error_forms.topics
            crowded = RequestError(form.crowded, TOO_MANY_LOOKUPS)
            self._topics_failed(request.request_id, refusal or crowded)
            return
        counters.get_topics_requests += 1
        if self._parts.as_shipped:
            # Upstream frees the place when its handler returns, long before the answer.
            permit.release()
        requester = Requester(self, request.request_id, permit, self._topics_failed)
        self._parts.flights.join(requester, request, self._brokers, self._parts.address)

    def _refusal(self, request: pb.CommandGetTopicsOfNamespace) -> RequestError | None:
        """Keep away from a shared broker connection what would make the broker close it."""
        if self._parts.as_shipped:
            return None
        try:
            NamespaceName.parse(request.namespace)
        except InvalidNameError as error:
            return RequestError(pb.InvalidTopicName, f"{error}; expected tenant/namespace")
        return None

    def _topics_failed(self, request_id: int, error: RequestError) -> None:
        self.send(error_command(request_id, error.server_error, error.message))

    # -- one request --------------------------------------------------------------------------

    def _place(self, expected_bytes: int | None) -> LookupPermit | None:
        """Return a place for a request; its answer counts against the connection's budget."""
        return self._parts.lookups.try_acquire(self, self.responses.reserve(expected_bytes))

    def _start(
        self,
        request_id: int,
        form: ErrorForm,
        work: Callable[[], Coroutine[object, object, None]],
    ) -> bool:
        """Run a request under a lookup permit; false when all are taken and it is refused."""
        permit = self._place(0)
        if permit is None:
            self.send(form.crowded_command(request_id))
            return False
        if self._parts.as_shipped:
            permit.release()
        under_permit = partial(self._under_permit, request_id, permit, form, work)
        self._requests.start(request_id, under_permit)
        return True

    async def _under_permit(
        self,
        request_id: int,
        permit: LookupPermit,
        form: ErrorForm,
        work: Callable[[], Coroutine[object, object, None]],
    ) -> None:
        with permit:
            try:
                await work()
            except RequestError as error:
                self.send(form.command(request_id, error))

    def _answer_unexpected(self, request_id: int, text: str) -> None:
        self.send(error_command(request_id, pb.UnknownError, text))
        if self.state is ProxyConnectionState.PROXY_CONNECTING_TO_BROKER:
            self.close()


TRANSITIONS: dict[
    ProxyConnectionState,
    dict[pb.BaseCommand.Type.ValueType, Callable[[ProxyConnection, pb.BaseCommand], None]],
] = {
    ProxyConnectionState.INIT: {
        Type.CONNECT: ProxyConnection.handle_connect,
        Type.PING: ProxyConnection.handle_ping,
        Type.PONG: ProxyConnection.handle_pong,
    },
    ProxyConnectionState.PROXY_LOOKUP_REQUESTS: {
        Type.PING: ProxyConnection.handle_ping,
        Type.PONG: ProxyConnection.handle_pong,
        Type.LOOKUP: ProxyConnection.handle_lookup,
        Type.PARTITIONED_METADATA: ProxyConnection.handle_partitioned_metadata,
        Type.GET_TOPICS_OF_NAMESPACE: ProxyConnection.handle_get_topics,
    },
    ProxyConnectionState.PROXY_CONNECTING_TO_BROKER: {},
    ProxyConnectionState.PROXY_CONNECTION_TO_BROKER: {},
    ProxyConnectionState.CLOSED: {},
}
"""The commands that are legal in each state; a pipe decodes none."""
