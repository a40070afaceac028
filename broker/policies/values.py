"""Parsers of JSON values in request bodies that accept what Java's servers accept."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    Reader: TypeAlias = Callable[[object], object]

_LONG = 63
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_PLACE = re.compile(r"0|[1-9]\d{0,3}", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


class JsonNumber(str):
    """A number in a JSON body, kept in its original text."""

    __slots__ = ()


class BadBodyError(Exception):
    """A request's body cannot be read; the answer is 400 with a sentence in Pulsar's form.

    Attributes:
        media_type: Content-Type of the sentence.
        upstream_status: The status in profile pulsar: 500 for bodies at which upstream's server
            fails.
    """

    def __init__(
        self, reason: str, media_type: str = "text/plain", *, upstream_status: int = 400
    ) -> None:
        super().__init__(reason)
        self.media_type = media_type
        self.upstream_status = upstream_status


def without_null(values: dict[str, object]) -> dict[str, object]:
    """Return the members of a JSON object whose values are not null."""
    return {key: value for key, value in values.items() if value is not None}


def string_map_of(values: dict[str, object], what: str) -> dict[str, str]:
    """Return a JSON object with all values as strings, converting numbers and booleans.

    Raises:
        BadBodyError: A value has another type, or is not Unicode.
    """
    for key, value in values.items():
        if not isinstance(value, (str, bool)):
            reason = f"{what} has {kind_of(value)} at {key[:40]!r}: expected a string"
            raise BadBodyError(reason, upstream_status=500 if value is None else 400)
    texts = {key: _text(value) for key, value in values.items()}
    check_unicode(text for pair in texts.items() for text in pair)
    return texts


def strings(values: object, what: str) -> tuple[str, ...] | None:
    """Return the strings of a JSON array, or None for null.

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


def check_unicode(texts: Iterable[str]) -> None:
    r"""Raise an error if a text has no UTF-8 encoding, such as a lone ``\ud800``.

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


def kind_of(value: object) -> str:
    """Return the JSON type of a value in words, such as "an array"."""
    kinds = {list: "an array", dict: "an object", JsonNumber: "a number", bool: "a boolean"}
    return "null" if value is None else kinds.get(type(value), "a string")


class Member(NamedTuple):
    """A member of a JSON object in a request body: its name, parser, default and effect.

    Attributes:
        name: The member's name.
        read: Parses the value; called with None for a missing member without default.
        default: The value of a missing member; None leaves the member out.
        field: The field of effective policies with the value; empty: without effect.
        broker: The key of broker.conf with the broker's own value.
    """

    name: str
    read: Reader
    default: object = None
    field: str = ""
    broker: str = ""


def number(value: object) -> int:
    """Return a 32-bit integer from a JSON number or string; 0 for None."""
    return _whole(value, 31)


def long_number(value: object) -> int:
    """Return a 64-bit integer from a JSON number or string; 0 for None."""
    return _whole(value, _LONG)


def _whole(value: object, bits: int) -> int:
    if value is None:
        return 0
    found = _decimal(value)
    if not -(1 << bits) <= found < 1 << bits:
        fails = bits == _LONG and isinstance(value, JsonNumber)
        raise BadBodyError(
            "the body should be a smaller number", upstream_status=500 if fails else 400
        )
    return math.trunc(found)


def real_number(value: object) -> float:
    """Return a floating-point number from a JSON number or string; 0 for None."""
    found = 0.0 if value is None else float(_decimal(value))
    if math.isinf(found):
        raise BadBodyError(f"the body has {value!r:.40}, and should be a smaller number")
    return found


def _decimal(value: object) -> Decimal:
    # Numbers of a body are kept in their original text.
    if not isinstance(value, str):
        raise BadBodyError("the body should be a number")
    try:
        found = Decimal(value.strip() or "0")
    except DecimalException:
        raise BadBodyError(f"the body has {value[:40]!r}, and should be a number") from None
    if not found.is_finite():
        raise BadBodyError(f"the body has {value[:40]!r}, and should be a number")
    return found


def boolean(value: object) -> bool:
    """Return a boolean from a JSON boolean or string; False for None."""
    if value is None or isinstance(value, bool):
        return bool(value)
    found = _BOOLEANS.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise BadBodyError("the body should be true or false")
    return found


PRIMITIVES: tuple[Reader, ...] = (number, long_number, boolean)
"""Readers of values that upstream refuses if the body is missing."""


def text(value: object) -> str | None:
    """Return the text of a JSON string; None for None."""
    if value is None:
        return None
    read = strings([value], "the body")
    return read[0] if read else None


@dataclass(frozen=True, slots=True)
class _OneOf:
    names: Sequence[str]
    other: str | None

    def __call__(self, value: object) -> str | None:
        if value is None:
            return self.other
        broken = isinstance(value, JsonNumber) and not _WHOLE.fullmatch(value)
        if broken or not isinstance(value, str):
            raise BadBodyError(f"the body should have a name, one of: {', '.join(self.names)}")
        if value in self.names:
            return value
        place = int(value) if _PLACE.fullmatch(value) else len(self.names)
        return self.names[place] if place < len(self.names) else self.other


def one_of(names: Sequence[str], other: str | None = None) -> Reader:
    """Return a parser that accepts one of the names, or its index in the list, as upstream does.

    Args:
        names: In upstream's order.
        other: The parser's result for any other value.
    """
    return _OneOf(names, other)


def set_of_texts(value: object) -> list[str] | None:
    """Return the texts of a JSON array, without duplicates and in their order; None for None."""
    found = strings(value, "the body")
    return None if found is None else list(dict.fromkeys(found))


def texts_by_name(value: object) -> dict[str, str]:
    """Return a JSON object whose values are strings; an empty object for None."""
    return string_map_of(object_by_name(value), "the body")


@dataclass(frozen=True, slots=True)
class ObjectOf:
    """A parser of a JSON object that has known members; unknown members are ignored."""

    members: tuple[Member, ...]

    def __call__(self, value: object) -> dict[str, Any]:
        """Return the known members of a JSON object, each parsed."""
        given = object_by_name(value)
        found = {}
        for member in self.members:
            one = given.get(member.name)
            read_as = member.default if one is None else member.read(one)
            if read_as is not None:
                found[member.name] = read_as
        return found


def object_of(*members: Member) -> ObjectOf:
    """Return a parser of a JSON object that has these members; unknown members are ignored."""
    return ObjectOf(members)


@dataclass(frozen=True, slots=True)
class _Given:
    read: Reader
    blank_is_none: bool = False

    def __call__(self, value: object) -> object:
        blank = self.blank_is_none and isinstance(value, str) and not value.strip()
        return None if value is None or blank else self.read(value)


def members_of(read: Reader) -> tuple[Member, ...]:
    """Return the members of the JSON object that a parser reads; empty if it reads no object."""
    if isinstance(read, _Given):
        return members_of(read.read)
    return read.members if isinstance(read, ObjectOf) else ()


def given(read: Reader) -> Reader:
    """Return a parser like ``read`` that returns None for None."""
    return _Given(read)


def boxed(read: Reader) -> Reader:
    """Return a parser like ``read`` that returns None for None and for a blank text."""
    return _Given(read, blank_is_none=True)


def object_by_name(value: object) -> dict[str, object]:
    """Return the JSON object itself, or an empty one for None; refuse other values."""
    if not isinstance(value, dict | None):
        raise BadBodyError("the body should be an object")
    return value or {}


# -- JSON schemas of readers ---------------------------------------------------------------------

_SCHEMAS: dict[Reader, dict[str, Any]] = {
    number: {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1},
    long_number: {"type": "integer", "format": "int64", "minimum": -(2**63), "maximum": 2**63 - 1},
    real_number: {"type": "number"},
    boolean: {"type": "boolean"},
    text: {"type": "string"},
    set_of_texts: {"type": "array", "items": {"type": "string"}},
    texts_by_name: {"type": "object", "additionalProperties": {"type": "string"}},
}


def schema_of(read: Reader) -> dict[str, Any]:
    """Return the JSON schema of the values that a parser accepts; empty if not known."""
    match read:
        case _Given():
            return schema_of(read.read)
        case _OneOf():
            return {"type": "string", "enum": list(read.names)}
        case ObjectOf():
            members = {one.name: schema_of(one.read) for one in read.members}
            return {"type": "object", "properties": members}
    return _SCHEMAS.get(read, {})
