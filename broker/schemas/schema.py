"""A schema as a client sends it, and the names of the types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    getattr(pb.Schema, "None"): "NONE",
}
"""The types of the wire, as the REST API calls them (upstream: SchemaType)."""
TYPES = {kind: number for number, kind in KINDS.items()}
AUTO_CONSUME = "AUTO_CONSUME"


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema that somebody offers.

    Attributes:
        kind: Its type as the REST API calls it.
        data: The definition.
        properties: The client's own.
    """

    kind: str
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(sent: pb.Schema) -> Schema:
        """Return the schema of a command."""
        properties = {pair.key: pair.value for pair in sent.properties}
        return Schema(KINDS[sent.type], sent.schema_data, properties)
