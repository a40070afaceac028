"""A broker: its parts, put together, and its life from start to drain."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow as pa

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
from limiter.response_memory import PrivateMemory, ResponseMemory, SharedMemory
from proto.names import NamespaceName
from server.errors import StartError
from server.limits_config import Profile, ResponseBuffers
from server.service import ServerService
from server.unanswered import UnansweredRequests

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from broker.config import BrokerConfig
    from broker.stores.store import MetadataStore
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

FIRST_NAMESPACES = ("public/default", "pulsar/system")
"""Namespaces that a standalone Pulsar starts with."""


class BrokerService(ServerService["ServerCnx"]):
    """One broker: ``async with BrokerService(config) as broker``.

    Args:
        config: What it is told.
        imports: Files of topics to load before it serves.
        clock: Where time comes from.

    Source: upstream BrokerService.
    """

    def __init__(
        self, config: BrokerConfig, imports: Iterable[Path] = (), clock: Clock | None = None
    ) -> None:
        super().__init__(
            config,
            config.max_concurrent_lookup_requests,
            config.broker_shutdown_timeout_seconds,
            clock,
        )
        self.config = config
        self._imports = tuple(imports)
        self.unanswered = UnansweredRequests(self._clock, " and keeps its lookup permit")
        self.store: MetadataStore

    async def _start(self) -> None:
        config = self.config
        await self._open_store()
        routes = import_routes(lambda: self.store, config.import_directory)
        await self._serve_http("pulsar_broker", self._metrics(), routes)
        for path in self._imports:
            await self._import(path)
        pa.default_memory_pool().release_unused()
        parts = self._parts()
        await self._serve_clients(lambda: ServerCnx(parts), config.broker_service_port)

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

    def _metrics(self) -> BrokerMetrics:
        return BrokerMetrics(
            self.config.cluster_name,
            self.config.advertised_address,
            self.connection_counters,
            lambda: self.lookups.pending_requests,
            lambda: self.unanswered.total,
            self.flow.totals,
        )

    def _parts(self) -> BrokerParts:
        config = self.config
        memory = self._memory()
        return BrokerParts(
            config=config,
            as_shipped=config.profile is Profile.PULSAR,
            flow=self.flow,
            lookups=self.lookups,
            unanswered=self.unanswered,
            lookup_handler=self._lookup_handler(),
            topics_handler=self._topics_handler(memory),
            memory=memory,
            counters=self.connection_counters,
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
        as_shipped = config.profile is Profile.PULSAR
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
            ListingEstimates(config.size_estimate, lister, as_shipped=as_shipped),
            memory,
            as_shipped=as_shipped,
            private_buffers=not shared,
        )
