"""Repair of text that is not UTF-8, with U+FFFD as by a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.descriptor import FieldDescriptor

from proto.errors import RemoteProtocolError
from proto.parsing.unparsed import LENGTH_DELIMITED, fields
from proto.parsing.varint import encode_varint

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

MAX_MENDED_BYTES = 65_536
"""Largest repaired command in bytes: a larger command would block the event loop."""


def mended(data: bytes, kind: Descriptor) -> bytes:
    """Return a protobuf message with the invalid parts of its texts replaced.

    Args:
        data: The message; bytes that are not protobuf are returned unchanged.
        kind: The message's type.
    """
    if len(data) > MAX_MENDED_BYTES:
        return data
    try:
        return _mended(memoryview(data), kind)
    except RemoteProtocolError:
        return data


def _mended(message: memoryview, kind: Descriptor) -> bytes:
    out = bytearray()
    for field in fields(message):
        if isinstance(field.value, int) or field.wire_type != LENGTH_DELIMITED:
            out += message[field.start : field.end]
            continue
        value = _value(field.value, kind.fields_by_number.get(field.number))
        tag = field.number << 3 | LENGTH_DELIMITED
        out += encode_varint(tag) + encode_varint(len(value)) + value
    return bytes(out)


def _value(value: memoryview, described: FieldDescriptor | None) -> bytes:
    if described is None:
        return bytes(value)
    if described.type == FieldDescriptor.TYPE_STRING:
        return bytes(value).decode(errors="replace").encode()
    return _mended(value, described.message_type) if described.message_type else bytes(value)
