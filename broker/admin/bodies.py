"""Parsing of admin requests' bodies, as in Java's servers."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, NoReturn

from broker.policies.values import (
    BadBodyError,
    JsonNumber,
    kind_of,
    string_map_of,
    without_null,
)
from server.http import JSON_TYPE

if TYPE_CHECKING:
    from aiohttp import web


MAX_BODY_VALUES = 10_000
"""The largest number of values in a JSON body; more would block the event loop for over 20 ms."""
_SMALLEST, _LARGEST = -(2**31), 2**31 - 1
_WHOLE = re.compile(r"[+-]?\d+")
"""Texts accepted by Java's Integer.parseInt: digits of every script, but fewer forms than
``int``."""
JAVA_BLANKS = "".join(map(chr, range(33)))
"""Characters removed by Java's String.trim."""
_NOTHING = "The request entity cannot be empty."
_PARTITIONS = "the number of partitions"
_MAX_PLAIN_BYTES = 1_000
"""The largest number in plain text, in bytes: some of Python's charsets take minutes to decode
more."""


async def json_body(request: web.Request) -> object:
    """Return the JSON value in a request's body, or None for an empty body.

    Numbers are kept as text.

    Raises:
        BadBodyError: The body is not JSON, or has more than MAX_BODY_VALUES.
        web.HTTPRequestEntityTooLarge: The body is too large.
    """
    body = await request.read()
    if not body.strip():
        return None
    try:
        text = body.decode(json.detect_encoding(body), "surrogatepass")
        _check_values(text)
        value: object = json.loads(
            text, parse_constant=_refuse_constant, parse_int=JsonNumber, parse_float=JsonNumber
        )
    except RecursionError:
        raise BadBodyError("the body cannot be read: it is nested too deeply") from None
    except ValueError as error:
        packed = request.headers.get("Content-Encoding")
        remedy = f": send it without Content-Encoding: {packed[:40]}" if packed else ""
        raise BadBodyError(f"the body is not JSON: {str(error)[:200]}{remedy}") from None
    return value


async def given_body(request: web.Request) -> object:
    """Return the JSON value in a request's body like ``json_body``, but refuse an empty body.

    Raises:
        BadBodyError: The body is empty or unreadable.
    """
    value = await json_body(request)
    if value is None and not (await request.read()).strip():
        raise BadBodyError(_NOTHING, JSON_TYPE)
    return value


def _check_values(text: str) -> None:
    """Refuse a JSON text with too many values, because parsing would block the event loop."""
    unescaped = text.replace("\\\\", "").replace('\\"', "")
    too_many = unescaped.count('"') > 4 * MAX_BODY_VALUES
    if not too_many:
        outside_strings = unescaped.split('"')[::2]
        too_many = sum(part.count(",") for part in outside_strings) >= MAX_BODY_VALUES
    if too_many:
        raise BadBodyError(f"the body has more than {MAX_BODY_VALUES} values")


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


async def json_object(request: web.Request) -> dict[str, object] | None:
    """Return the JSON object in a request's body, or None for an empty body.

    Raises:
        BadBodyError: The body is not an object.
    """
    value = await json_body(request)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise BadBodyError(f"the body is {kind_of(value)}, and should be an object")
    return value


async def string_map(request: web.Request, *, drops_null: bool = False) -> dict[str, str]:
    """Return the JSON object of strings in a request's body; empty for an empty body.

    Args:
        request: A request.
        drops_null: True to leave out null values, False to refuse them.

    Raises:
        BadBodyError: The body is not an object of strings.
    """
    values = await json_object(request) or {}
    return string_map_of(without_null(values) if drops_null else values, "the body")


def whole_number(value: object, what: str, too_large: int = 400) -> int:
    """Return a 32-bit integer parsed as in Java: also from a string, and dropping a fraction.

    Args:
        value: A value of the body; None or a blank text is 0.
        what: What the number means, for the error text.
        too_large: Upstream's status for a number beyond 32 bits; for a string upstream returns 400.

    Raises:
        BadBodyError: The value is no number, or beyond 32 bits.
    """
    if value is None:
        return 0
    if not isinstance(value, str):
        raise BadBodyError(f"{what} should be a whole number")
    if not isinstance(value, JsonNumber):
        return integer(value.strip(JAVA_BLANKS) or "0", f"{what} should be a whole number")
    number = float(value)
    if not _SMALLEST <= number <= _LARGEST:
        raise BadBodyError(f"{what} should be a smaller number", upstream_status=too_large)
    return math.trunc(number)


def integer(text: str, reason: str, upstream_status: int = 400) -> int:
    """Return the 32-bit integer in a text, parsed as Java's ``Integer.parseInt`` does.

    Args:
        text: Digits of any script, with an optional sign.
        reason: The error text for other texts, and for numbers beyond 32 bits.
        upstream_status: The HTTP status of the error in profile pulsar.

    Raises:
        BadBodyError: The text is no number, or beyond 32 bits.
    """
    # As a float first: ``int`` is slow or fails with very many digits.
    if not _WHOLE.fullmatch(text) or not _SMALLEST <= float(text) <= _LARGEST:
        raise BadBodyError(reason, upstream_status=upstream_status)
    return int(float(text))


# -- partitions: a number, or an object with properties, by the media type --------------------


async def partition_count(request: web.Request) -> int:
    """Return the number of partitions in a request's body.

    Raises:
        BadBodyError: The body has no number.
    """
    if not (await request.read()).strip():
        raise BadBodyError(_NOTHING, JSON_TYPE)
    if request.content_type == "text/plain":
        return _plain_count(await request.read(), request.charset)
    return whole_number(await json_body(request), _PARTITIONS, 500)


async def partitions_and_properties(request: web.Request) -> tuple[int, dict[str, str]]:
    """Return the number of partitions and the topic's properties in a request's body.

    Raises:
        BadBodyError: The body is neither number nor object, or a member has the wrong type.
    """
    value = await json_body(request)
    if value is None:
        raise BadBodyError(_NOTHING, upstream_status=500)
    if isinstance(value, JsonNumber):
        if not value.lstrip("-").isdigit():
            raise BadBodyError(f"{_PARTITIONS} should be a whole number")
        return whole_number(value, _PARTITIONS), {}
    if not isinstance(value, dict):
        raise BadBodyError("the body should be an object with partitions")
    properties = value.get("properties")
    if not isinstance(properties, dict | None):
        raise BadBodyError("properties should be an object of strings")
    return whole_number(value.get("partitions"), _PARTITIONS), string_map_of(
        without_null(properties or {}), "properties"
    )


def _plain_count(body: bytes, charset: str | None) -> int:
    reason = "the body should be a whole number"
    if len(body) > _MAX_PLAIN_BYTES:
        raise BadBodyError(reason, upstream_status=500)
    try:
        text = body.decode(charset or "utf-8")
    except (LookupError, ValueError):
        raise BadBodyError(reason, upstream_status=500) from None
    return integer(text, reason, upstream_status=500)
