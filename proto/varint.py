"""Protobuf's numbers, written by hand where a message a frame is too many for its encoder."""

from __future__ import annotations

_SMALL = 128
_ONE_BYTE = tuple(bytes((number,)) for number in range(_SMALL))
_TWO_BYTES = _SMALL * _SMALL


def varint(number: int) -> bytes:
    """Return a number, not negative, as protobuf writes it."""
    if number < _SMALL:
        return _ONE_BYTE[number]
    if number < _TWO_BYTES:
        return bytes((number & 127 | 128, number >> 7))
    digits = bytearray()
    while number >= _SMALL:
        digits.append(number & 127 | 128)
        number >>= 7
    digits.append(number)
    return bytes(digits)
