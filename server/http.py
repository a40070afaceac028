"""The web port of a Floodgate process: metrics, readiness, and what its admin modules add.

Errors are JSON objects with one member ``reason``, as Pulsar's admin answers them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aiohttp import ClientPayloadError, hdrs, web
from aiohttp.http import HttpProcessingError
from aiohttp.http_exceptions import LineTooLong

from limiter.clock import LoopClock
from proto.excerpts import excerpt
from server.connection.listener import Listen, Listener, ListenerTls, listen
from server.limits.http import HttpBounds, HttpLimits, HttpPlace
from server.logs import with_request_fields
from server.metrics.exposition import OPENMETRICS_TYPE, TEXT_TYPE, wants_openmetrics
from server.metrics.scrape import Scrapes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from aiohttp.typedefs import Middleware
    from prometheus_client import CollectorRegistry

    from server.metrics.scrape import Gather

logger = logging.getLogger(__name__)

# A request's body: admin requests are small, and a larger one is refused with 413.
MAX_REQUEST_BYTES = 1024 * 1024

# Java's servers name no character set beside it, and a few clients compare the whole value.
JSON_TYPE = "application/json"

# What is shown of why a request is no HTTP: it quotes the client.
MAX_SHOWN_CHARACTERS = 200

# How long requests in flight may take to end when the server closes.
CLOSE_SECONDS = 2.0


class ProcessState(Enum):
    """Tells if a process takes clients; the value is what ``/ready`` says of it."""

    STARTING = "the process is starting"
    READY = "ok"
    DRAINING = "the process is draining"


class Readiness:
    """The one mutable fact that the HTTP endpoint is told by its process."""

    def __init__(self) -> None:
        self.state = ProcessState.STARTING


class RestError(Exception):
    """Raised by a handler to answer an error.

    Attributes:
        status: The HTTP status, 400 or more.
        reason: One sentence, sent as ``{"reason": ...}``; of a long one the beginning.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class HttpPort:
    """A port of an HTTP endpoint.

    Attributes:
        number: 0 for any free one.
        key: The configuration key that names it.
        tls: None for plain HTTP.
    """

    number: int
    key: str = "webServicePort"
    tls: ListenerTls | None = None


@dataclass(frozen=True, slots=True)
class HttpServer:
    """An HTTP endpoint that is listening.

    Attributes:
        listeners: One for each of its ports, in order.
        runner: Of its application.
    """

    listeners: tuple[Listener, ...]
    runner: web.AppRunner

    async def close(self) -> None:
        """Stop accepting, give requests in flight two seconds, and close. Idempotent."""
        for listener in self.listeners:
            listener.close()
        await self.runner.cleanup()


def json_response(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return an answer of JSON, written as Pulsar writes it."""
    given = {"Content-Type": JSON_TYPE, **(headers or {})}
    return web.Response(body=json_bytes(value), status=status, headers=given)


def json_bytes(value: object) -> bytes:
    """Return a value as JSON, written as Pulsar writes it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # What a client sent may be in it, and need not be what UTF-8 can hold.
    return text.encode(errors="backslashreplace")


def application(
    registry: CollectorRegistry,
    readiness: Readiness,
    routes: Iterable[web.AbstractRouteDef] = (),
    middlewares: Iterable[Middleware] = (),
    gather: Gather | None = None,
    body_bytes: int = MAX_REQUEST_BYTES,
) -> web.Application:
    """Build the endpoint: metrics, readiness and ``routes``, behind ``middlewares``.

    Args:
        registry: Collectors of metrics that answer at once.
        readiness: Tells whether the process serves.
        routes: What is served besides.
        middlewares: What every request goes through.
        gather: Collects families of metrics in steps.
        body_bytes: Most bytes of a request's body.
    """
    app = web.Application(
        client_max_size=body_bytes, middlewares=[with_request_fields, _errors_as_json, *middlewares]
    )
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
    """Serve ``app`` on some ports of one host, to as many connections as ``limits`` say.

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
    no_log: Any = None  # aiohttp takes it for "none", and does not say so
    limits = given or HttpLimits(HttpBounds(), LoopClock())
    most = limits.bounds.header_bytes
    return lambda: _Connection(
        server,
        limits,
        loop=loop,
        access_log=no_log,
        max_line_size=most,
        max_field_size=most,
        # A body stays as it came, as in Jetty: 64 KB could become 64 MB within one turn.
        auto_decompress=False,
    )


@contextmanager
def cancelled_when_client_leaves(request: web.Request) -> Iterator[None]:
    """Cancel the task of a block in the turn in which the request's client has left."""
    connection, task = request.protocol, asyncio.current_task()
    if not isinstance(connection, _Connection) or task is None:
        yield
        return
    connection.waiting.add(task)
    try:
        yield
    finally:
        connection.waiting.discard(task)


class _Connection(web.RequestHandler):
    """One client's connection: what is no HTTP costs one line of the log, without a stack.

    Attributes:
        waiting: Tasks that end with it.
    """

    __slots__ = ("_place", "waiting")

    def __init__(self, server: web.Server, limits: HttpLimits, **named: Any) -> None:  # noqa: ANN401 - as aiohttp says
        super().__init__(server, **named)
        self.waiting: set[asyncio.Task[Any]] = set()
        self._place = HttpPlace(limits)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless it is one connection too many."""
        super().connection_made(transport)
        refusal = self._place.taken(self._ask_is_late)
        if refusal is not None:
            self._end_with(503, refusal)

    def data_received(self, data: bytes) -> None:
        """Take what came; the headers of a request have a time in which they come."""
        super().data_received(data)
        self._place.heard(asks=bool(self._messages or self._current_request))

    def _ask_is_late(self, reason: str) -> None:
        self._end_with(408, reason)

    def _end_with(self, status: int, reason: str) -> None:
        """Answer who has not asked yet, and close."""
        if self.transport is not None:
            body = json_bytes({"reason": reason})
            head = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {JSON_TYPE}\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Cancel what is done for a client that reads no answer any more."""
        self._place.left()
        super().connection_lost(exc)
        for task in list(self.waiting):
            task.cancel()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no HTTP as other errors are answered, and close."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        if isinstance(exc, LineTooLong):
            logger.info("closing HTTP from %s: %s", request.remote, type(exc).__name__)
            response = json_response({"reason": self._place.too_long()}, 431)
            response.force_close()
            return response
        return _no_http(request, exc)

    def log_exception(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 - as aiohttp says
        """Log a bug; a body that is malformed, and met while it is skipped, is none."""
        if not isinstance(named.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **named)


def _no_http(request: web.BaseRequest, error: BaseException) -> web.Response:
    """Answer 400 with what was wrong; the connection ends, for nobody knows what comes next."""
    words = str(getattr(error, "message", "") or error)
    # aiohttp draws an arrow below what it quotes.
    line = " ".join(word for word in words.split() if word != "^")
    text = line.encode("ascii", "backslashreplace").decode()[:MAX_SHOWN_CHARACTERS]
    # Not what it was: that may be a credential.
    logger.info("malformed HTTP from %s: %s", request.remote, type(error).__name__)
    response = json_response({"reason": f"malformed HTTP: {text}"}, 400)
    response.force_close()
    return response


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
        web.get("/admin/v2/brokers/ready", ready),
    ]


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer errors as Pulsar does: the one boundary per request."""
    try:
        return await handler(request)
    except RestError as error:
        return json_response({"reason": excerpt(error.reason)}, error.status)
    except web.HTTPException as error:
        return _http_error(request, error)
    except web.RequestPayloadError as error:
        return _no_http(request, error.__cause__ or error)
    except (ConnectionError, ClientPayloadError):
        # The client has left in the middle of its request: nobody reads what is answered.
        return web.Response(status=400)
    except Exception:
        # A bug of ours: it costs one answer, and the endpoint goes on.
        logger.exception("%s %s failed", request.method, request.path)
        return json_response({"reason": "Internal Server Error"}, 500)


def _http_error(request: web.Request, error: web.HTTPException) -> web.Response:
    if error.status < 400:
        raise error
    kept = {name: error.headers[name] for name in ("Allow",) if name in error.headers}
    if request.method == "OPTIONS" and isinstance(error, web.HTTPMethodNotAllowed):
        return web.Response(headers=kept)
    return json_response({"reason": error.reason}, error.status, kept)
