"""Answers of the web port: JSON, and errors as objects with one member ``reason``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Mapping

# Java's servers name no character set beside it, and a few clients compare the whole value.
JSON_TYPE = "application/json"


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
