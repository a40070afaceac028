"""HTTP endpoint of a server process: metrics, readiness, and further routes.

Errors are JSON objects with a single member ``reason``, as in Pulsar's admin API.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from aiohttp import ClientPayloadError, hdrs, web

from limiter.clock import LoopClock
from proto.excerpts import excerpt
from server.connection.listener import Listen, Listener, listen
from server.http_connection import HttpConnection, no_http
from server.json_answers import JSON_TYPE, RestError, json_bytes, json_response
from server.limits.http import HttpBounds, HttpLimits
from server.logs import shown_path, with_request_fields
from server.metrics.exposition import OPENMETRICS_TYPE, TEXT_TYPE, Scrapes, wants_openmetrics

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from aiohttp.typedefs import Middleware
    from prometheus_client import CollectorRegistry

    from server.connection.web_handshake import ListenerTls
    from server.metrics.exposition import Gather

__all__ = [
    "JSON_TYPE",
    "HttpPort",
    "HttpServer",
    "ProcessState",
    "Readiness",
    "RestError",
    "application",
    "json_bytes",
    "json_response",
    "serve_http",
]

logger = logging.getLogger(__name__)

# Most bytes of a request's body: admin requests are small, larger requests are refused with 413.
MAX_REQUEST_BYTES = 1024 * 1024

READY_PATH = "/admin/v2/brokers/ready"
# Longer than any connection lasts: aiohttp has no value for never.
NEVER_SECONDS = 365 * 86_400.0

# Time for in-flight requests when the server closes.
CLOSE_SECONDS = 2.0


class ProcessState(Enum):
    """Readiness of a process; the value is the text that readiness requests get."""

    STARTING = "the process is starting"
    READY = "ok"
    DRAINING = "the process is draining"


class Readiness:
    """The present state of the process, as HTTP clients see it."""

    def __init__(self) -> None:
        self.state = ProcessState.STARTING


@dataclass(frozen=True, slots=True)
class HttpPort:
    """A port on which the HTTP endpoint listens.

    Attributes:
        number: The port; 0 for any free port.
        key: The configuration key of the port.
        tls: The TLS settings; None for plain HTTP.
    """

    number: int
    key: str = "webServicePort"
    tls: ListenerTls | None = None


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A listening HTTP endpoint, which can be closed.

    Attributes:
        listeners: Its listeners, in order of the ports.
        runner: The runner of its application.
    """

    listeners: tuple[Listener, ...]
    runner: web.AppRunner

    async def close(self) -> None:
        """Stop accepting connections, wait up to 2 s for requests in flight, and close.

        May be called repeatedly.
        """
        for listener in self.listeners:
            listener.close()
        await self.runner.cleanup()


def application(
    registry: CollectorRegistry,
    readiness: Readiness,
    routes: Iterable[web.AbstractRouteDef] = (),
    middlewares: Iterable[Middleware] = (),
    gather: Gather | None = None,
    body_bytes: int = MAX_REQUEST_BYTES,
) -> web.Application:
    """Build the aiohttp application: metrics, readiness and ``routes``, with ``middlewares``.

    Args:
        registry: Collectors of metrics that return immediately.
        readiness: The state of the process.
        routes: Further routes.
        middlewares: The middlewares of every request.
        gather: Collects families of metrics in steps.
        body_bytes: The largest size of a request's body.
    """
    app = web.Application(
        client_max_size=body_bytes, middlewares=[with_request_fields, _errors_as_json, *middlewares]
    )
    app.on_response_prepare.append(_forbid_sniffing)
    app.add_routes(_own_routes(Scrapes(registry, gather), readiness))
    app.add_routes(routes)
    return app


async def serve_http(
    app: web.Application,
    host: str,
    ports: Iterable[HttpPort],
    listen: Listen = listen,
    limits: HttpLimits | None = None,
) -> HttpServer:
    """Listen on the given ports of a host, and serve ``app`` within ``limits``.

    Raises:
        ListenError: An address cannot be listened on.
    """
    runner = web.AppRunner(
        app, access_log=None, handle_signals=False, shutdown_timeout=CLOSE_SECONDS
    )
    await runner.setup()
    listeners: list[Listener] = []
    try:
        factory = _factory(runner, limits)
        for port in ports:
            listener = await listen(factory, host, port.number, port_key=port.key, tls=port.tls)
            listeners.append(listener)
    except BaseException:
        await HttpServer(tuple(listeners), runner).close()
        raise
    return HttpServer(tuple(listeners), runner)


def _factory(runner: web.AppRunner, given: HttpLimits | None) -> Callable[[], asyncio.Protocol]:
    server = runner.server
    if server is None:
        raise RuntimeError("the application runner was not set up")
    loop = asyncio.get_running_loop()
    no_log: Any = None  # None disables it in aiohttp, contrary to its type hints
    limits = given or HttpLimits(HttpBounds(), LoopClock())
    most, idle = limits.bounds.header_bytes, limits.bounds.idle_seconds
    return lambda: HttpConnection(
        server,
        limits,
        loop=loop,
        access_log=no_log,
        max_line_size=most,
        max_field_size=most,
        keepalive_timeout=idle if idle > 0 else NEVER_SECONDS,
        # Bodies are not decompressed, as in Jetty: 64 KB could become 64 MB within a turn.
        auto_decompress=False,
    )


async def _forbid_sniffing(_: web.Request, response: web.StreamResponse) -> None:
    """Tell browsers not to guess the content type, as responses contain untrusted text."""
    response.headers.setdefault("X-Content-Type-Options", "nosniff")


def _own_routes(scrapes: Scrapes, readiness: Readiness) -> list[web.AbstractRouteDef]:
    async def without_slash(_: web.Request) -> web.Response:
        return web.Response(status=301, headers={"Location": "/metrics/"})

    async def metrics(request: web.Request) -> web.StreamResponse:
        as_openmetrics = wants_openmetrics(request.headers.get("Accept", ""))
        content_type = OPENMETRICS_TYPE if as_openmetrics else TEXT_TYPE
        blocks = await scrapes.text(as_openmetrics=as_openmetrics)
        response = web.StreamResponse(headers={"Content-Type": content_type, "Vary": "Accept"})
        response.content_length = sum(map(len, blocks))
        await response.prepare(request)
        for block in blocks if request.method != hdrs.METH_HEAD else ():
            await response.write(block)
            await asyncio.sleep(0)
        return response

    async def ready(_: web.Request) -> web.Response:
        if readiness.state is not ProcessState.READY:
            raise RestError(503, readiness.state.value)
        return web.Response(body=b"ok", headers={"Content-Type": JSON_TYPE})

    return [
        web.get("/metrics", without_slash),
        web.get("/metrics/", metrics),
        web.get(READY_PATH, ready),
    ]


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Convert every exception of a request to an error response in Pulsar's JSON format."""
    try:
        return await handler(request)
    except RestError as error:
        return json_response({"reason": excerpt(error.reason)}, error.status)
    except web.HTTPException as error:
        return _http_error(request, error)
    except web.RequestPayloadError as error:
        return no_http(request, error.__cause__ or error)
    except (ConnectionError, ClientPayloadError):
        # The client has disconnected within its request: the response has no reader.
        return web.Response(status=400)
    except Exception:
        # A bug of Floodgate: it costs a single response, and the endpoint goes on.
        logger.exception("%s %s failed", request.method, shown_path(request.path))
        return json_response({"reason": "Internal Server Error"}, 500)


def _http_error(request: web.Request, error: web.HTTPException) -> web.Response:
    if error.status < 400:
        raise error
    kept = {name: error.headers[name] for name in ("Allow",) if name in error.headers}
    if request.method == "OPTIONS" and isinstance(error, web.HTTPMethodNotAllowed):
        return web.Response(headers=kept)
    return json_response({"reason": error.reason}, error.status, kept)
