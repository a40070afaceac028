"""Web port of a server process: its routes, and the middlewares that each request passes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from limiter.extras import SERVERS, extra
from limiter.metrics.outcome_counts import OutcomeCounts
from limiter.metrics.prometheus import Instruments, TopicListMetrics
from server import instruments
from server.authentication.requests import authentication_middleware, open_paths, superusers_only
from server.connection.web_handshake import ListenerTls
from server.cross_site import CrossSiteRule
from server.faults.routes import fault_routes
from server.front_page import Place, front_page_route
from server.http import MAX_REQUEST_BYTES, HttpPort, application, serve_http
from server.limiter_report.report import LimiterReporter, StoredMessages
from server.limiter_report.routes import LimiterHistory, limiter_routes
from server.limits.http import HttpBounds, HttpLimits
from server.metrics.otel_settings import telemetry_settings
from server.metrics.process import EventLoopLag, ProcessMetrics
from server.parts import CnxT, ServerParts
from server.seeing.audit import audited
from server.seeing.connections import ConnectionReports
from server.seeing.openapi import openapi_route
from server.seeing.own_operations import own_operations
from server.seeing.page import page_routes, status_route
from server.server_info import info_sentence
from server.tasks.freed_memory import FreedMemory, c_heap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from aiohttp import web
    from aiohttp.typedefs import Middleware
    from prometheus_client.registry import Collector

    from limiter.metrics.instruments import SourceT, Table
    from limiter.metrics.prometheus import MetricPrefix
    from server.metrics.exposition import Gather
    from server.seeing.openapi import Operation

logger = logging.getLogger(__name__)


class WebPort(ServerParts[CnxT]):
    """Base class of a server process with a web port: metrics, admin REST and web page."""

    _forwards_http = False
    _shares_topics = False

    def _instruments(
        self,
        table: Table[SourceT],
        source: Callable[[], SourceT],
        created_seconds: float | None = None,
        /,
        **labels: str,
    ) -> Instruments[SourceT]:
        labels = {"cluster": self._server_config.cluster_name, **labels}
        return Instruments(table, source, labels, created_seconds)

    def _show(self, table: Table[SourceT], source: Callable[[], SourceT]) -> None:
        self.registry.register(self._instruments(table, source))

    def _watch_heap(self) -> None:
        """Export metrics of heap memory, and return unused memory to the operating system."""
        self._show(instruments.PYTHON, object)
        heap = c_heap()
        if heap is not None:
            self._show(instruments.HEAP, heap.size)
            freed = FreedMemory(heap, self._clock)
            freed.start()
            self._exits.callback(freed.stop)

    async def _serve_http(  # noqa: PLR0913 - all that a web port shows is given here
        self,
        prefix: MetricPrefix,
        own: Iterable[Collector],
        routes: Iterable[web.AbstractRouteDef] = (),
        places: Iterable[Place] = (),
        dispatches: Sequence[web.RouteDef] = (),
        messages: Callable[[], StoredMessages] | None = None,
        gather: Gather | None = None,
        operations: Callable[[], Iterable[Operation]] = tuple,
    ) -> None:
        """Open the web port with metrics and ``routes``; the server is not yet reported ready.

        ``places`` are listed on the front page.

        ``dispatches`` are routes whose handlers check authorization themselves. ``operations``
        describe the routes of both, unless described already.
        """
        config, registry = self._server_config, self.registry
        logger.info("%s", info_sentence(prefix.removeprefix("pulsar_"), config))
        tally = OutcomeCounts(self._clock)
        self.limiter.observe_with(tally.observe)
        self._export_metrics(prefix, tally)
        lag = EventLoopLag(self._clock)
        lag.start()
        self._exits.callback(lag.stop)
        self._show(instruments.LIMITS, lambda: self.flow.limits)
        self._show(instruments.info_of(config), lambda: self._server_config)
        topic_lists = TopicListMetrics(prefix, config.cluster_name, self.limiter, tally)
        for collector in (topic_lists, *own, ProcessMetrics(config.cluster_name)):
            registry.register(collector)
        self._show(instruments.EVENT_LOOP, lag.buckets)
        self._watch_heap()
        contexts = self._tls_contexts()
        if contexts:
            self._show(instruments.TLS_HANDSHAKES, lambda: self.handshakes)
            self._show(instruments.CERTIFICATES, lambda: contexts)
        if (authentication := self.authentication) is not None:
            self._show(instruments.AUTHENTICATION, lambda: authentication.counters)
        if config.authorization is not None:
            self._show(instruments.AUTHORIZATION, lambda: self.refused)
        if (faults := self.faults) is not None:
            self._show(instruments.FAULTS, lambda: faults)
        cross_site = CrossSiteRule(
            config.advertised_address,
            config.bind_address,
            *config.allowed_hosts,
            checks_hosts=self.authentication is None,
            forms=self._pulsar_compatible,
        )
        limits = self._http_limits()
        self._show(instruments.HTTP, lambda: limits)
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
                *dispatches,
                *self._limiter_routes(tally, messages),
                *fault_routes(
                    self.faults,
                    self._clock,
                    serves_topics=prefix == "pulsar_broker",
                    shares_topics=self._shares_topics,
                ),
                *ConnectionReports(lambda: self.connections, self._clock).routes(),
            ],
            [
                limits.middleware(),
                cross_site.middleware(),
                *self._authentication_steps(),
                *self._authorization_steps(dispatches),
                audited,
            ],
            gather,
            max(config.limits.http_body_bytes, MAX_REQUEST_BYTES),
        )
        await self._open_http(app, limits)

    def _limiter_routes(
        self, tally: OutcomeCounts, messages: Callable[[], StoredMessages] | None
    ) -> list[web.AbstractRouteDef]:
        """Return the REST routes about the memory limiter, and begin to sample its history."""
        history = LimiterHistory(self.limiter, tally, self._clock)
        history.start()
        self._exits.callback(history.stop)
        reporter = LimiterReporter(self.limiter, self.ledgers, self._clock, tally, messages)
        return limiter_routes(reporter, history)

    async def _open_http(self, app: web.Application, limits: HttpLimits) -> None:
        config, plain, tls = self._server_config, [], []
        if config.web_service_port is not None:
            plain.append(HttpPort(config.web_service_port))
        if config.web_service_port_tls is not None and self.web_tls is not None:
            spoken = ListenerTls(self.web_tls.http_context, self.handshakes)
            tls.append(HttpPort(config.web_service_port_tls, "webServicePortTls", spoken))
        http = await serve_http(app, config.bind_address, [*plain, *tls], self._listen, limits)
        self._exits.push_async_callback(http.close)
        ports = [listener.port for listener in http.listeners]
        if plain:
            self.urls = self.urls._replace(web=self._url("http", ports[0]))
        if tls:
            self.urls = self.urls._replace(web_tls=self._url("https", ports[-1]))

    def _authentication_steps(self) -> Iterator[Middleware]:
        settings = self._server_config.authentication
        if self.authentication is not None and settings is not None:
            open_to_all = open_paths(covers_metrics=settings.covers_metrics)
            yield authentication_middleware(self.authentication, open_to_all)

    def _authorization_steps(self, dispatches: Iterable[web.RouteDef]) -> Iterator[Middleware]:
        first = self._server_config.authorization
        if first is not None:
            yield superusers_only(
                lambda: self._server_config.authorization or first,
                frozenset(route.handler for route in dispatches),
                self.refused,
            )

    def _front_page(self, prefix: MetricPrefix, places: Iterable[Place]) -> web.RouteDef:
        def state() -> str:
            said = self._readiness.state.value
            return f"{said}; clients connect to {self.service_url}" if self.service_url else said

        role = prefix.removeprefix("pulsar_")
        return front_page_route(role, self._server_config, state, places)

    def _export_metrics(self, prefix: MetricPrefix, tally: OutcomeCounts) -> None:
        """Start the export of metrics by OpenTelemetry, if environment variables enable it."""
        settings = telemetry_settings()
        if settings is None:
            return
        with extra("opentelemetry", SERVERS):
            from server.metrics.otel_export import MetricExport

        service = {
            "service.name": prefix.replace("pulsar_", "floodgate-"),
            "pulsar.cluster": self._server_config.cluster_name,
        }
        flow = self.flow.totals if prefix == "pulsar_broker" else None
        export = MetricExport(settings, service, self.limiter, tally, flow, self._clock)
        self._exits.push_async_callback(export.close)

    def _http_limits(self) -> HttpLimits:
        config = self._server_config.limits
        bounds = HttpBounds(
            a_second=config.http_a_second,
            at_once=config.http_at_once,
            connections=config.http_connections,
            body_bytes=config.http_body_bytes,
            header_bytes=config.http_header_bytes,
            seconds=config.http_seconds,
            idle_seconds=config.http_idle_seconds,
            body_status=400 if self._pulsar_compatible else 413,
            forwards=self._forwards_http,
        )
        return HttpLimits(bounds, self._clock, self.flow.limits.refusals)
