"""Bodies of admin requests, parsed as Java's servers do."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, NoReturn

from server.http import JSON_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp import web


MAX_BODY_VALUES = 10_000
"""Most values in a JSON body: more would hold the event loop for over 20 ms."""
_SMALLEST, _LARGEST = -(2**31), 2**31 - 1
_WHOLE = re.compile(r"[+-]?\d+")
"""Texts accepted by Java's Integer.parseInt, including digits of every script; ``int`` accepts
more."""
JAVA_BLANKS = "".join(map(chr, range(33)))
"""Characters removed by Java's String.trim."""
_NOTHING = "The request entity cannot be empty."
_PARTITIONS = "the number of partitions"
_MAX_PLAIN_BYTES = 1_000
"""Most bytes of a number in plain text: some of Python's charsets decode large bodies in
minutes."""


class JsonNumber(str):
    """A number in a body, in its original text."""

    __slots__ = ()


class BadBodyError(Exception):
    """A body is unreadable: 400, and a sentence of plain text, in Pulsar's form.

    Attributes:
        media_type: Content-Type of the sentence.
        upstream_status: The status in profile pulsar: upstream's server fails at some bodies, with
            500.
    """

    def __init__(
        self, reason: str, media_type: str = "text/plain", *, upstream_status: int = 400
    ) -> None:
        super().__init__(reason)
        self.media_type = media_type
        self.upstream_status = upstream_status


async def json_body(request: web.Request) -> object:
    """Return the body's value, with numbers as text; None for an empty body.

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
    """Return the body's value like ``json_body``, but refuse an empty body.

    Raises:
        BadBodyError: The body is empty or unreadable.
    """
    value = await json_body(request)
    if value is None and not (await request.read()).strip():
        raise BadBodyError(_NOTHING, JSON_TYPE)
    return value


def _check_values(text: str) -> None:
    """Refuse a body with too many values before parsing, which cannot be interrupted."""
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
    """Return the body's object; None for an empty body.

    Raises:
        BadBodyError: The body is not an object.
    """
    value = await json_body(request)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise BadBodyError(f"the body is {_kind(value)}, and should be an object")
    return value


async def string_map(request: web.Request, *, drops_null: bool = False) -> dict[str, str]:
    """Return the body's object of strings, such as properties; empty for an empty body.

    Args:
        request: A request.
        drops_null: Leave out null values rather than refuse.

    Raises:
        BadBodyError: The body is not an object of strings.
    """
    values = await json_object(request) or {}
    return string_map_of(without_null(values) if drops_null else values, "the body")


def without_null(values: dict[str, object]) -> dict[str, object]:
    """Return the members of an object without null values."""
    return {key: value for key, value in values.items() if value is not None}


def string_map_of(values: dict[str, object], what: str) -> dict[str, str]:
    """Return an object of strings; numbers and booleans become strings, as in Java.

    Raises:
        BadBodyError: A value has another type, or is not Unicode.
    """
    for key, value in values.items():
        if not isinstance(value, (str, bool)):
            reason = f"{what} has {_kind(value)} at {key[:40]!r}: expected a string"
            raise BadBodyError(reason, upstream_status=500 if value is None else 400)
    texts = {key: _text(value) for key, value in values.items()}
    check_unicode(text for pair in texts.items() for text in pair)
    return texts


def strings(values: object, what: str) -> tuple[str, ...] | None:
    """Return an array of strings, or None for null.

    As in Java, numbers and booleans become strings; a null becomes an empty string, refused
    wherever it matters.

    Raises:
        BadBodyError: The value is not an array of strings.
    """
    if values is None:
        return None
    if not isinstance(values, list) or not all(isinstance(x, str | bool | None) for x in values):
        raise BadBodyError(f"{what} should be an array of strings")
    texts = tuple("" if one is None else _text(one) for one in values)
    check_unicode(texts)
    return texts


def whole_number(value: object, what: str, too_large: int = 400) -> int:
    """Return an integer as Java's parser does: also from a text, with the fraction truncated.

    Args:
        value: A value of the body; None or a blank text is 0.
        what: The number's meaning, for the refusal.
        too_large: Upstream's status for a number beyond 32 bits; for a text upstream returns 400.

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
    """Return the number in a text, as Java's ``Integer.parseInt`` does.

    Args:
        text: Digits of any script, with an optional sign.
        reason: The refusal of other texts, and of numbers beyond 32 bits.
        upstream_status: The refusal's status in profile pulsar.

    Raises:
        BadBodyError: The text is no number, or beyond 32 bits.
    """
    # As a float first: ``int`` is slow or fails with very many digits.
    if not _WHOLE.fullmatch(text) or not _SMALLEST <= float(text) <= _LARGEST:
        raise BadBodyError(reason, upstream_status=upstream_status)
    return int(float(text))


def check_unicode(texts: Iterable[str]) -> None:
    r"""Refuse text without a UTF-8 encoding, such as a lone ``\ud800``.

    Raises:
        BadBodyError: A text has no UTF-8 encoding.
    """
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadBodyError(f"the body has {text[:40]!a}, which is not Unicode text") from None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(value: object) -> str:
    kinds = {list: "an array", dict: "an object", JsonNumber: "a number", bool: "a boolean"}
    return "null" if value is None else kinds.get(type(value), "a string")


# -- partitions: a number, or an object with properties, by the media type --------------------


async def partition_count(request: web.Request) -> int:
    """Return the number in the body.

    Raises:
        BadBodyError: The body has no number.
    """
    if not (await request.read()).strip():
        raise BadBodyError(_NOTHING, JSON_TYPE)
    if request.content_type == "text/plain":
        return _plain_count(await request.read(), request.charset)
    return whole_number(await json_body(request), _PARTITIONS, 500)


async def partitions_and_properties(request: web.Request) -> tuple[int, dict[str, str]]:
    """Return the number of partitions, and the properties of the topic.

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
