"""The proxy as a service: it creates all parts of a proxy, starts them, and shuts them down."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from client.connection.pool import ConnectionPool
from limiter.memory.size_estimate import SizeEstimate
from proto.frames import DEFAULT_MAX_MESSAGE_BYTES, FRAME_PADDING_BYTES
from proxy import metrics
from proxy.brokers import (
    PROXY_OPTIONS,
    Address,
    BrokerConnections,
    RolePools,
    ServiceAddresses,
)
from proxy.cnx import ClientAuthentication, ProxyConnection, ProxyParts, ProxyRules
from proxy.commands.table import COMMANDS
from proxy.credentials import broker_credentials
from proxy.errors import ErrorForms, ErrorTranslation, PulsarErrorTranslation
from proxy.forwarding.forwarder import Forwarder
from proxy.forwarding.routes import PLACES, forwarding_routes
from proxy.listing.exact_charging import ExactCharging
from proxy.listing.flights import Flights
from proxy.listing.pulsar_charging import PulsarCharging
from proxy.lookup_handler import LookupProxyHandler, PulsarLookupProxyHandler
from proxy.pipe.allowed_targets import BrokerTargets
from proxy.pipe.direct_handler import BrokerAccess, DirectProxyHandler
from server import instruments
from server.configuration.common import ResponseBuffers
from server.connection.listener import Listen, listen
from server.connection.permitted_requests import PermitRules
from server.connection.unanswered_requests import UnansweredRequests
from server.service import ServerService
from server.tls.contexts import ClientTls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limiter.clock import Clock
    from limiter.metrics.prometheus import Instruments
    from proxy.config import ProxyConfig
    from proxy.listing.charging import Charging


class ProxyService(ServerService["ProxyConnection"]):
    """A running proxy, used as ``async with ProxyService(config) as proxy``.

    Source: upstream ProxyService.
    """

    _forwards_http = True

    def __init__(
        self, config: ProxyConfig, clock: Clock | None = None, listen: Listen = listen
    ) -> None:
        places = config.max_concurrent_lookup_requests
        super().__init__(config, places, config.drain_seconds, clock, listen)
        self.config = config
        self.counters = metrics.ProxyCounters()
        self.unanswered = UnansweredRequests(self._clock)
        self._translation = (
            PulsarErrorTranslation() if self._pulsar_compatible else ErrorTranslation()
        )
        self.flights = self._flights()
        self._service = ServiceAddresses(config.broker_addresses, self._clock)
        self._targets = BrokerTargets(config)
        if config.broker_tls is not None:
            self._broker_tls = ClientTls(config.broker_tls, self._clock)
        self._credentials = broker_credentials(config.broker_credentials)
        options = replace(
            PROXY_OPTIONS,
            keep_alive_seconds=config.flow.keep_alive_seconds,
            answer_limit_bytes=self._frame_limit_bytes,
            tls=None if self._broker_tls is None else self._broker_tls.layer,
            credentials=self._credentials,
        )
        self._pool = ConnectionPool(options, self._clock)
        self._private_options = replace(options, drain_oversized=False, answer_limit_bytes=None)
        self.role_pools = RolePools(
            self._private_options if self._has_private_connections else options,
            self._service,
            self._clock,
            shared=not self._has_private_connections,
        )
        self.forwarder = Forwarder(
            self._targets, config, self._clock, self.flow.limits.refusals, self._broker_tls
        )

    async def _start(self) -> None:
        self._exits.push_async_callback(self._pool.close)
        self._exits.push_async_callback(self.role_pools.close)
        self._exits.push_async_callback(self.forwarder.close)
        config = self.config
        routes = forwarding_routes(
            self.forwarder, config.broker_web_service_url, config.http_reverse_proxies
        )
        places = PLACES if config.broker_web_service_url else ()
        await self._serve_http("pulsar_proxy", self._metrics(), places=places, dispatches=routes)
        parts = self._parts()
        await self._serve_clients(
            lambda tls: ProxyConnection(parts, tls), self.config.service_port, "servicePort"
        )

    def _metrics(self) -> Iterator[Instruments[Any]]:
        shown = self._instruments
        yield shown(metrics.CONNECTIONS, lambda: self.connection_counters)
        yield shown(metrics.REQUESTS, lambda: self.counters)
        yield shown(metrics.LOOKUPS, lambda: self.lookups)
        yield shown(metrics.LIVE_ANSWERS, lambda: self.flights.live)
        yield shown(metrics.ROLE_POOLS, lambda: self.role_pools)
        yield shown(instruments.UNANSWERED, lambda: self.unanswered)
        yield shown(instruments.FLOW, lambda: self.flow.totals)
        yield shown(metrics.FORWARDING, lambda: self.forwarder)

    def _parts(self) -> ProxyParts:
        return ProxyParts(
            config=self.config,
            rules=self._rules(),
            commands=COMMANDS,
            address=self._service.first,
            permits=PermitRules(
                self.lookups, self.unanswered, held_until_answered=not self._pulsar_compatible
            ),
            lookup_handler=self._lookup_handler(self._service.first),
            flights=self.flights,
            new_brokers=self._new_brokers,
            direct_handler=self._direct_handler(),
            error_forms=ErrorForms.of_profile(pulsar_compatible=self._pulsar_compatible),
            counters=self.counters,
            connection_counters=self.connection_counters,
            flow=self.flow,
            connections=self.connections,
            authentication=self._client_authentication(),
        )

    def _rules(self) -> ProxyRules:
        pulsar_compatible, max_message_bytes = self._pulsar_compatible, self.config.max_message_size
        unannounced = pulsar_compatible or max_message_bytes == DEFAULT_MAX_MESSAGE_BYTES
        return ProxyRules(
            refuses_proxies=pulsar_compatible,
            announced_message_bytes=None if unannounced else max_message_bytes,
            tells_unavailable_targets=not pulsar_compatible,
            checks_namespaces=not pulsar_compatible,
            ends_expired_pipes=not pulsar_compatible,
        )

    def _lookup_handler(self, address: Address) -> LookupProxyHandler:
        handler = PulsarLookupProxyHandler if self._pulsar_compatible else LookupProxyHandler
        return handler(address, self._translation)

    def _direct_handler(self) -> DirectProxyHandler:
        return DirectProxyHandler(
            self._targets,
            self.flow.process,
            self._clock,
            BrokerAccess(
                self.config.broker_proxy_connect_timeout_seconds,
                self._broker_tls,
                self._credentials,
            ),
            like_pulsar=self._pulsar_compatible,
            faults=self.faults,
        )

    def _flights(self) -> Flights:
        return Flights(
            self.limiter,
            self._charging(),
            self._translation,
            self.unanswered,
            share=self.config.response_buffers is ResponseBuffers.SHARED,
            frame_limit_bytes=self._frame_limit_bytes,
            asks_again=not self._pulsar_compatible and len(self.config.broker_addresses) > 1,
        )

    @property
    def _frame_limit_bytes(self) -> int | None:
        """Largest length field of frames to clients; None (no check) in profile pulsar."""
        return (
            None if self._pulsar_compatible else self.config.max_message_size + FRAME_PADDING_BYTES
        )

    def _charging(self) -> Charging:
        if self.config.size_estimate is SizeEstimate.EXACT:
            return ExactCharging(self.limiter, patient=not self._pulsar_compatible)
        return PulsarCharging(
            self.limiter, self.config.size_estimate, mended=not self._pulsar_compatible
        )

    def _new_brokers(self) -> BrokerConnections:
        """Return broker connections for a new client, either private or shared by all clients."""
        tls = self._broker_tls is not None
        if self._has_private_connections:
            pool = ConnectionPool(self._private_options, self._clock)
            return BrokerConnections(pool, self._service, own=True, tls=tls)
        return BrokerConnections(self._pool, self._service, tls=tls)

    @property
    def _has_private_connections(self) -> bool:
        private = self.config.response_buffers is ResponseBuffers.PRIVATE
        return self._pulsar_compatible and private

    def _client_authentication(self) -> ClientAuthentication | None:
        settings = self.config.authentication
        if self.authentication is None or settings is None:
            return None
        return ClientAuthentication(
            self.authentication,
            settings.refresh_seconds,
            forwards_credentials=settings.forwards_credentials,
            connections_for=self.role_pools.connections_for,
        )
