"""A client's schema, and the names of the types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb

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
    """An offered schema.

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
        """Return the schema of a command."""
        properties = {pair.key: pair.value for pair in sent.properties}
        return Schema(KINDS[sent.type], sent.schema_data, properties)


def as_sent(name: str, stored: StoredSchema) -> pb.Schema:
    """Return a stored schema as a command's field."""
    properties = [pb.KeyValue(key=key, value=value) for key, value in stored.properties.items()]
    return pb.Schema(
        name=name, schema_data=stored.data, type=TYPES[stored.kind], properties=properties
    )
