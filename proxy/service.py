"""A proxy: its parts, put together, and its life from start to drain."""

from __future__ import annotations

import gc
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from client.pool import ConnectionPool, server_address
from limiter.clock import Clock, LoopClock, deadline
from limiter.dual import AsyncDualMemoryLimiter
from limiter.estimate import SizeEstimate
from limiter.lookups import LookupSemaphore
from limiter.metrics import TopicListMetrics
from limiter.outbound import OutboundTotals
from proxy.brokers import (
    BrokerConnections,
    OwnBrokerConnections,
    SharedBrokerConnections,
    connect_options,
)
from proxy.charging import Charging, ExactCharging, ShippedCharging
from proxy.cnx import ProxyConnection, ProxyParts
from proxy.direct_handler import DirectProxyHandler
from proxy.errors import ErrorForms, ErrorTranslation
from proxy.flights import Flights
from proxy.lookup_handler import LookupProxyHandler
from proxy.metrics import ProxyMetrics
from proxy.targets import BrokerTargets
from server.addresses import host_port
from server.counters import ConnectionCounters, ProxyCounters
from server.http import ProcessState, Readiness, application, serve_http
from server.limits_config import Profile, ResponseBuffers
from server.listener import Listener, listen
from server.process_metrics import EventLoopLag, ProcessMetrics

if TYPE_CHECKING:
    from proxy.config import ProxyConfig
    from server.http import HttpServer

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 60.0
"""How long a drain may take; the proxy has no key for it upstream."""


class ProxyService:
    """One proxy in this process.

    Use as ``async with ProxyService(config) as proxy``: it serves inside the block and has
    drained after it. Several can live in one process; nothing is global.

    Args:
        config: What it is told.
        clock: Where time comes from.

    Source: upstream ProxyService.
    """

    def __init__(self, config: ProxyConfig, clock: Clock | None = None) -> None:
        self.config = config
        self.as_shipped = config.profile is Profile.PULSAR
        self.limiter = AsyncDualMemoryLimiter(
            config.topic_list_limits.heap, config.topic_list_limits.direct, clock
        )
        self.lookups = LookupSemaphore(config.max_concurrent_lookup_requests)
        self.counters = ProxyCounters()
        self.connection_counters = ConnectionCounters()
        self.totals = OutboundTotals()
        self.connections: set[ProxyConnection] = set()
        self.service_url = ""
        self.web_service_url = ""
        self._clock: Clock = clock or LoopClock()
        self._pool = ConnectionPool(connect_options(drain_oversized=True), self._clock)
        self._readiness = Readiness()
        self._listener: Listener | None = None
        self._exits = AsyncExitStack()

    async def __aenter__(self) -> ProxyService:
        try:
            await self._start()
        except BaseException:
            await self._exits.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._drain()

    # -- start --------------------------------------------------------------------------------

    async def _start(self) -> None:
        config = self.config
        self._exits.push_async_callback(self._pool.close)
        http = await self._serve_http()
        parts = self._parts()
        gc.collect()
        gc.freeze()
        self._listener = await listen(
            lambda: ProxyConnection(parts),
            config.bind_address,
            config.service_port,
            send_buffer_bytes=config.socket_send_buffer_bytes,
        )
        self._exits.callback(self._listener.close)
        host = config.advertised_address
        self.service_url = f"pulsar://{host_port(host, self._listener.port)}"
        self.web_service_url = f"http://{host_port(host, http.listener.port)}"
        self._readiness.state = ProcessState.READY

    async def _serve_http(self) -> HttpServer:
        config, registry = self.config, CollectorRegistry()
        metrics = TopicListMetrics("pulsar_proxy", config.cluster_name, self.limiter, self._clock)
        self.limiter.observe_with(metrics.observe)
        lag = EventLoopLag(config.cluster_name, self._clock)
        lag.start()
        self._exits.callback(lag.stop)
        for collector in (metrics, self._metrics(), ProcessMetrics(config.cluster_name), lag):
            registry.register(collector)
        app = application(registry, self._readiness)
        http = await serve_http(app, config.bind_address, config.web_service_port)
        self._exits.push_async_callback(http.close)
        return http

    def _metrics(self) -> ProxyMetrics:
        return ProxyMetrics(
            self.config.cluster_name,
            self.connection_counters,
            self.counters,
            lambda: self.lookups.pending_requests,
            self.totals,
        )

    def _parts(self) -> ProxyParts:
        translation = ErrorTranslation(as_shipped=self.as_shipped)
        address = server_address(self.config.broker_service_url)
        share = self.config.response_buffers is ResponseBuffers.SHARED
        return ProxyParts(
            config=self.config,
            as_shipped=self.as_shipped,
            address=address,
            lookups=self.lookups,
            lookup_handler=LookupProxyHandler(address, translation, as_shipped=self.as_shipped),
            flights=Flights(self.limiter, self._charging(), translation, share=share),
            new_brokers=self._new_brokers,
            direct_handler=self._direct_handler(),
            error_forms=ErrorForms.of_profile(as_shipped=self.as_shipped),
            counters=self.counters,
            connection_counters=self.connection_counters,
            per_ip={},
            totals=self.totals,
            connections=self.connections,
        )

    def _direct_handler(self) -> DirectProxyHandler:
        return DirectProxyHandler(
            BrokerTargets(self.config),
            self.totals,
            self._clock,
            self.config.broker_proxy_connect_timeout_seconds,
            as_shipped=self.as_shipped,
        )

    def _charging(self) -> Charging:
        if self.config.size_estimate is SizeEstimate.EXACT:
            return ExactCharging(self.limiter)
        return ShippedCharging(self.limiter, self.config.size_estimate)

    def _new_brokers(self) -> BrokerConnections:
        """Return a new client's way to brokers; shared answers need shared connections."""
        if self.as_shipped and self.config.response_buffers is ResponseBuffers.PRIVATE:
            return OwnBrokerConnections(self._clock)
        return SharedBrokerConnections(self._pool)

    # -- end ----------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Stop in this order; what takes longer than DRAIN_SECONDS is cut off.

        1. Say so at the readiness endpoint and accept nobody new.
        2. Take no more requests, let those under way answer and queued answers leave; close
           pipes.
        3. Close what is left, then broker connections and the HTTP endpoint.
        """
        self._readiness.state = ProcessState.DRAINING
        if self._listener is not None:
            self._listener.close()
        try:
            async with deadline(self._clock, DRAIN_SECONDS):
                for cnx in self.connections:
                    cnx.take_no_more()
                for cnx in list(self.connections):
                    await cnx.drain()
                for cnx in list(self.connections):
                    await cnx.wait_closed()
        except TimeoutError:
            logger.warning("%d connections did not end in time", len(self.connections))
        for cnx in list(self.connections):
            cnx.abort()
            await cnx.wait_closed()
        self.limiter.close()
        await self._exits.aclose()
