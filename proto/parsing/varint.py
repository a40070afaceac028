"""Protobuf's variable-length integers: seven bits per byte, lowest bits first."""

from __future__ import annotations

from proto.errors import RemoteProtocolError

MAX_VARINT_BYTES = 10
_MASK = 2**64 - 1
_SHORT = tuple(bytes((value,)) for value in range(0x80))


def encode_varint(value: int) -> bytes:
    """Encode ``value`` (0 to 2**64 - 1) as a varint of 1 to 10 bytes."""
    if 0 <= value < 0x80:
        return _SHORT[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(data: bytes | memoryview, offset: int) -> tuple[int, int]:
    """Return the varint at ``offset``, truncated to 64 bits, and the offset after it.

    Raises:
        RemoteProtocolError: The varint is incomplete or has more than ten bytes.
    """
    value = shift = 0
    for index in range(offset, min(offset + MAX_VARINT_BYTES, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, index + 1
        shift += 7
    raise RemoteProtocolError("a varint is cut off or longer than ten bytes")
