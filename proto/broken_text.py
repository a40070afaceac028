"""Text that is not UTF-8, as a real broker reads it: what is broken becomes U+FFFD."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.descriptor import FieldDescriptor

from proto.varint import encode_varint

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

MAX_MENDED_BYTES = 65_536
"""Of a larger command nothing is mended: it would take the event loop for long."""
_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


def mended(data: bytes, kind: Descriptor) -> bytes:
    """Return a protobuf message with the broken parts of its texts replaced.

    Args:
        data: The message; what is not protobuf comes back as it is.
        kind: What it is.
    """
    if len(data) > MAX_MENDED_BYTES:
        return data
    try:
        return _mended(data, kind)
    except (IndexError, ValueError):
        return data


def _mended(data: bytes, kind: Descriptor) -> bytes:
    out, at = bytearray(), 0
    while at < len(data):
        start = at
        tag, at = _varint(data, at)
        if tag & 7 != _SIZED:
            at = _skipped(data, at, tag & 7)
            out += data[start:at]
            continue
        size, at = _varint(data, at)
        if at + size > len(data):
            raise ValueError("a field ends behind its message")
        value = _value(data[at : at + size], kind.fields_by_number.get(tag >> 3))
        at += size
        out += encode_varint(tag) + encode_varint(len(value)) + value
    return bytes(out)


def _value(value: bytes, field: FieldDescriptor | None) -> bytes:
    if field is None:
        return value
    if field.type == FieldDescriptor.TYPE_STRING:
        return value.decode(errors="replace").encode()
    return _mended(value, field.message_type) if field.message_type is not None else value


def _skipped(data: bytes, at: int, wire_type: int) -> int:
    if wire_type == _VARINT:
        return _varint(data, at)[1]
    if wire_type not in _FIXED:
        raise ValueError("a group")
    return at + _FIXED[wire_type]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
