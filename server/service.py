"""The base of the services: a server process serves, says that it is ready, and drains."""

from __future__ import annotations

import asyncio
import gc
import logging
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from dataclasses import replace
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
from server.configuration.addresses import host_port
from server.configuration.common import Profile
from server.connection.counters import ConnectionCounters
from server.connection.flow_parts import FLOODGATE_RULES, PULSAR_RULES, FlowParts
from server.connection.served_connection import ServedConnection
from server.cross_site import CrossSiteRule
from server.front_page import Place, front_page_route
from server.http import ProcessState, Readiness, application, serve_http
from server.limiter_report.report import LimiterReporter, StoredMessages, owner_name
from server.limiter_report.routes import limiter_routes
from server.metrics.otel_settings import telemetry_settings
from server.metrics.process import EventLoopLag, ProcessMetrics, ServerInfo
from server.server_info import info_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aiohttp import web
    from prometheus_client.registry import Collector

    from limiter.metrics.prometheus import MetricPrefix
    from server.configuration.common import ServerConfig
    from server.connection.listener import Listen, Listener
    from server.metrics.scrape import Gather

logger = logging.getLogger(__name__)


CnxT = TypeVar("CnxT", bound=ServedConnection)


class ServerService(ABC, Generic[CnxT]):
    """A server in this process: ``async with`` serves inside the block and has drained after it.

    Several can live in one process; nothing is global.

    Attributes:
        registry: The metrics of a scrape that answer at once.
    """

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
        self.service_url = ""
        self.web_service_url = ""
        self._exits = AsyncExitStack()
        self._server_config = config
        self._pulsar_compatible = config.profile is Profile.PULSAR
        self._drain_seconds = drain_seconds
        self._clock: Clock = clock or LoopClock()
        self._listen = listen
        self.registry = CollectorRegistry()
        self.flow = self._flow_parts()
        self.ledgers = self._keep_ledgers() if config.limiter_ledger else {}
        self._readiness = Readiness()
        self._listener: Listener | None = None

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
        )

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

    async def _serve_http(
        self,
        prefix: MetricPrefix,
        own: Iterable[Collector],
        routes: Iterable[web.AbstractRouteDef] = (),
        places: Iterable[Place] = (),
        messages: Callable[[], StoredMessages] | None = None,
        gather: Gather | None = None,
    ) -> None:
        """Serve metrics, readiness and ``routes``, of which / names ``places``; not ready yet."""
        config, registry = self._server_config, self.registry
        logger.info("%s", info_sentence(prefix.removeprefix("pulsar_"), config))
        tally = OutcomeCounts(self._clock)
        self.limiter.observe_with(tally.observe)
        self._export_metrics(prefix, tally)
        metrics = TopicListMetrics(prefix, config.cluster_name, self.limiter, tally)
        lag = EventLoopLag(config.cluster_name, self._clock)
        lag.start()
        self._exits.callback(lag.stop)
        info = ServerInfo(config.cluster_name, lambda: self._server_config)
        for collector in (info, metrics, *own, ProcessMetrics(config.cluster_name), lag):
            registry.register(collector)
        reporter = LimiterReporter(self.limiter, self.ledgers, self._clock, messages)
        cross_site = CrossSiteRule(
            config.advertised_address, config.bind_address, forms=self._pulsar_compatible
        )
        app = application(
            registry,
            self._readiness,
            [self._front_page(prefix, places), *routes, *limiter_routes(reporter)],
            [cross_site.middleware()],
            gather,
        )
        address = config.bind_address, config.web_service_port
        http = await serve_http(app, *address, self._listen)
        self._exits.push_async_callback(http.close)
        self.web_service_url = f"http://{host_port(config.advertised_address, http.listener.port)}"

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
        self, factory: Callable[[], asyncio.BaseProtocol], port: int, port_key: str
    ) -> None:
        config = self._server_config
        # What was made until now stays: keep the collector off it.
        gc.collect()
        gc.freeze()
        self._listener = await self._listen(
            factory,
            config.bind_address,
            port,
            port_key=port_key,
            send_buffer_bytes=config.socket_send_buffer_bytes,
        )
        self._exits.callback(self._listener.close)
        self.service_url = f"pulsar://{host_port(config.advertised_address, self._listener.port)}"
        self._readiness.state = ProcessState.READY

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
        if self._listener is not None:
            self._listener.close()
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
