"""Schemas as clients send them: their types, their version numbers, and the KEY_VALUE format."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.stores.store import StoredSchema

KINDS = {
    pb.Schema.String: "STRING",
    pb.Schema.Json: "JSON",
    pb.Schema.Protobuf: "PROTOBUF",
    pb.Schema.Avro: "AVRO",
    pb.Schema.Bool: "BOOLEAN",
    pb.Schema.Int8: "INT8",
    pb.Schema.Int16: "INT16",
    pb.Schema.Int32: "INT32",
    pb.Schema.Int64: "INT64",
    pb.Schema.Float: "FLOAT",
    pb.Schema.Double: "DOUBLE",
    pb.Schema.Date: "DATE",
    pb.Schema.Time: "TIME",
    pb.Schema.Timestamp: "TIMESTAMP",
    pb.Schema.KeyValue: "KEY_VALUE",
    pb.Schema.Instant: "INSTANT",
    pb.Schema.LocalDate: "LOCAL_DATE",
    pb.Schema.LocalTime: "LOCAL_TIME",
    pb.Schema.LocalDateTime: "LOCAL_DATE_TIME",
    pb.Schema.ProtobufNative: "PROTOBUF_NATIVE",
    pb.Schema.AutoConsume: "AUTO_CONSUME",
    pb.Schema.External: "EXTERNAL",
    getattr(pb.Schema, "None"): "NONE",
}
"""The types on the wire, by the REST API's names (upstream: SchemaType)."""
TYPES = {kind: number for number, kind in KINDS.items()}
REST_KINDS = {**{kind: kind for kind in TYPES}, "BYTES": "NONE"} | {
    kind: kind for kind in ("AUTO", "AUTO_PUBLISH")
}
"""The types in requests to the REST API, and their stored types."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema that a client offers for a topic.

    Attributes:
        kind: The type's name in the REST API.
        data: The definition.
        properties: The client's properties.
    """

    kind: str
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(sent: pb.Schema) -> Schema:
        """Convert the schema in a client's command."""
        properties = {pair.key: pair.value for pair in sent.properties}
        return Schema(KINDS[sent.type], sent.schema_data, properties)


def as_sent(name: str, stored: StoredSchema) -> pb.Schema:
    """Convert a stored schema to the protobuf message in a command."""
    properties = [pb.KeyValue(key=key, value=value) for key, value in stored.properties.items()]
    return pb.Schema(
        name=name, schema_data=stored.data, type=TYPES[stored.kind], properties=properties
    )


_VERSION = struct.Struct(">q")
NO_VERSION = b""
"""The version of a producer without a schema."""


def version_bytes(version: int) -> bytes:
    """Encode a schema version as in commands: 8 bytes, big-endian."""
    return _VERSION.pack(version)


def version_of_bytes(data: bytes) -> int:
    """Decode a schema version from its first 8 bytes; ignore further bytes, as Pulsar does.

    Raises:
        RequestError: Fewer than 8 bytes.
    """
    if len(data) < _VERSION.size:
        raise RequestError(pb.IncompatibleSchema, f"a schema version has {_VERSION.size} bytes")
    version: int = _VERSION.unpack_from(data)[0]
    return version


class SchemaRules(NamedTuple):
    """The rules by which a profile (floodgate or pulsar) checks schemas and answers requests.

    Attributes:
        refuses_by_name: A truncated KEY_VALUE schema is refused with a reason, like unreadable
            versions and names; otherwise a producer gets no answer, a consumer gets no reason, and
            the connection closes.
        checks_first_consumer: The schema of a topic's first consumer must be readable; otherwise an
            unreadable schema is ignored.
        shows_deletion: GET_SCHEMA answers a deletion with a schema without type; otherwise with no
            schema.
    """

    refuses_by_name: bool
    checks_first_consumer: bool
    shows_deletion: bool


PULSAR_SCHEMAS = SchemaRules(
    refuses_by_name=False, checks_first_consumer=False, shows_deletion=True
)
FLOODGATE_SCHEMAS = SchemaRules(
    refuses_by_name=True, checks_first_consumer=True, shows_deletion=False
)


KEY_VALUE = "KEY_VALUE"
_LENGTH = struct.Struct(">i")


class TruncatedKeyValueError(Exception):
    """The data of a KEY_VALUE schema ends before its two definitions are complete."""


def halves(schema: Schema) -> tuple[Schema, Schema]:
    """Split a KEY_VALUE schema into two schemas, for key and value.

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
    """Return the data of a KEY_VALUE schema, made of the definitions of key and value."""
    return b"".join((_LENGTH.pack(len(key)), key, _LENGTH.pack(len(value)), value))


def as_text(schema: Schema) -> str:
    """Return a KEY_VALUE schema's data as the JSON text that the REST API uses.

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
    """Return a KEY_VALUE schema's data, parsed from the JSON text that the REST API uses.

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
