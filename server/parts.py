"""The state of a server process before any port is open: limits, connections, TLS."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar

from prometheus_client import CollectorRegistry

from limiter.clock import Clock, LoopClock
from limiter.flow.lookup_semaphore import LookupSemaphore
from limiter.flow.outbound_buffer import OutboundTotals, WriteBufferMarks
from limiter.flow.totals import FlowTotals
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType
from limiter.permits.ledger import Ledger
from limiter.slow_peers.eviction import SlowPeers
from proto.transport.process_flow import HangupWatch, ProcessFlow
from server.authentication.refused import RefusedOperations
from server.authentication.service import open_service
from server.configuration.addresses import ServerUrls, host_port
from server.configuration.common import POLICY_KEY, Profile
from server.configuration.loaded_class import told
from server.connection.counters import ConnectionCounters
from server.connection.flow_parts import FLOODGATE_RULES, PULSAR_RULES, FlowParts
from server.connection.served_connection import ServedConnection
from server.errors import StartError
from server.faults.moved_clock import MovedClock
from server.faults.registry import FaultRegistry
from server.http import Readiness
from server.limiter_report.report import owner_name
from server.limits.clients import ClientLimits
from server.limits.connections import ConnectionLimits, Refusals
from server.limits.unfinished_frames import UnfinishedFrames
from server.tls.contexts import ServerTls
from server.tls.handshakes import TlsHandshakes

if TYPE_CHECKING:
    from server.configuration.common import ServerConfig
    from server.connection.listener import Listen, Listener
    from server.tls.contexts import ClientTls
    from server.tls.refreshed import RefreshedContext


CnxT = TypeVar("CnxT", bound=ServedConnection)


class ServerParts(Generic[CnxT]):
    """The state of a server process without its listeners; there are no globals.

    Raises:
        StartError: The admission policy cannot be made.
        TlsFilesError: Certificates cannot be used.

    Attributes:
        authentication: Authenticates peers; None: every peer is served.
        refused: Counts operations refused by authorization.
        registry: Collectors of metrics that return immediately.
    """

    def __init__(
        self,
        config: ServerConfig,
        lookup_places: int,
        drain_seconds: float,
        clock: Clock | None,
        listen: Listen,
    ) -> None:
        self.limiter = _limiter(config, clock)
        self.lookups = LookupSemaphore(lookup_places)
        self.connection_counters = ConnectionCounters()
        self.totals = OutboundTotals(config.flow.max_pending_outbound_bytes)
        self.connections: set[CnxT] = set()
        self.urls = ServerUrls()
        self._exits = AsyncExitStack()
        self._server_config = config
        self._pulsar_compatible = config.profile is Profile.PULSAR
        self._drain_seconds = drain_seconds
        self._clock: Clock = clock or LoopClock()
        self.moved_clock = MovedClock(self._clock) if config.faults_enabled else None
        # The time of messages, topics, policies and tokens.
        self._message_clock: Clock = self.moved_clock or self._clock
        self._listen = listen
        self.authentication = open_service(config.authentication, self._message_clock)
        self.refused = RefusedOperations(self._clock)
        self.registry = CollectorRegistry()
        self.flow = self._flow_parts()
        self.ledgers = self._keep_ledgers() if config.limiter_ledger else {}
        self.faults = FaultRegistry() if config.faults_enabled else None
        self._readiness = Readiness()
        self._listeners: list[Listener] = []
        tls = config.tls or config.web_tls
        self.handshakes = TlsHandshakes(self._clock, tls.handshake_seconds if tls else 0.0)
        self.tls = ServerTls(config.tls, self._clock) if config.tls else None
        self.web_tls = ServerTls(config.web_tls, self._clock) if config.web_tls else None
        self._broker_tls: ClientTls | None = None

    @property
    def service_url(self) -> str:
        """The URL for Pulsar clients; empty until clients are accepted."""
        return self.urls.any_service

    @property
    def web_service_url(self) -> str:
        """The URL of the web port; empty until the port is open."""
        return self.urls.any_web

    def _url(self, scheme: str, port: int) -> str:
        return f"{scheme}://{host_port(self._server_config.advertised_address, port)}"

    def _tls_contexts(self) -> dict[str, RefreshedContext]:
        """Return the process's TLS contexts, by purpose: a port, or connections to brokers."""
        parts = {"binary_port": self.tls, "web_port": self.web_tls, "brokers": self._broker_tls}
        return {name: tls.contexts for name, tls in parts.items() if tls is not None}

    def _flow_parts(self) -> FlowParts:
        flow = self._server_config.flow
        totals = FlowTotals(self._clock, self.totals)
        slow_peers = SlowPeers(self.limiter, flow.slow_peers, totals, self._clock)
        self._exits.callback(slow_peers.stop)
        process = ProcessFlow(
            outbound=self.totals,
            totals=totals,
            hangups=HangupWatch(self._clock),
            parks_frames=not self._pulsar_compatible,
        )
        return FlowParts(
            clock=self._clock,
            rules=flow.rules,
            keep_alive_seconds=flow.keep_alive_seconds,
            connection_rules=PULSAR_RULES if self._pulsar_compatible else FLOODGATE_RULES,
            process=process,
            totals=totals,
            slow_peers=slow_peers,
            limits=self._client_limits(),
        )

    def _client_limits(self) -> ClientLimits:
        config, refusals = self._server_config, Refusals()
        return ClientLimits(
            ConnectionLimits(config.connection_bounds, refusals),
            refusals,
            config.limits.handshake_seconds,
            config.limits.requests_a_second,
            UnfinishedFrames(config.limits.unfinished_frame_bytes, refusals),
        )

    def change_water_marks(self, marks: WriteBufferMarks) -> None:
        """Change the low and high mark of all connections' outbound buffers at run time.

        A connection that is not writable adopts the marks once it is writable again.

        Raises:
            ValueError: A low mark of 0, which no buffer falls below, would keep connections paused.
        """
        if marks.low_bytes == 0 and self.flow.rules.pause_if_unwritable:
            raise ValueError("a low mark of 0 bytes: set at least 1")
        self.flow.rules = replace(self.flow.rules, marks=marks)
        for cnx in self.connections:
            cnx.outbound.change_marks(marks)

    def _keep_ledgers(self) -> dict[LimitType, Ledger]:
        """Make ledgers that record every acquire and release of memory."""
        ledgers = {one: Ledger(self._clock, owner_name, f"{one.value} memory") for one in LimitType}
        for limit_type, ledger in ledgers.items():
            self.limiter.semaphore(limit_type).record_with(ledger)
        return ledgers


def _limiter(config: ServerConfig, clock: Clock | None) -> AsyncDualMemoryLimiter:
    limits, rules = config.topic_list_limits, config.admission
    try:
        return AsyncDualMemoryLimiter(limits.heap, limits.direct, clock, rules=rules)
    except Exception as error:
        name = f"{POLICY_KEY}={rules.policy_name}"
        raise StartError(f"{name}: it cannot be made: {told(error)}") from error
