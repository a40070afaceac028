"""Schemas, with the names of the official client's ``pulsar.schema``."""

from client.schema.avro_schema import AvroSchema
from client.schema.compound_fields import Array, CustomEnum, Map
from client.schema.fields import (
    Boolean,
    Bytes,
    Double,
    Field,
    Float,
    Integer,
    Long,
    Null,
    String,
)
from client.schema.json_schema import JsonSchema
from client.schema.protobuf_native_schema import ProtobufNativeSchema
from client.schema.record import Record
from client.schema.schema import BytesSchema, Schema, StringSchema
from client.schema.versioned import AutoConsumeSchema

__all__ = [
    "Array",
    "AutoConsumeSchema",
    "AvroSchema",
    "Boolean",
    "Bytes",
    "BytesSchema",
    "CustomEnum",
    "Double",
    "Field",
    "Float",
    "Integer",
    "JsonSchema",
    "Long",
    "Map",
    "Null",
    "ProtobufNativeSchema",
    "Record",
    "Schema",
    "String",
    "StringSchema",
]
