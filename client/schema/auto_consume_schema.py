"""Decoding of values of topics with unknown schemas."""

from __future__ import annotations

import json
import struct
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.schema.avro_definition import AvroDefinition
from client.schema.versioned import VersionedSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.messages.message import Message
    from client.schema.fields import Value


class AutoConsumeSchema(VersionedSchema):
    """A schema decoding each message by its producer's schema; for consumers and readers only.

    Avro and JSON become dicts, String text, numbers and booleans their Python types; everything
    else stays bytes.
    """

    def __init__(self) -> None:
        super().__init__(None, None, None, "AUTO_CONSUME")

    def encode(self, value: Value) -> bytes:
        """Refuse to encode.

        Raises:
            TypeError: Always.
        """
        raise TypeError("AutoConsumeSchema reads only: give a producer the topic's own schema")

    def decode(self, data: bytes) -> bytes:
        """Return the bytes themselves."""
        return data

    def decoding_of(self, info: pb.Schema) -> _Reading:
        """Return the decoder of a version.

        Raises:
            ValueError: An Avro definition is invalid.
        """
        if info.type == pb.Schema.Avro:
            return _Reading(AvroDefinition(info.schema_data).read)
        return _Reading(_READERS.get(info.type, bytes))


class _Reading:
    def __init__(self, read: Callable[[bytes], Value]) -> None:
        self._read = read

    def decode_message(self, message: Message) -> Value:
        return self._read(message.data())


def _number(layout: str, data: bytes) -> Value:
    try:
        return struct.unpack(layout, data)[0]
    except struct.error:
        raise ValueError(f"{data!r:.80} is no value of the topic's schema") from None


_READERS: dict[pb.Schema.Type.ValueType, Callable[[bytes], Value]] = {
    getattr(pb.Schema, "None"): bytes,
    pb.Schema.String: bytes.decode,
    pb.Schema.Json: json.loads,
    pb.Schema.Bool: partial(_number, "?"),
    pb.Schema.Int8: partial(_number, ">b"),
    pb.Schema.Int16: partial(_number, ">h"),
    pb.Schema.Int32: partial(_number, ">i"),
    pb.Schema.Int64: partial(_number, ">q"),
    pb.Schema.Float: partial(_number, ">f"),
    pb.Schema.Double: partial(_number, ">d"),
}
