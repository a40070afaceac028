"""KEY_VALUE schemas: two definitions in the data, and their types in the properties."""

from __future__ import annotations

import json
import struct

from broker.schemas.schema import Schema

KEY_VALUE = "KEY_VALUE"
_LENGTH = struct.Struct(">i")


class TruncatedKeyValueError(Exception):
    """The data of a KEY_VALUE schema ends before the end of its two definitions."""


def halves(schema: Schema) -> tuple[Schema, Schema]:
    """Return the schemas of key and value.

    Raises:
        TruncatedKeyValueError: The data ends too early.
    """
    key, rest = _split(schema.data)
    value, _ = _split(rest)
    return _half(schema, "key", key), _half(schema, "value", value)


def _split(data: bytes) -> tuple[bytes, bytes]:
    if len(data) < _LENGTH.size:
        raise TruncatedKeyValueError
    # A negative length means no definition.
    end = _LENGTH.size + max(0, _LENGTH.unpack_from(data)[0])
    if len(data) < end:
        raise TruncatedKeyValueError
    return data[_LENGTH.size : end], data[end:]


def _half(schema: Schema, which: str, data: bytes) -> Schema:
    return Schema(schema.properties.get(f"{which}.schema.type", "BYTES"), data)


def joined(key: bytes, value: bytes) -> bytes:
    """Return the data of two definitions."""
    return b"".join((_LENGTH.pack(len(key)), key, _LENGTH.pack(len(value)), value))


def as_text(schema: Schema) -> str:
    """Return the data in the REST API's form.

    Raises:
        TruncatedKeyValueError: The data ends too early.
    """
    key, value = (_json(half.data) for half in halves(schema))
    return json.dumps({"key": key, "value": value}, separators=(",", ":"), ensure_ascii=False)


def _json(data: bytes) -> object:
    text = data.decode(errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        return text


def of_text(text: str) -> bytes:
    """Return the data of a definition in the REST API's form.

    Raises:
        ValueError: The text is no JSON with ``key`` and ``value``.
    """
    given = json.loads(text)
    if not isinstance(given, dict) or not {"key", "value"} <= given.keys():
        raise ValueError("no key and value")
    return joined(*(_definition(given[which]) for which in ("key", "value")))


def _definition(given: object) -> bytes:
    if isinstance(given, str):
        return given.encode()
    return json.dumps(given, separators=(",", ":"), ensure_ascii=False).encode()
