"""JSON responses of the web port; an error is an object with the single member ``reason``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Mapping

# Java's servers add no charset, and a few clients compare the whole value.
JSON_TYPE = "application/json"


class RestError(Exception):
    """An exception by which a handler answers a request with an HTTP error.

    Attributes:
        status: The HTTP status, 400 or more.
        reason: A sentence, sent as ``{"reason": ...}``, cut if long.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason


def json_response(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return an HTTP response whose body is a value as JSON, as compact as Pulsar's."""
    given = {"Content-Type": JSON_TYPE, **(headers or {})}
    return web.Response(body=json_bytes(value), status=status, headers=given)


def json_bytes(value: object) -> bytes:
    """Return a value as JSON in UTF-8, as compact as Pulsar's."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # It may contain a client's text, which UTF-8 need not be able to encode.
    return text.encode(errors="backslashreplace")
