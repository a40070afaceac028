"""Reading of a protobuf message's fields without parsing it, and repair of invalid UTF-8."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.parsing.command_bounds import COMMAND_BYTES
from proto.parsing.varint import decode_varint, encode_varint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.descriptor import Descriptor

MAX_FIELDS_PASSED = 64
"""Fields skipped in a search for a field: clients write fields in order of their numbers."""
VARINT, LENGTH_DELIMITED = 0, 2
_FIXED_BYTES = {1: 8, 5: 4}


def check_bodies(command: bytes) -> None:
    """Check that every body of a command, even a repeated one, has its required fields.

    Google's parser merges repeated bodies; upstream requires each to be complete.

    Raises:
        RemoteProtocolError: A body is incomplete, or not protobuf.
    """
    known = pb.BaseCommand.DESCRIPTOR.fields_by_number
    for field in islice(fields(memoryview(command)), MAX_FIELDS_PASSED):
        described = known.get(field.number)
        if described is None or described.message_type is None:
            continue
        if field.wire_type == LENGTH_DELIMITED and isinstance(field.value, memoryview):
            body = getattr(pb.BaseCommand(), described.name)
            try:
                body.ParseFromString(field.value.tobytes())
            except DecodeError:
                raise RemoteProtocolError("a command has a body that is not protobuf") from None
            if not body.IsInitialized():
                raise RemoteProtocolError("a command has a body that lacks a required field")


class Field(NamedTuple):
    """A field of an unparsed protobuf message.

    Attributes:
        number: The field number.
        wire_type: The wire type.
        value: A number, or the bytes of a length-delimited or fixed-size field.
        start: The offset of the field's tag.
        end: The offset of the next field.
    """

    number: int
    wire_type: int
    value: int | memoryview
    start: int
    end: int


MOST_FIELDS = 10_000
"""Most fields of a very large command, and of its schema, since each field costs an object."""
_SCHEMAS = frozenset((3, 7, 12))
"""Field numbers of the schema in GET_OR_CREATE_SCHEMA, PRODUCER and SUBSCRIBE."""
_LARGE_SCHEMA_BYTES = 4_096


def check_large_command(command: bytes) -> None:
    """Check that a large command has few fields and is large only because of its schema.

    Raises:
        RemoteProtocolError: Its body, or the schema in it, has more fields than MOST_FIELDS, or a
            field other than a schema has more bytes than a command without a schema may have.
    """
    for _, body in _large_parts(memoryview(command)):
        for number, part in _large_parts(body):
            if number in _SCHEMAS:
                deque(_counted(part), maxlen=0)
            elif len(part) > COMMAND_BYTES:
                # Names are split and searched, and repeated in errors.
                raise RemoteProtocolError(
                    f"a command whose field {number} has {len(part)} bytes; only a schema may "
                    f"exceed {COMMAND_BYTES}"
                )


def _large_parts(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    for field in _counted(message):
        if isinstance(field.value, memoryview) and len(field.value) > _LARGE_SCHEMA_BYTES:
            yield field.number, field.value


def _counted(message: memoryview) -> Iterator[Field]:
    for count, field in enumerate(fields(message)):
        if count >= MOST_FIELDS:
            raise RemoteProtocolError(f"a command with more than {MOST_FIELDS} fields")
        yield field


def fields(message: memoryview) -> Iterator[Field]:
    """Yield the fields of a protobuf message in order, without parsing the whole message.

    Raises:
        RemoteProtocolError: The bytes are not protobuf, or have a group, which no command has.
    """
    end = 0
    while end < len(message):
        start = end
        tag, end = decode_varint(message, start)
        value, end = _value(message, tag & 7, end)
        yield Field(tag >> 3, tag & 7, value, start, end)


def _value(message: memoryview, kind: int, start: int) -> tuple[int | memoryview, int]:
    if kind == VARINT:
        return decode_varint(message, start)
    if kind == LENGTH_DELIMITED:
        size, start = decode_varint(message, start)
    elif kind in _FIXED_BYTES:
        size = _FIXED_BYTES[kind]
    else:
        raise RemoteProtocolError(f"a field of the wire type {kind}, which no command has")
    if start + size > len(message):
        raise RemoteProtocolError("a field is longer than its command")
    return message[start : start + size], start + size


MAX_MENDED_BYTES = 65_536
"""Largest repaired command in bytes: a larger command would block the event loop."""
MOST_MENDED_FIELDS = 4_000
"""Most fields of a repaired command, with those of the messages in it; each takes about 2 us."""
MOST_NESTED = 100
"""Most messages nested in each other: Google's parser refuses more."""


def mended(data: bytes, kind: Descriptor) -> bytes:
    """Return a protobuf message with invalid UTF-8 in its text fields replaced.

    Args:
        data: The message; bytes that are not protobuf, or above a limit, are returned unchanged.
        kind: The message's type.
    """
    if len(data) > MAX_MENDED_BYTES:
        return data
    try:
        return _Mending().message(memoryview(data), kind)
    except RemoteProtocolError:
        return data


class _Mending:
    """A repair of one message, up to the limits of its fields and of nested messages."""

    def __init__(self) -> None:
        self._fields = self._nested = 0

    def message(self, message: memoryview, kind: Descriptor) -> bytes:
        """Return the message, or a message nested in it, with its text repaired."""
        self._nested += 1
        out = bytearray()
        for field in fields(message):
            self._fields += 1
            if self._fields > MOST_MENDED_FIELDS or self._nested > MOST_NESTED:
                raise RemoteProtocolError("a command with too many fields")
            if isinstance(field.value, int) or field.wire_type != LENGTH_DELIMITED:
                out += message[field.start : field.end]
                continue
            value = self._value(field.value, kind.fields_by_number.get(field.number))
            tag = field.number << 3 | LENGTH_DELIMITED
            out += encode_varint(tag) + encode_varint(len(value)) + value
        self._nested -= 1
        return bytes(out)

    def _value(self, value: memoryview, described: FieldDescriptor | None) -> bytes:
        if described is not None and described.type == FieldDescriptor.TYPE_STRING:
            return bytes(value).decode(errors="replace").encode()
        if described is None or described.message_type is None:
            return bytes(value)
        return self.message(value, described.message_type)
