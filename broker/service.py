"""The broker as a service: it creates all parts of a broker, starts them, and shuts them down."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from broker import metrics
from broker.admin.authorizing import RequestAuthorization
from broker.admin.context import FLOODGATE_ADMIN, PULSAR_ADMIN, AdminContext
from broker.admin.listing_response import ListingResponses
from broker.admin.openapi.operations import admin_operations
from broker.admin.resources.floodgate import clock_routes, import_routes, reset_routes
from broker.admin.routes import ADMIN_PLACES, admin_routes, endpoints
from broker.authorization.grants import forget_grants
from broker.authorization.parts import AuthorizationParts, authorization_parts
from broker.cnx import BrokerParts, ServerCnx
from broker.columns import EXTRA, HAS_COLUMNS
from broker.commands.discovery import named_or_closed, named_or_refused
from broker.commands.table import COMMANDS
from broker.configuration.dynamic import DynamicConfiguration
from broker.listing.estimates import ListingEstimates
from broker.listing.handler import GetTopicsHandler
from broker.listing.lister import TopicLister, open_lister
from broker.listing.rules import AnswerRules
from broker.messages.loading.loaded_topics import TopicParts
from broker.messaging import Messaging
from broker.metrics import LoadUsage
from broker.ownership.open_ownership import is_shared, shared_ownership, sole_ownership
from broker.patterns.backtracking import PatternWorkers
from broker.patterns.cache import ListingCache
from broker.patterns.filter import PatternFilter
from broker.policies.service import PolicyService
from broker.schemas.avro.judge import ProcessJudge
from broker.schemas.checks import SchemaChecks
from broker.schemas.registry import SchemaRegistry
from broker.schemas.schema import FLOODGATE_SCHEMAS, PULSAR_SCHEMAS
from broker.stores.changes import StoreError
from broker.stores.open_store import store_for_url
from broker.stores.store_url import MEMORY_SCHEME
from broker.topics.lookup import LookupHandler, LookupOutcomes
from broker.topics.properties import TopicProperties
from broker.topics.rules import TopicRules
from broker.topics.service import TopicService
from broker.watches.context import WatchContext
from broker.watches.rules import FLOODGATE_WATCHES, PULSAR_WATCHES
from broker.watches.service import TopicListService
from limiter.extras import SERVERS, extra
from limiter.memory.dual_limiter import LimitType
from limiter.memory.response_memory import PrivateMemory, ResponseMemory, SharedMemory
from proto.names import NamespaceName
from proto.version import FLOODGATE_VERSION
from server import instruments
from server.authentication.handshake import ConnectRules, ProxyRules
from server.configuration.common import ResponseBuffers
from server.connection.listener import Listen, listen
from server.connection.permitted_requests import PermitRules
from server.connection.unanswered_requests import UnansweredRequests
from server.errors import StartError
from server.imports import NO_IMPORTS
from server.service import ServerService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.configuration.config import BrokerConfig
    from broker.ownership.ownership import Ownership
    from broker.ownership.shared import SharedOwnership
    from broker.stores.store import MetadataStore
    from limiter.clock import Clock
    from limiter.metrics.prometheus import Instruments
    from server.imports import Imports

logger = logging.getLogger(__name__)

FIRST_NAMESPACES = ("public/default", "pulsar/system")
"""Initial namespaces of a standalone Pulsar."""
_FORGOTTEN_INSTANCES = 100_000
"""With a store in memory, a start's number is its time in ms modulo this."""


class BrokerService(ServerService["ServerCnx"]):
    """A broker that runs inside ``async with BrokerService(config) as broker``.

    Source: upstream BrokerService.
    """

    def __init__(
        self,
        config: BrokerConfig,
        imports: Imports = NO_IMPORTS,
        clock: Clock | None = None,
        listen: Listen = listen,
    ) -> None:
        config = config.copied()  # Changes at run time are this broker's own.
        super().__init__(
            config,
            config.max_concurrent_lookup_requests,
            config.broker_shutdown_timeout_seconds,
            clock,
            listen,
        )
        self.config = config
        self._imports = imports
        self.lookup_outcomes = LookupOutcomes(self._clock)
        self.unanswered = UnansweredRequests(self._clock, " and keeps its lookup permit")
        self._admin_listings = ListingResponses(self._clock)
        self.listing_cache = ListingCache(config.listing_cache_max_bytes)
        self.store: MetadataStore
        self.lister: TopicLister
        self.dynamic: DynamicConfiguration
        self.policies: PolicyService
        self.topics: TopicService
        self.watches: TopicListService
        self.lookup_handler: LookupHandler
        self.messaging: Messaging
        self._followers: list[Callable[[BrokerConfig], object]] = []
        self.ownership: Ownership
        self.authorization: AuthorizationParts | None = None
        self._shared: SharedOwnership | None = None

    @property
    def overdue_calls(self) -> int:
        """Number of plug-in calls that still run after their time limit; they cannot be stopped."""
        calls = self.lister.calls
        return calls.overdue if calls is not None else 0

    async def _start(self) -> None:
        config = self.config
        await self._open_store()
        opened = open_lister(self.store, config, self._clock)
        self.lister = await self._exits.enter_async_context(opened)
        self._choose_ownership()
        await self._take_dynamic_configuration()
        self.messaging = self._messaging(await self._instance())
        await self.messaging.open(self._exits)
        if self._pulsar_compatible:
            self.lister.in_use = self.messaging.loaded_topics.non_persistent_in_use
        self.messaging.follow(self.dynamic.config)
        self._followers.append(self.messaging.follow)
        admin = self._admin_context()
        routes = [
            *import_routes(lambda: self.store, config.import_directory),
            *reset_routes(admin, FIRST_NAMESPACES, self.faults),
            *clock_routes(self.moved_clock),
        ]
        parts = self._parts()
        await self._serve_http(
            "pulsar_broker",
            self._metrics(),
            routes,
            ADMIN_PLACES,
            dispatches=admin_routes(admin, self._request_authorization()),
            messages=self.messaging.stored,
            gather=self.messaging.metrics.gather,
            operations=lambda: admin_operations(endpoints(admin)),
        )
        await self._import()
        await self._serve_clients(
            lambda tls: ServerCnx(parts, tls), config.broker_service_port, "brokerServicePort"
        )
        if self._shared is not None:
            identity = self.messaging.store.identity
            try:
                await self._shared.open(self.urls, identity)
                await self._make_first_namespaces()
            except StoreError as error:
                raise StartError(str(error)) from None

    async def _import(self) -> None:
        if self._imports.paths:
            with extra(EXTRA, SERVERS, "--import"):
                from broker.imports.importer import import_at_start

            await import_at_start(self.store, self._imports)
        if HAS_COLUMNS:
            import pyarrow as pa

            pa.default_memory_pool().release_unused()

    def _served(self) -> str:
        producers = sum(len(cnx.producers) for cnx in self.connections)
        consumers = sum(len(cnx.consumers) for cnx in self.connections)
        return f"{super()._served()}, producers: {producers}, consumers: {consumers}"

    async def _send_clients_away(self) -> None:
        """Send pending receipts, hand the bundles over to other brokers, and close all topics."""
        topics = self.messaging.loaded_topics
        for cnx in self.connections:
            cnx.takes_messages = False
        await topics.flushed()
        if self._shared is None:
            await topics.close()
        else:
            await topics.close(await self._shared.hand_over())

    async def _open_store(self) -> None:
        try:
            url, cache_bytes = self.config.metadata_store_url, self.config.snapshot_cache_max_bytes
            self.store = store_for_url(url, cache_bytes, self._clock)
            await self.store.open()
            self._exits.push_async_callback(self.store.close)
            if not is_shared(self.config.metadata_store_url):
                await self._make_first_namespaces()
        except StoreError as error:
            raise StartError(str(error)) from None

    async def _make_first_namespaces(self) -> None:
        for name in FIRST_NAMESPACES:
            namespace = NamespaceName.parse(name)
            if await self.store.policies(namespace) is None:
                if self._shared is not None:  # See NamespaceAdmin.create.
                    await self._shared.namespaces_deleted([namespace])
                await self.store.create_namespace(namespace)

    def _choose_ownership(self) -> None:
        """Choose which brokers own topics: this one alone, or all that share its store."""
        config = self.config
        if is_shared(config.metadata_store_url):
            lease_seconds = config.metadata_store_session_timeout_seconds
            self._shared = shared_ownership(self.store, lease_seconds, self._clock)
            self._exits.push_async_callback(self._shared.close)
            self.ownership = self._shared
            self._shares_topics = True
        else:
            self.ownership = sole_ownership(
                self.store,
                lambda: self.urls,
                pulsar_compatible=self._pulsar_compatible,
            )

    async def _take_dynamic_configuration(self) -> None:
        self.dynamic = DynamicConfiguration(self.config, self.store, self._put_in_force)
        self.policies = PolicyService(
            self.store, lambda: self.dynamic.config.policies, self._message_clock
        )
        try:
            await self.dynamic.start()
            await self.policies.start()
        except StoreError as error:
            raise StartError(str(error)) from None
        self._exits.push_async_callback(self.dynamic.close)
        self._exits.push_async_callback(self.policies.close)
        self._choose_authorization()
        self.topics = TopicService(self.store, self._topic_rules)
        self.topics.on_deleted(self.policies.forget)
        self.topics.on_deleted(partial(forget_grants, self.policies))
        self.schemas = self._schema_registry()
        self.topics.on_deleted(self.schemas.forget)

    def _choose_authorization(self) -> None:
        self.authorization = authorization_parts(
            lambda: self.dynamic.config,
            self.store,
            self.policies,
            self.connections,
            self._message_clock,
            self.refused,
        )
        if self.authorization is not None:
            self._exits.push_async_callback(self.authorization.revocation.close)

    def _topic_rules(self, namespace: NamespaceName) -> TopicRules:
        return TopicRules.of(self.dynamic.config, self.policies.of_namespace(namespace))

    def _schema_registry(self) -> SchemaRegistry:
        judge = ProcessJudge(self._clock)
        self._exits.push_async_callback(judge.close)
        rules = PULSAR_SCHEMAS if self._pulsar_compatible else FLOODGATE_SCHEMAS
        checks = SchemaChecks(judge)
        return SchemaRegistry(self.store, checks, self._message_clock.wall_ms, rules)

    def _put_in_force(self, before: BrokerConfig) -> None:
        """Apply a configuration, changed at run time, to all parts of the broker."""
        config = self.config
        self.policies.configuration_changed()
        if self.authorization is not None and config.authorization != before.authorization:
            self.authorization.revocation.look_at_all()
        limits = config.topic_list_limits
        for limit_type, limit in (
            (LimitType.HEAP_MEMORY, limits.heap),
            (LimitType.DIRECT_MEMORY, limits.direct),
        ):
            self.limiter.change_limit(
                limit_type, limit.max_bytes, limit.max_queue_size, limit.timeout_seconds
            )
        if config.flow.rules.marks != self.flow.rules.marks:
            self.change_water_marks(config.flow.rules.marks)
        self.lookups.max_requests = config.max_concurrent_lookup_requests
        self._drain_seconds = config.broker_shutdown_timeout_seconds
        for follow in self._followers:
            follow(config)

    def _admin_context(self) -> AdminContext:
        return AdminContext(
            store=self.store,
            lister=self.lister,
            topics=self.topics,
            properties=TopicProperties(self.store),
            message_policies=self.policies,
            messaging=self.messaging,
            schemas=self.schemas,
            dynamic=self.dynamic,
            listings=self._admin_listings,
            ownership=self.ownership,
            lookups=self.lookup_outcomes,
            lookup_places=self.lookups,
            urls=lambda: self.urls,
            rules=PULSAR_ADMIN if self._pulsar_compatible else FLOODGATE_ADMIN,
            tenants_changed=self._tenants_changed,
        )

    def _tenants_changed(self) -> None:
        if self.authorization is not None:
            self.authorization.tenants.forget()
            if not self._pulsar_compatible:
                self.authorization.revocation.look_at_all()

    def _request_authorization(self) -> RequestAuthorization | None:
        if self.authorization is None:
            return None
        return RequestAuthorization(
            self.authorization.service,
            lambda: self.urls.web_address,
            guards_subscriptions=not self._pulsar_compatible,
        )

    def _metrics(self) -> Iterator[Instruments[Any]]:
        shown, labels = self._instruments, {"broker": self.config.advertised_address}
        connections = {**labels, "metric": "broker_connection"}
        yield shown(metrics.CONNECTIONS, lambda: self.connection_counters, **connections)
        yield shown(metrics.COMMAND_ERRORS, lambda: self.connection_counters)
        yield shown(metrics.PENDING_LOOKUPS, lambda: self.lookups)
        yield shown(instruments.UNANSWERED, lambda: self.unanswered)
        yield shown(instruments.FLOW, lambda: self.flow.totals)
        yield shown(metrics.THROTTLED, lambda: self.flow.totals)
        outcomes, topics = self.lookup_outcomes, self.messaging.loaded_topics
        yield shown(metrics.LOOKUP_TIMES, lambda: outcomes)
        yield shown(metrics.LOOKUPS, lambda: outcomes, outcomes.since)
        yield shown(metrics.TOPIC_LOAD_TIMES, lambda: topics, topics.opened_at / 1000)
        loads = {**labels, "metric": "pulsar_topic_load_times"}
        yield shown(metrics.TOPIC_LOADS, lambda: metrics.load_figures(topics), **loads)
        yield shown(metrics.VERSION, object, version=FLOODGATE_VERSION, commit="")
        usage = LoadUsage(self.flow.totals.outbound, self._clock)
        shares = metrics.shares_of(usage.percent())
        yield shown(shares, usage.percent, **labels, metric="loadBalancing")
        yield shown(metrics.LISTING_CACHE, lambda: self.listing_cache)
        snapshot_bytes = self.config.snapshot_cache_max_bytes
        yield shown(metrics.SNAPSHOTS, lambda: (self.store, snapshot_bytes))
        yield shown(metrics.POLICIES, lambda: self.policies)
        yield shown(metrics.ADMIN, lambda: self._admin_listings)
        if (ownership := self._shared) is not None:
            yield shown(metrics.OWNERSHIP, lambda: ownership)
        if (calls := self.lister.calls) is not None:
            yield shown(metrics.PLUGIN, lambda: calls)
        yield shown(metrics.WATCHES, lambda: self.watches)

    def _parts(self) -> BrokerParts:
        config, messaging = self.config, self.messaging
        listing = self._listing_parts()
        watches = self.watches = TopicListService(listing)
        self.lookup_handler = self._lookup_handler()
        watches.start()
        self._exits.callback(watches.stop)
        return BrokerParts(
            config=config,
            commands=COMMANDS,
            flow=self.flow,
            permits=PermitRules(self.lookups, self.unanswered),
            namespace_named=named_or_closed if self._pulsar_compatible else named_or_refused,
            lookup_handler=self.lookup_handler,
            topics_handler=GetTopicsHandler(
                listing.lister,
                listing.pattern_filter,
                listing.estimates,
                listing.memory,
                listing.answers,
            ),
            policies=self.policies,
            watches=watches,
            memory=listing.memory,
            counters=self.connection_counters,
            connections=self.connections,
            ownership=self.ownership,
            loaded_topics=messaging.loaded_topics,
            producer_names=messaging.producer_names,
            publish_rules=messaging.publish_rules,
            schemas=self.schemas,
            publish_limits=messaging.publish_limits,
            store=self.store,
            authentication=self._connect_rules(),
            authorization=self.authorization.commands if self.authorization else None,
        )

    def _connect_rules(self) -> ConnectRules | None:
        """Return the rules to authenticate clients; None if every client is served."""
        settings = self.config.authentication
        if self.authentication is None or settings is None:
            return None
        proxies = ProxyRules(
            settings.proxy_roles,
            enforced=self.config.authorization is not None,
            checks_original=settings.checks_original,
        )
        return ConnectRules(self.authentication, proxies, settings.refresh_seconds)

    async def _instance(self) -> int:
        """Return a short number that distinguishes this start of the broker from earlier ones.

        A store in memory has no record of earlier starts, but clients keep the names of producers;
        a real broker restarts counting with its metadata, too.
        """
        try:
            number = await self.store.next_instance()
        except StoreError as error:
            raise StartError(str(error)) from None
        remembers = not self.config.metadata_store_url.startswith(MEMORY_SCHEME)
        forgets = not (remembers or self._pulsar_compatible)
        return self._clock.wall_ms() % _FORGOTTEN_INSTANCES if forgets else number

    def _messaging(self, instance: int = 0) -> Messaging:
        parts = TopicParts(
            config=self.config,
            clock=self._message_clock,
            metadata=self.store,
            topics=self.topics,
            topic_rules=self._topic_rules,
            policies=self.policies,
            ownership=self.ownership,
            address=lambda: self.urls.web_address,
            instance=instance,
        )
        return Messaging(parts)

    def _listing_parts(self) -> WatchContext:
        lister, clock, estimate = self.lister, self._clock, self.config.size_estimate
        estimates = ListingEstimates(estimate, lister, anyone_resets=self._pulsar_compatible)
        return WatchContext(
            self.store,
            lister,
            estimates,
            self._pattern_filter(),
            self._memory(),
            clock,
            AnswerRules.of(
                self.config.profile,
                private_buffers=self.config.response_buffers is ResponseBuffers.PRIVATE,
                max_message_bytes=self.config.max_message_size,
            ),
            PULSAR_WATCHES if self._pulsar_compatible else FLOODGATE_WATCHES,
            self.config.watches,
            max_update_bytes=self.config.max_message_size // 2,
        )

    def _pattern_filter(self) -> PatternFilter:
        workers = PatternWorkers()
        self._exits.push_async_callback(workers.close)
        return PatternFilter(self.config.patterns, self.listing_cache, workers, self._clock)

    def _memory(self) -> ResponseMemory:
        if self.config.response_buffers is ResponseBuffers.SHARED:
            return SharedMemory(self.limiter)
        return PrivateMemory(self.limiter)

    def _lookup_handler(self) -> LookupHandler:
        return LookupHandler(
            self.store,
            self.ownership,
            self.topics,
            self.lookup_outcomes,
            pulsar_compatible=self._pulsar_compatible,
        )
