"""Logs: structlog on standard error, for people (console) or machines (a JSON object per line).

Standard output belongs to the ready line. Logs of aiohttp, asyncio and Floodgate's own modules
through :mod:`logging` pass the same processors. Logs may quote a peer: each text is bounded, and a
single line (see proto.excerpts).

A line about a client's connection has structured fields: ``connection`` (its number), ``address``,
``client_version`` and, once known, ``principal``; a line about an HTTP request ``request_id`` and
``address``. See ``log_fields`` of the connections.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING, TextIO

import structlog
from aiohttp import web

from proto.excerpts import one_line
from server.configuration.authentication import SECRET_KEY
from server.configuration.secret_sources import has_password

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from structlog.typing import EventDict, ExcInfo, Processor

logger = logging.getLogger(__name__)

_REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
_REQUESTS = count(1)
_VALUE_OF_A_KEY = re.compile(r"(.*/configuration[^/]*/+([^/]*)/+)(.+)", re.DOTALL)
TRACE_LINES = 100
"""Most lines of an exception's trace, counted from its end."""


class LogFormat(StrEnum):
    """The format of log lines."""

    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    """The least severe level to log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure_logs(level: LogLevel, log_format: LogFormat, output: TextIO | None = None) -> None:
    """Send all logs of this process to ``output`` (standard error)."""
    stream = output or sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
        _in_one_short_line,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=_rendering(log_format, stream)
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.value.upper())


@web.middleware
async def with_request_fields(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Add an HTTP request's id and its client's address to all of its log lines.

    The id is the client's ``X-Request-Id``, if well-formed, else the next number.
    """
    given = request.headers.get("X-Request-Id", "")
    request_id = given if _REQUEST_ID.fullmatch(given) else str(next(_REQUESTS))
    with structlog.contextvars.bound_contextvars(request_id=request_id, address=request.remote):
        response = await handler(request)
        # Without the query, which may be a credential.
        logger.debug("%s %s: %d", request.method, shown_path(request.path), response.status)
        return response


def shown_path(path: str) -> str:
    """Return a path without the value of a secret key, in requests that set the key."""
    found = _VALUE_OF_A_KEY.fullmatch(path)
    if found is not None and (SECRET_KEY.search(found[2]) or has_password(found[3])):
        return f"{found[1]}******"
    return path


def _in_one_short_line(_: object, __: str, event: EventDict) -> EventDict:
    """Bound a record's texts, which may quote a peer, and escape unprintable characters."""
    texts = {key: one_line(value) for key, value in event.items() if isinstance(value, str)}
    return {**event, **texts}


def _trace(exc_info: ExcInfo) -> str:
    """Return the last lines of an exception's trace, each bounded like a record."""
    lines = "".join(traceback.format_exception(*exc_info)).splitlines()
    return "\n".join(map(one_line, lines[-TRACE_LINES:]))


def _rendering(log_format: LogFormat, stream: TextIO) -> list[Processor]:
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if log_format is LogFormat.JSON:
        return [
            remove,
            structlog.processors.ExceptionRenderer(_trace),
            structlog.processors.JSONRenderer(default=str),
        ]
    # Rich's own rendering prints every local: 50 s and 8 MB for a listing of 100,000 names.
    plain = structlog.dev.plain_traceback
    return [
        remove,
        structlog.processors.ExceptionRenderer(_trace),
        structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=plain),
    ]
