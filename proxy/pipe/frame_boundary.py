"""Frame boundaries of an undecoded stream, from the frame lengths."""

from __future__ import annotations

import struct

_LENGTH = struct.Struct(">I")


class FrameBoundary:
    """Follows a stream, chunk after chunk, from the beginning of a frame on."""

    def __init__(self) -> None:
        self._left = 0
        self._length = b""

    @property
    def reached(self) -> bool:
        """True if the next byte begins a frame."""
        return not (self._left or self._length)

    def follow(self, data: bytes) -> None:
        """Process a chunk."""
        at, size = self._rest_of_frame(data), len(data)
        if not self.reached:
            return
        while at <= size - _LENGTH.size:
            at += _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
        if at > size:
            self._left = at - size
        else:
            self._length = data[at:]

    def follow_to_next(self, data: bytes) -> int:
        """Consume the rest of the current frame from a chunk; return the number of bytes."""
        return self._rest_of_frame(data)

    def _rest_of_frame(self, data: bytes) -> int:
        at = 0
        if self._length:
            at = min(_LENGTH.size - len(self._length), len(data))
            self._length += data[:at]
            if len(self._length) < _LENGTH.size:
                return at
            (self._left,) = _LENGTH.unpack(self._length)
            self._length = b""
        taken = min(self._left, len(data) - at)
        self._left -= taken
        return at + taken
