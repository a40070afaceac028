"""A proxy: its parts, put together, and its life from start to drain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.connection.pool import ConnectionPool
from limiter.memory.size_estimate import SizeEstimate
from proto.frames import DEFAULT_MAX_MESSAGE_BYTES, FRAME_PADDING_BYTES
from proxy.brokers import Address, BrokerConnections, ServiceAddresses, connect_options
from proxy.cnx import ProxyConnection, ProxyParts, ProxyRules
from proxy.commands.table import COMMANDS
from proxy.errors import ErrorForms, ErrorTranslation, PulsarErrorTranslation
from proxy.forwarding.forwarder import Forwarder, ForwardingRules
from proxy.forwarding.metrics import ForwardingMetrics
from proxy.forwarding.routes import PLACES, forwarding_routes
from proxy.listing.exact_charging import ExactCharging
from proxy.listing.flights import Flights
from proxy.listing.pulsar_charging import PulsarCharging
from proxy.lookup_handler import LookupProxyHandler, PulsarLookupProxyHandler
from proxy.metrics import ProxyMetrics
from proxy.pipe.allowed_targets import BrokerTargets
from proxy.pipe.direct_handler import DirectProxyHandler
from server.configuration.common import ResponseBuffers
from server.connection.counters import ProxyCounters
from server.connection.listener import Listen, listen
from server.connection.permitted_requests import PermitRules
from server.connection.unanswered_requests import UnansweredRequests
from server.service import ServerService

if TYPE_CHECKING:
    from limiter.clock import Clock
    from proxy.config import ProxyConfig
    from proxy.listing.charging import Charging


class ProxyService(ServerService["ProxyConnection"]):
    """One proxy: ``async with ProxyService(config) as proxy``.

    Source: upstream ProxyService.
    """

    def __init__(
        self, config: ProxyConfig, clock: Clock | None = None, listen: Listen = listen
    ) -> None:
        places = config.max_concurrent_lookup_requests
        super().__init__(config, places, config.drain_seconds, clock, listen)
        self.config = config
        self.counters = ProxyCounters()
        self.unanswered = UnansweredRequests(self._clock)
        self._translation = (
            PulsarErrorTranslation() if self._pulsar_compatible else ErrorTranslation()
        )
        self.flights = self._flights()
        options = connect_options(
            drain_oversized=True,
            keep_alive_seconds=config.flow.keep_alive_seconds,
            answer_limit_bytes=self._frame_limit_bytes,
        )
        self._pool = ConnectionPool(options, self._clock)
        self._service = ServiceAddresses(config.broker_addresses, self._clock)
        self._targets = BrokerTargets(config)
        self.forwarder = Forwarder(self._targets, self._forwarding_rules(), self._clock)

    async def _start(self) -> None:
        self._exits.push_async_callback(self._pool.close)
        self._exits.push_async_callback(self.forwarder.close)
        config = self.config
        routes = forwarding_routes(
            self.forwarder, config.broker_web_service_url, config.http_reverse_proxies
        )
        places = PLACES if config.broker_web_service_url else ()
        forwarding = ForwardingMetrics(config.cluster_name, self.forwarder)
        await self._serve_http("pulsar_proxy", [self._metrics(), forwarding], routes, places)
        parts = self._parts()
        await self._serve_clients(
            lambda: ProxyConnection(parts), self.config.service_port, "servicePort"
        )

    def _metrics(self) -> ProxyMetrics:
        return ProxyMetrics(
            self.config.cluster_name,
            self.connection_counters,
            self.counters,
            self.lookups,
            self.unanswered,
            self.flights.live,
            self.flow.totals,
        )

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
            per_ip={},
            flow=self.flow,
            connections=self.connections,
        )

    def _rules(self) -> ProxyRules:
        pulsar_compatible, max_message_bytes = self._pulsar_compatible, self.config.max_message_size
        unannounced = pulsar_compatible or max_message_bytes == DEFAULT_MAX_MESSAGE_BYTES
        return ProxyRules(
            refuses_proxies=pulsar_compatible,
            announced_message_bytes=None if unannounced else max_message_bytes,
            tells_unavailable_targets=not pulsar_compatible,
            checks_namespaces=not pulsar_compatible,
        )

    def _lookup_handler(self, address: Address) -> LookupProxyHandler:
        handler = PulsarLookupProxyHandler if self._pulsar_compatible else LookupProxyHandler
        return handler(address, self._translation)

    def _direct_handler(self) -> DirectProxyHandler:
        return DirectProxyHandler(
            self._targets,
            self.flow.process,
            self._clock,
            self.config.broker_proxy_connect_timeout_seconds,
            like_pulsar=self._pulsar_compatible,
        )

    def _forwarding_rules(self) -> ForwardingRules:
        config = self.config
        return ForwardingRules(
            timeout_seconds=config.http_proxy_timeout_seconds,
            connect_timeout_seconds=config.broker_proxy_connect_timeout_seconds,
            max_requests=config.max_concurrent_http_requests,
            max_replay_bytes=config.http_input_max_replay_buffer_size,
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
        """Return the most a client's length field may say; in profile pulsar nobody looks."""
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
        """Return a new client's way to brokers; shared answers need shared connections."""
        if self._pulsar_compatible and self.config.response_buffers is ResponseBuffers.PRIVATE:
            options = connect_options(
                drain_oversized=False, keep_alive_seconds=self.config.flow.keep_alive_seconds
            )
            return BrokerConnections(ConnectionPool(options, self._clock), self._service, own=True)
        return BrokerConnections(self._pool, self._service)
