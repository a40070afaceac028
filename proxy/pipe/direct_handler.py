"""The opening of pipes from clients to the broker that their CONNECT names.

The broker's address is proxy_to_broker_url. The proxy finishes both handshakes and then copies
undecoded bytes in both directions. A side pauses while the opposite side is not writable; the end
of either side ends both.

Source: upstream DirectProxyHandler.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from client.connection.connect_options import current_auth_data
from client.connection.service_url import server_address
from client.exceptions import ErrorGettingAuthenticationData
from limiter.clock import Clock, deadline
from limiter.flow.causes import PauseCause
from proto.errors import RemoteProtocolError
from proto.excerpts import without_credentials
from proto.version import PROXY_VERSION, SERVER_VERSION
from proxy.pipe.faulty_pipe import pipe_with_faults
from proxy.pipe.leg import PipeLeg
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from client.connection.connect_options import Credentials
    from proto.frames import Frame
    from proto.transport.process_flow import ProcessFlow
    from proto.transport.tls import TlsLayer
    from proxy.brokers import Address
    from proxy.credentials import OriginalClient
    from proxy.pipe.allowed_targets import BrokerTargets
    from server.faults.registry import FaultRegistry
    from server.tls.contexts import ClientTls

logger = logging.getLogger(__name__)

INVALID_TARGET = "Target broker cannot be validated."
UNAVAILABLE_TARGET = "Target broker isn't available."
NO_TARGET = "Failed to authenticate"
"""A real proxy's text for a target without a port."""


class UnavailableTargetError(RequestError):
    """The broker that a client named is unreachable; profile pulsar sends no answer."""

    def __init__(self) -> None:
        super().__init__(pb.ServiceNotReady, UNAVAILABLE_TARGET)


class BrokerLeg(PipeLeg):
    """The pipe's side to the broker: the proxy's connection to the broker that a client named."""

    def __init__(
        self, connect: pb.CommandConnect, process: ProcessFlow, tls: TlsLayer | None = None
    ) -> None:
        super().__init__(process=process, tls=tls)
        self.intake.parks = False
        self._connect = connect
        self.greeting: asyncio.Future[pb.BaseCommand] = asyncio.get_running_loop().create_future()

    def connected(self) -> None:
        """Send the proxy's CONNECT to the broker, on behalf of the client."""
        self.send(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=self._connect))

    def frame_received(self, frame: Frame) -> None:
        """Receive the broker's answer to CONNECT, and stop reading until the pipe is open."""
        if self.takes_frame is not None:
            self.takes_frame(frame)
            return
        command = frame.command()
        if command.type not in (pb.BaseCommand.CONNECTED, pb.BaseCommand.ERROR):
            name = pb.BaseCommand.Type.Name(command.type)
            raise RemoteProtocolError(f"the broker answered CONNECT with {name}")
        self.gate.close_for(PauseCause.CONNECTING_TO_BROKER)
        if not self.greeting.done():
            self.greeting.set_result(command)

    def tls_failed(self, error: RemoteProtocolError) -> None:
        """Report a failed TLS handshake to the task that waits for the broker's answer."""
        self._fail(str(error))

    def lost(self, error: Exception | None) -> None:
        """Close the client's connection, as the connection to the broker was lost."""
        self._fail(f"{self.peer} closed the connection")
        self.end_other()

    def _fail(self, reason: str) -> None:
        if not self.greeting.done():
            self.greeting.set_exception(ConnectionError(reason))
            self.greeting.exception()


class BrokerAccess(NamedTuple):
    """Settings for the proxy's connections to brokers.

    Attributes:
        timeout_seconds: brokerProxyConnectTimeoutMs, for connection and handshakes together.
        tls: TLS settings for all brokers; None for plain connections.
        credentials: The proxy's credentials; None: no credentials are sent.
    """

    timeout_seconds: float
    tls: ClientTls | None = None
    credentials: Credentials | None = None


class DirectProxyHandler:
    """Opens pipes to the brokers that clients name.

    Args:
        targets: The allowed target brokers.
        process: Shared by all connections of the process.
        clock: The source of time.
        access: Settings for broker connections.
        faults: The faults settable by command; None without floodgateFaultsEnabled.
        like_pulsar: Pass on only the feature flags of a 4.0.8 proxy, and answer a target without a
            port with a failed authentication.
    """

    def __init__(
        self,
        targets: BrokerTargets,
        process: ProcessFlow,
        clock: Clock,
        access: BrokerAccess,
        *,
        like_pulsar: bool,
        faults: FaultRegistry | None = None,
    ) -> None:
        self._targets = targets
        self._process = process
        self._clock = clock
        self._timeout_seconds, self._tls, self._credentials = access
        self._like_pulsar = like_pulsar
        self._faults = faults

    async def open(
        self,
        client: PipeLeg,
        connect: pb.CommandConnect,
        original: OriginalClient | None = None,
    ) -> None:
        """Connect to the broker that a client names, answer its CONNECT, and start the pipe.

        The client's gate stays closed meanwhile. A leaving client's task is cancelled in this call,
        and the broker connection is aborted.

        Raises:
            RequestError: The target is not allowed, not available, or refused.
        """
        if self._like_pulsar and ":" not in connect.proxy_to_broker_url:
            raise RequestError(pb.AuthenticationError, NO_TARGET)
        address = await self._targets.allowed(connect.proxy_to_broker_url)
        if address is None:
            target = without_credentials(connect.proxy_to_broker_url)
            logger.warning(
                "%s requested a pipe to %r: not allowed by the configured brokers, "
                "brokerProxyAllowedHostNames, -IPAddresses or -TargetPorts",
                client.peer,
                target,
            )
            raise RequestError(pb.ServiceNotReady, INVALID_TARGET)
        try:
            async with deadline(self._clock, self._timeout_seconds):
                said = await self._said_to_broker(connect, original)
                leg = await self._connect(address, connect.proxy_to_broker_url, said)
                greeting = await self._greeting(leg)
        # The resolver raises a UnicodeError for impossible host names.
        except (OSError, TimeoutError, UnicodeError, ErrorGettingAuthenticationData) as error:
            logger.info("%s:%d cannot be reached for a pipe: %s", *address, error)
            raise UnavailableTargetError from None
        self._join(client, leg, greeting, connect.client_version)

    async def _said_to_broker(
        self, given: pb.CommandConnect, original: OriginalClient | None
    ) -> pb.CommandConnect:
        connect = pb.CommandConnect(
            client_version=given.client_version,
            protocol_version=given.protocol_version,
            auth_method_name="none",
            proxy_version=PROXY_VERSION,
        )
        if given.HasField("feature_flags"):
            connect.feature_flags.CopyFrom(given.feature_flags)
        if self._credentials is not None:
            connect.auth_method_name = self._credentials.method_name
            connect.auth_data = await current_auth_data(
                self._credentials, self._clock, self._timeout_seconds
            )
        if original is not None:
            connect.original_principal = original.role
            if original.credentials is not None:
                connect.original_auth_method = original.credentials.method_name
                shown = original.credentials.auth_data()
                connect.original_auth_data = shown.decode("utf-8", "replace")
        return connect

    async def _connect(
        self, address: Address, target: str, connect: pb.CommandConnect
    ) -> BrokerLeg:
        layer = None
        if self._tls is not None:
            # TLS checks the requested name, although the allow-list may have resolved it.
            host, _ = server_address(f"pulsar://{target}")
            layer = self._tls.layer(host)
        _, leg = await asyncio.get_running_loop().create_connection(
            lambda: BrokerLeg(connect, self._process, layer), *address
        )
        return leg

    async def _greeting(self, leg: BrokerLeg) -> pb.CommandConnected:
        """Wait for the broker's CONNECTED and return it; on failure, close its connection."""
        try:
            command = await asyncio.shield(leg.greeting)
        except BaseException:
            leg.abort()
            raise
        if command.type == pb.BaseCommand.ERROR:
            leg.abort()
            raise RequestError(command.error.error, command.error.message, by_broker=True)
        if leg.closed:  # With TLS, close and greeting may arrive together.
            raise ConnectionError(f"{leg.peer} closed the connection after its greeting")
        return command.connected

    def _join(
        self, client: PipeLeg, leg: BrokerLeg, connected: pb.CommandConnected, version: str
    ) -> None:
        answer = pb.CommandConnected(
            server_version=SERVER_VERSION,
            protocol_version=connected.protocol_version,
            max_message_size=connected.max_message_size,
        )
        if self._like_pulsar:
            watchers = connected.feature_flags.supports_topic_watchers
            set_known_flags(answer.feature_flags, topic_watchers=watchers)
        else:
            answer.feature_flags.CopyFrom(connected.feature_flags)
        client.send(pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=answer))
        client.other, leg.other = leg, client
        if self._faults is None:
            client.pipe_to(leg)
            leg.pipe_to(client)
        else:
            pipe_with_faults(client, leg, connected, version, self._faults, self._clock)
        leg.gate.open_for(PauseCause.CONNECTING_TO_BROKER)


def set_known_flags(flags: pb.FeatureFlags, *, topic_watchers: bool) -> None:
    """Set the feature flags that a proxy of Pulsar 4.0.8 announces."""
    flags.supports_topic_watchers = topic_watchers
    flags.supports_get_partitioned_metadata_without_auto_creation = True
    flags.supports_repl_dedup_by_lid_and_eid = True
