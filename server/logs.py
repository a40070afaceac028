"""Logs on standard error, as text lines for people or as a JSON object per line.

Standard output belongs to the ready line. Logs of aiohttp, asyncio and Floodgate's own modules
through :mod:`logging` have the same form. Logs may quote a peer: each text is bounded, and a
single line (see proto.excerpts).

A line about a client's connection has structured fields: ``connection`` (its number), ``address``,
``client_version`` and, once known, ``principal``; a line about an HTTP request ``request_id`` and
``address``. See ``log_fields`` of the connections.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING, TextIO

from aiohttp import web

from proto.excerpts import one_line
from server.configuration.authentication import SECRET_KEY
from server.configuration.secret_sources import has_password

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

logger = logging.getLogger(__name__)

_REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
_WORD = re.compile(r"[^\s='\"]+")
_REQUESTS = count(1)
_VALUE_OF_A_KEY = re.compile(r"(.*/configuration[^/]*/+([^/]*)/+)(.+)", re.DOTALL)
TRACE_LINES = 100
"""Most lines of an exception's trace, counted from its end."""
_NO_FIELDS: Mapping[str, object] = {}
request_fields: ContextVar[Mapping[str, object]] = ContextVar("fields", default=_NO_FIELDS)
"""Fields of all lines about the HTTP request being served."""
_OF_EVERY_RECORD = {*vars(logging.makeLogRecord({})), "message", "asctime"}


class LogFormat(StrEnum):
    """The format of log lines: text for people, or JSON."""

    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    """The least severe level of the lines that are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure_logs(level: LogLevel, log_format: LogFormat, output: TextIO | None = None) -> None:
    """Send all logs of the process to ``output``, which is standard error by default."""
    handler = logging.StreamHandler(output or sys.stderr)
    handler.setFormatter(_Lines(as_json=log_format is LogFormat.JSON))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.value.upper())


class _Lines(logging.Formatter):
    """Formats log records as single lines; text that may quote a peer is shortened and escaped."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a log record, followed by its stack trace if it has one."""
        own = {key: value for key, value in vars(record).items() if key not in _OF_EVERY_RECORD}
        fields = {
            key: one_line(value) if isinstance(value, str) else value
            for key, value in {**request_fields.get(), **own}.items()
        }
        event, level = one_line(record.getMessage()), record.levelname.lower()
        time = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        trace = _trace(record) if record.exc_info and record.exc_info[0] else ""
        if self._as_json:
            line = {"event": event, **fields, "level": level, "logger": record.name}
            traced = {"exception": trace} if trace else {}
            return json.dumps({**line, "timestamp": time, **traced}, default=str)
        words = "".join(f" {key}={_word(value)}" for key, value in fields.items())
        line_end = f"\n{trace}" if trace else ""
        return f"{time} [{level:<8}] {event} [{record.name}]{words}{line_end}"


def _word(value: object) -> str:
    """Return a field's value as one word of a log line, in quotes if it contains blanks.

    Otherwise it could look like further fields.
    """
    text = value if isinstance(value, str) else one_line(repr(value))
    return text if _WORD.fullmatch(text) else "'" + text.replace("'", "\\'") + "'"


@web.middleware
async def with_request_fields(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Middleware that adds a request's id and its client's address to its log lines.

    The id is the client's ``X-Request-Id``, if well-formed, else the next number.
    """
    given = request.headers.get("X-Request-Id", "")
    request_id = given if _REQUEST_ID.fullmatch(given) else str(next(_REQUESTS))
    before = request_fields.set({"request_id": request_id, "address": request.remote})
    try:
        response = await handler(request)
        # Without the query, which may be a credential.
        logger.debug("%s %s: %d", request.method, shown_path(request.path), response.status)
        return response
    finally:
        request_fields.reset(before)


def shown_path(path: str) -> str:
    """Return a request's path for logs, which hides the value of a secret configuration key."""
    found = _VALUE_OF_A_KEY.fullmatch(path)
    if found is not None and (SECRET_KEY.search(found[2]) or has_password(found[3])):
        return f"{found[1]}******"
    return path


def _trace(record: logging.LogRecord) -> str:
    """Return the last lines of an exception's stack trace, each shortened and escaped."""
    kind, error, trace = record.exc_info or (None, None, None)
    lines = "".join(traceback.format_exception(kind, error, trace)).splitlines()
    return "\n".join(map(one_line, lines[-TRACE_LINES:]))
