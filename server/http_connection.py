"""A client's connection to the web port, with its limits and the errors for malformed HTTP."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.http_exceptions import LineTooLong

from server.json_answers import JSON_TYPE, json_bytes, json_response
from server.limits.http import HttpLimits, HttpPlace

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)

# Most characters of the reason for malformed HTTP, which quotes the client.
MAX_SHOWN_CHARACTERS = 200


@contextmanager
def cancelled_when_client_leaves(request: web.Request) -> Iterator[None]:
    """Cancel the task that runs the ``with`` block when the request's client disconnects."""
    connection, task = request.protocol, asyncio.current_task()
    if not isinstance(connection, HttpConnection) or task is None:
        yield
        return
    connection.waiting.add(task)
    try:
        yield
    finally:
        connection.waiting.discard(task)


class HttpConnection(web.RequestHandler):
    """A client's connection to the web port of a server.

    Malformed HTTP is logged in one line, without a stack trace.

    Attributes:
        waiting: Tasks to cancel when the client disconnects.
    """

    __slots__ = ("_peer", "_place", "waiting")

    def __init__(self, server: web.Server, limits: HttpLimits, **named: Any) -> None:  # noqa: ANN401 - as aiohttp says
        super().__init__(server, **named)
        self.waiting: set[asyncio.Task[Any]] = set()
        self._place = HttpPlace(limits)
        self._peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or refuse it with 503 if too many are open."""
        super().connection_made(transport)
        self._peer = (transport.get_extra_info("peername") or ("a disconnected client",))[0]
        refusal = self._place.taken(self._ask_is_late)
        if refusal is not None:
            self._end_with(503, refusal)

    def data_received(self, data: bytes) -> None:
        """Process received bytes; start or end the deadline for a request's headers."""
        super().data_received(data)
        self._place.heard(asks=bool(self._messages or self._current_request))

    def pause_writing(self) -> None:
        """Start the deadline until which the client must read the response."""
        super().pause_writing()
        self._place.does_not_read(self._cut_off)

    def resume_writing(self) -> None:
        """End the deadline for reading, as the client has read from the response."""
        self._place.reads()
        super().resume_writing()

    def _cut_off(self) -> None:
        logger.info("closing HTTP from %s: it does not read its answer", self._peer)
        if self.transport is not None:
            self.transport.abort()

    def _ask_is_late(self, reason: str) -> None:
        self._end_with(408, reason)

    def _end_with(self, status: int, reason: str) -> None:
        if self.transport is not None:
            body = json_bytes({"reason": reason})
            head = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {JSON_TYPE}\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Cancel the tasks that work for the client, as it has disconnected."""
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
        """Answer malformed HTTP with an error, and close the connection."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        if isinstance(exc, LineTooLong):
            logger.info(
                "closing HTTP from %s: %s",
                request.remote,
                type(exc).__name__,
                extra={"address": request.remote},
            )
            response = json_response({"reason": self._place.too_long()}, 431)
            response.force_close()
            return response
        return no_http(request, exc)

    def log_exception(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 - as aiohttp says
        """Log an unexpected error of a request.

        Errors of an unread body that is malformed or late are not logged.
        """
        if not isinstance(named.get("exc_info"), web.RequestPayloadError | web.HTTPRequestTimeout):
            super().log_exception(*args, **named)


def no_http(request: web.BaseRequest, error: BaseException) -> web.Response:
    """Return a 400 response to malformed HTTP, after which the connection is closed.

    Further bytes could not be interpreted.
    """
    words = str(getattr(error, "message", "") or error)
    # aiohttp draws an arrow below the quotation.
    line = " ".join(word for word in words.split() if word != "^")
    text = line.encode("ascii", "backslashreplace").decode()[:MAX_SHOWN_CHARACTERS]
    # Without its content, which may be a credential.
    logger.info(
        "malformed HTTP from %s: %s",
        request.remote,
        type(error).__name__,
        extra={"address": request.remote},
    )
    response = json_response({"reason": f"malformed HTTP: {text}"}, 400)
    response.force_close()
    return response
