"""The base of the services: a server process serves, says that it is ready, and drains."""

from __future__ import annotations

import asyncio
import gc
import logging
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from prometheus_client import CollectorRegistry

from limiter.clock import Clock, LoopClock, deadline
from limiter.flow.lookup_semaphore import LookupSemaphore
from limiter.flow.outbound_buffer import OutboundTotals, WriteBufferMarks
from limiter.flow.totals import FlowTotals
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType
from limiter.metrics.outcome_counts import OutcomeCounts
from limiter.metrics.prometheus import TopicListMetrics
from limiter.permits.ledger import Ledger, UnbalancedLedgerError, check_all_balanced
from limiter.slow_peers.eviction import SlowPeers
from proto.transport.hangup_watch import HangupWatch
from proto.transport.process_flow import ProcessFlow
from server.authentication.requests import authentication_middleware, open_paths
from server.authentication.service import open_service
from server.configuration.addresses import ServerUrls, host_port
from server.configuration.common import Profile
from server.connection.counters import ConnectionCounters
from server.connection.flow_parts import FLOODGATE_RULES, PULSAR_RULES, FlowParts
from server.connection.listener import ListenerTls
from server.connection.served_connection import ServedConnection
from server.cross_site import CrossSiteRule
from server.faults.connection import ConnectionFaults
from server.faults.holds import Incoming
from server.faults.metrics import FaultMetrics
from server.faults.outgoing import OutgoingFaults
from server.faults.registry import FaultRegistry
from server.faults.routes import fault_routes
from server.front_page import Place, front_page_route
from server.http import (
    MAX_REQUEST_BYTES,
    HttpPort,
    ProcessState,
    Readiness,
    application,
    serve_http,
)
from server.limiter_report.report import LimiterReporter, StoredMessages, owner_name
from server.limiter_report.routes import limiter_routes
from server.limits.clients import ClientLimits
from server.limits.connections import ConnectionLimits
from server.limits.http import HttpBounds, HttpLimits
from server.limits.refusals import LimitMetrics, Refusals
from server.metrics.otel_settings import telemetry_settings
from server.metrics.process import EventLoopLag, HeapMetrics, ProcessMetrics, ServerInfo
from server.metrics.tls import TlsMetrics
from server.seeing.connections import ConnectionReports
from server.seeing.openapi import openapi_route
from server.seeing.own_operations import own_operations
from server.seeing.page import page_routes
from server.seeing.status import status_route
from server.server_info import info_sentence
from server.tasks.freed_memory import FreedMemory, c_heap
from server.tls.contexts import ServerTls
from server.tls.handshakes import AcceptedTls, TlsHandshakes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from aiohttp import web
    from aiohttp.typedefs import Middleware
    from prometheus_client.registry import Collector

    from limiter.metrics.prometheus import MetricPrefix
    from server.configuration.common import ServerConfig
    from server.connection.listener import Listen, Listener
    from server.metrics.scrape import Gather
    from server.seeing.openapi import Operation
    from server.tls.contexts import ClientTls, RefreshedContext

logger = logging.getLogger(__name__)


CnxT = TypeVar("CnxT", bound=ServedConnection)


class ServerService(ABC, Generic[CnxT]):
    """A server in this process: ``async with`` serves inside the block and has drained after it.

    Several can live in one process; nothing is global.

    Raises:
        TlsFilesError: Certificates cannot be used.

    Attributes:
        authentication: Tells who a peer is; None: whoever connects is served.
        registry: The metrics of a scrape that answer at once.
    """

    _forwards_http = False

    def __init__(
        self,
        config: ServerConfig,
        lookup_places: int,
        drain_seconds: float,
        clock: Clock | None,
        listen: Listen,
    ) -> None:
        limits = config.topic_list_limits
        self.limiter = AsyncDualMemoryLimiter(
            limits.heap, limits.direct, clock, rules=config.admission
        )
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
        self._listen = listen
        self.authentication = open_service(config.authentication, self._clock)
        self.registry = CollectorRegistry()
        self.flow = self._flow_parts()
        self.ledgers = self._keep_ledgers() if config.limiter_ledger else {}
        self.faults = FaultRegistry() if config.faults_enabled else None
        self._readiness = Readiness()
        self._listeners: list[Listener] = []
        tls = config.tls
        self.handshakes = TlsHandshakes(self._clock, tls.handshake_seconds if tls else 0.0)
        self.tls = ServerTls(tls, self._clock) if tls else None
        self.web_tls = ServerTls(config.web_tls, self._clock) if config.web_tls else None
        self._broker_tls: ClientTls | None = None

    @property
    def service_url(self) -> str:
        """Where clients connect; empty before they are taken."""
        return self.urls.any_service

    @property
    def web_service_url(self) -> str:
        """Where the web port is; empty before it is open."""
        return self.urls.any_web

    def _tls_contexts(self) -> dict[str, RefreshedContext]:
        """Return the certificates of this process, by what they are for."""
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
        )

    def _http_limits(self) -> HttpLimits:
        config = self._server_config.limits
        bounds = HttpBounds(
            a_second=config.http_a_second,
            at_once=config.http_at_once,
            connections=config.http_connections,
            body_bytes=config.http_body_bytes,
            header_bytes=config.http_header_bytes,
            seconds=config.http_seconds,
            body_status=400 if self._pulsar_compatible else 413,
            forwards=self._forwards_http,
        )
        return HttpLimits(bounds, self._clock, self.flow.limits.refusals)

    def change_water_marks(self, marks: WriteBufferMarks) -> None:
        """Change both marks of all connections at run time.

        One that is unwritable follows when it is writable again.

        Raises:
            ValueError: Nothing is below the low mark, so that who is paused would stay so.
        """
        if marks.low_bytes == 0 and self.flow.rules.pause_if_unwritable:
            raise ValueError("a low mark of 0 bytes: set at least 1")
        self.flow.rules = replace(self.flow.rules, marks=marks)
        for cnx in self.connections:
            cnx.outbound.change_marks(marks)

    def _keep_ledgers(self) -> dict[LimitType, Ledger]:
        """Return ledgers, which record from now on each holder and check that all is given back."""
        ledgers = {one: Ledger(self._clock, owner_name, f"{one.value} memory") for one in LimitType}
        for limit_type, ledger in ledgers.items():
            self.limiter.semaphore(limit_type).record_with(ledger)
        return ledgers

    @abstractmethod
    async def _start(self) -> None:
        """Make ready and listen, by ``_serve_http`` and ``_serve_clients``.

        Raises:
            StartError: In one sentence why that is not possible.
        """

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._exits.aclose()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self._drain()
        try:
            check_all_balanced(self.ledgers.values())
        except UnbalancedLedgerError as error:
            logger.error("after the drain %s", error)
            if kind is None:
                raise

    async def _serve_http(  # noqa: PLR0913 - all that a web port shows is given here
        self,
        prefix: MetricPrefix,
        own: Iterable[Collector],
        routes: Iterable[web.AbstractRouteDef] = (),
        places: Iterable[Place] = (),
        messages: Callable[[], StoredMessages] | None = None,
        gather: Gather | None = None,
        operations: Callable[[], Iterable[Operation]] = tuple,
    ) -> None:
        """Serve metrics, readiness and ``routes``, of which / names ``places``; not ready yet.

        ``operations`` are those of ``routes``, as far as they are not described already.
        """
        config, registry = self._server_config, self.registry
        logger.info("%s", info_sentence(prefix.removeprefix("pulsar_"), config))
        tally = OutcomeCounts(self._clock)
        self.limiter.observe_with(tally.observe)
        self._export_metrics(prefix, tally)
        metrics = TopicListMetrics(prefix, config.cluster_name, self.limiter, tally)
        lag = EventLoopLag(config.cluster_name, self._clock)
        lag.start()
        self._exits.callback(lag.stop)
        heap = c_heap()
        if heap is not None:
            freed = FreedMemory(heap, self._clock)
            freed.start()
            self._exits.callback(freed.stop)
        registry.register(HeapMetrics(config.cluster_name, heap))
        info = ServerInfo(config.cluster_name, lambda: self._server_config)
        refusals = LimitMetrics(config.cluster_name, self.flow.limits.refusals)
        for collector in (refusals, info, metrics, *own, ProcessMetrics(config.cluster_name), lag):
            registry.register(collector)
        contexts = self._tls_contexts()
        if contexts:
            registry.register(TlsMetrics(config.cluster_name, self.handshakes, contexts))
        if self.faults is not None:
            registry.register(FaultMetrics(config.cluster_name, self.faults))
        reporter = LimiterReporter(self.limiter, self.ledgers, self._clock, messages)
        cross_site = CrossSiteRule(
            config.advertised_address, config.bind_address, forms=self._pulsar_compatible
        )
        limits = self._http_limits()
        app = application(
            registry,
            self._readiness,
            [
                self._front_page(prefix, places),
                openapi_route(
                    f"Floodgate {prefix.removeprefix('pulsar_')}",
                    lambda app: (*own_operations(app), *operations()),
                ),
                *page_routes(f"Floodgate {prefix.removeprefix('pulsar_')}"),
                status_route(self._readiness, config.status_file_path),
                *routes,
                *limiter_routes(reporter),
                *fault_routes(self.faults, serves_topics=prefix == "pulsar_broker"),
                *ConnectionReports(lambda: self.connections, self._clock).routes(),
            ],
            [limits.middleware(), cross_site.middleware(), *self._authentication_steps()],
            gather,
            max(config.limits.http_body_bytes, MAX_REQUEST_BYTES),
        )
        await self._open_http(app, limits)

    async def _open_http(self, app: web.Application, limits: HttpLimits) -> None:
        config, plain, tls = self._server_config, [], []
        if config.web_service_port is not None:
            plain.append(HttpPort(config.web_service_port))
        if config.web_service_port_tls is not None and self.web_tls is not None:
            spoken = ListenerTls(self.web_tls.http_context, self.web_tls.settings.handshake_seconds)
            tls.append(HttpPort(config.web_service_port_tls, "webServicePortTls", spoken))
        http = await serve_http(app, config.bind_address, [*plain, *tls], self._listen, limits)
        self._exits.push_async_callback(http.close)
        ports = [listener.port for listener in http.listeners]
        if plain:
            self.urls = self.urls._replace(web=self._url("http", ports[0]))
        if tls:
            self.urls = self.urls._replace(web_tls=self._url("https", ports[-1]))

    def _url(self, scheme: str, port: int) -> str:
        return f"{scheme}://{host_port(self._server_config.advertised_address, port)}"

    def _authentication_steps(self) -> Iterator[Middleware]:
        settings = self._server_config.authentication
        if self.authentication is not None and settings is not None:
            open_to_all = open_paths(covers_metrics=settings.covers_metrics)
            yield authentication_middleware(self.authentication, open_to_all)

    def _front_page(self, prefix: MetricPrefix, places: Iterable[Place]) -> web.RouteDef:
        def state() -> str:
            said = self._readiness.state.value
            return f"{said}; clients connect to {self.service_url}" if self.service_url else said

        role = prefix.removeprefix("pulsar_")
        return front_page_route(role, self._server_config, state, places)

    def _export_metrics(self, prefix: MetricPrefix, tally: OutcomeCounts) -> None:
        """Send metrics by OpenTelemetry too, if the environment asks for it."""
        settings = telemetry_settings()
        if settings is None:
            return
        from server.metrics.otel_export import MetricExport

        service = {
            "service.name": prefix.replace("pulsar_", "floodgate-"),
            "pulsar.cluster": self._server_config.cluster_name,
        }
        flow = self.flow.totals if prefix == "pulsar_broker" else None
        export = MetricExport(settings, service, self.limiter, tally, flow, self._clock)
        self._exits.push_async_callback(export.close)

    async def _serve_clients(
        self,
        factory: Callable[[AcceptedTls | None], CnxT],
        port: int | None,
        port_key: str,
    ) -> None:
        """Take clients on the plain port, and on the one for TLS; ready from now on.

        Args:
            factory: Makes a connection, of its TLS where it speaks any.
            port: The plain one; None for none.
            port_key: Its key; that of the other has Tls behind it.
        """
        # What was made until now stays: keep the collector off it.
        gc.collect()
        gc.freeze()
        urls, tls, tls_port = self.urls, self.tls, self._server_config.service_port_tls
        if port is not None:
            found = await self._accept(lambda: factory(None), port, port_key)
            urls = urls._replace(service=self._url("pulsar", found))
        if tls is not None and tls_port is not None:
            found = await self._accept(
                lambda: factory(AcceptedTls(tls.layer(), self.handshakes)),
                tls_port,
                f"{port_key}Tls",
            )
            urls = urls._replace(service_tls=self._url("pulsar+ssl", found))
        self.urls = urls
        self._readiness.state = ProcessState.READY

    async def _accept(self, factory: Callable[[], CnxT], port: int, port_key: str) -> int:
        """Listen for clients; return the port that was found."""
        config = self._server_config
        listener = await self._listen(
            factory if self.faults is None else partial(self._made_with_faults, factory),
            config.bind_address,
            port,
            port_key=port_key,
            send_buffer_bytes=config.socket_send_buffer_bytes,
        )
        self._listeners.append(listener)
        self._exits.callback(listener.close)
        return listener.port

    def _made_with_faults(self, factory: Callable[[], CnxT]) -> CnxT:
        cnx = factory()
        if self.faults is not None:
            cnx.faults = ConnectionFaults(self.faults, self._clock, cnx, Incoming(cnx))
            OutgoingFaults(self.faults, self._clock, cnx)
        return cnx

    async def _send_clients_away(self) -> None:
        """Let go of what this server serves, and tell its clients; it waits for no peer."""

    async def _drain(self) -> None:
        """Stop in this order; what takes longer than the drain may is cut off.

        1. Say so at the readiness endpoint and accept nobody new.
        2. Tell clients to go elsewhere; requests are still taken.
        3. Take no more requests, let those under way answer and queued answers leave.
        4. Close what is left, then what the start opened, the newest first.
        """
        self._readiness.state = ProcessState.DRAINING
        for listener in self._listeners:
            listener.close()
        self.handshakes.abort_all()
        self.flow.slow_peers.drain()
        try:
            async with deadline(self._clock, self._drain_seconds):
                await self._send_clients_away()
                for cnx in self.connections:
                    cnx.begin_drain()
                await asyncio.gather(*[cnx.drain() for cnx in self.connections])
                for cnx in list(self.connections):
                    await cnx.wait_closed()
        except TimeoutError:
            logger.warning("%d connections did not end in time", len(self.connections))
        for cnx in list(self.connections):
            cnx.abort()
            await cnx.wait_closed()
        self.limiter.close()
        await self._exits.aclose()
