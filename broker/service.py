"""A broker: its parts, put together, and its life from start to drain."""

from __future__ import annotations

import gc
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pyarrow as pa
from prometheus_client import CollectorRegistry

from broker.admin import import_routes
from broker.cnx import BrokerParts, ServerCnx
from broker.config import TopicType
from broker.estimates import ListingEstimates
from broker.importer import ImportFailedError, import_topics
from broker.listing import PatternFilter, TopicLister
from broker.lookup import AutoCreation, LookupHandler
from broker.metrics import BrokerMetrics
from broker.stores.open_store import store_for_url
from broker.stores.store import StoreError
from broker.topics import GetTopicsHandler
from limiter.clock import Clock, LoopClock, deadline
from limiter.dual import AsyncDualMemoryLimiter
from limiter.lookups import LookupSemaphore
from limiter.metrics import TopicListMetrics
from limiter.outbound import OutboundTotals, WriteBufferMarks
from limiter.response_memory import PrivateMemory, ResponseMemory, SharedMemory
from proto.names import NamespaceName
from server.addresses import host_port
from server.counters import ConnectionCounters
from server.errors import StartError
from server.http import ProcessState, Readiness, application, serve_http
from server.limits_config import Profile, ResponseBuffers
from server.listener import Listener, listen
from server.process_metrics import EventLoopLag, ProcessMetrics

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from broker.config import BrokerConfig
    from broker.stores.store import MetadataStore
    from server.http import HttpServer

logger = logging.getLogger(__name__)

FIRST_NAMESPACES = ("public/default", "pulsar/system")
"""Namespaces that a standalone Pulsar starts with."""


class BrokerService:
    """One broker in this process.

    Use as ``async with BrokerService(config) as broker``: it serves inside the block and has
    drained after it. Several can live in one process; nothing is global.

    Args:
        config: What it is told.
        imports: Files of topics to load before it serves.
        clock: Where time comes from.

    Source: upstream BrokerService.
    """

    def __init__(
        self, config: BrokerConfig, imports: Iterable[Path] = (), clock: Clock | None = None
    ) -> None:
        self.config = config
        self.limiter = AsyncDualMemoryLimiter(
            config.topic_list_limits.heap, config.topic_list_limits.direct, clock
        )
        self.lookups = LookupSemaphore(config.max_concurrent_lookup_requests)
        self.counters = ConnectionCounters()
        self.totals = OutboundTotals()
        self.connections: set[ServerCnx] = set()
        self.service_url = ""
        self.web_service_url = ""
        self._imports = tuple(imports)
        self._clock: Clock = clock or LoopClock()
        self._readiness = Readiness()
        self._listener: Listener | None = None
        self._exits = AsyncExitStack()
        self.store: MetadataStore

    async def __aenter__(self) -> BrokerService:
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
        await self._open_store()
        http = await self._serve_http()
        for path in self._imports:
            await self._import(path)
        settle_memory()
        parts = self._parts()
        self._listener = await listen(
            lambda: ServerCnx(parts),
            config.bind_address,
            config.broker_service_port,
            send_buffer_bytes=config.socket_send_buffer_bytes,
        )
        self._exits.callback(self._listener.close)
        host = config.advertised_address
        self.service_url = f"pulsar://{host_port(host, self._listener.port)}"
        self.web_service_url = f"http://{host_port(host, http.listener.port)}"
        self._readiness.state = ProcessState.READY

    async def _open_store(self) -> None:
        try:
            self.store = store_for_url(
                self.config.metadata_store_url, self.config.snapshot_cache_max_bytes
            )
            await self.store.open()
            self._exits.push_async_callback(self.store.close)
            for name in FIRST_NAMESPACES:
                await self.store.create_namespace(NamespaceName.parse(name))
        except StoreError as error:
            raise StartError(str(error)) from None

    async def _import(self, path: Path) -> None:
        try:
            result = await import_topics(self.store, path)
        except (ImportFailedError, StoreError) as error:
            raise StartError(f"--import: {error}") from None
        logger.info(
            "imported %d topics of %d namespaces from %s in %.1f s",
            result.topics,
            result.namespaces,
            path,
            result.seconds,
        )

    async def _serve_http(self) -> HttpServer:
        config, registry = self.config, CollectorRegistry()
        metrics = TopicListMetrics("pulsar_broker", config.cluster_name, self.limiter, self._clock)
        self.limiter.observe_with(metrics.observe)
        lag = EventLoopLag(config.cluster_name, self._clock)
        lag.start()
        self._exits.callback(lag.stop)
        for collector in (metrics, self._metrics(), ProcessMetrics(config.cluster_name), lag):
            registry.register(collector)
        routes = import_routes(lambda: self.store, config.import_directory)
        app = application(registry, self._readiness, routes)
        http = await serve_http(app, config.bind_address, config.web_service_port)
        self._exits.push_async_callback(http.close)
        return http

    def _metrics(self) -> BrokerMetrics:
        return BrokerMetrics(
            self.config.cluster_name,
            self.config.advertised_address,
            self.counters,
            lambda: self.lookups.pending_requests,
            self.totals,
        )

    def _parts(self) -> BrokerParts:
        config = self.config
        memory = self._memory()
        marks = config.water_marks
        return BrokerParts(
            config=config,
            as_shipped=config.profile is Profile.PULSAR,
            marks=WriteBufferMarks(marks.high_bytes, marks.low_bytes),
            lookups=self.lookups,
            lookup_handler=self._lookup_handler(),
            topics_handler=self._topics_handler(memory),
            memory=memory,
            counters=self.counters,
            totals=self.totals,
            connections=self.connections,
        )

    def _memory(self) -> ResponseMemory:
        if self.config.response_buffers is ResponseBuffers.SHARED:
            return SharedMemory(self.limiter)
        return PrivateMemory(self.limiter)

    def _lookup_handler(self) -> LookupHandler:
        config = self.config
        partitioned = config.allow_auto_topic_creation_type is TopicType.PARTITIONED
        partitions = config.default_num_partitions if partitioned else 0
        auto_creation = AutoCreation(config.allow_auto_topic_creation, partitions)
        return LookupHandler(self.store, lambda: self.service_url, auto_creation)

    def _topics_handler(self, memory: ResponseMemory) -> GetTopicsHandler:
        config = self.config
        shared = config.response_buffers is ResponseBuffers.SHARED
        lister = TopicLister(self.store)
        pattern_filter = PatternFilter(
            enabled=config.enable_broker_side_subscription_pattern_evaluation,
            max_length=config.subscription_pattern_max_length,
            implementation=config.topics_pattern_regex_implementation,
            share=shared,
            clock=self._clock,
        )
        return GetTopicsHandler(
            lister,
            pattern_filter,
            ListingEstimates(config.size_estimate, lister),
            memory,
            as_shipped=config.profile is Profile.PULSAR,
            private_buffers=not shared,
        )

    # -- end ----------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Stop in this order; what takes longer than brokerShutdownTimeoutMs is cut off.

        1. Say so at the readiness endpoint and accept nobody new.
        2. Take no more requests, let those under way answer and queued answers leave.
        3. Close what is left, then the HTTP endpoint and the store.
        """
        self._readiness.state = ProcessState.DRAINING
        if self._listener is not None:
            self._listener.close()
        try:
            async with deadline(self._clock, self.config.broker_shutdown_timeout_seconds):
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


def settle_memory() -> None:
    """Give back what loading needed, and keep the collector off what stays."""
    pa.default_memory_pool().release_unused()
    gc.collect()
    gc.freeze()
