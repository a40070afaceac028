"""Frames of the wire protocol: protobuf commands preceded by length fields.

A frame consists of views of the received chunks, so that a large response can be forwarded without
a copy. The decoder stops between frames: its owner decides when to take the next frame, so that
reading can be paused.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING

import google_crc32c

from proto.errors import FrameTooLargeError, RemoteProtocolError
from proto.parsing.parser import parse_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import proto.PulsarApi_pb2 as pb

DEFAULT_MAX_MESSAGE_BYTES = 5_242_880
"""Upstream's maxMessageSize."""
FRAME_PADDING_BYTES = 10_236
"""Allowance of the length field above maxMessageSize (observed on a real broker)."""
LENGTH_FIELD_BYTES = 4
"""Bytes of the length field, which it does not count."""
SMALL_CHUNK_BYTES = 1_024
SMALL_CHUNKS_JOINED = 256
LARGE_FRAME_BYTES = 1_024
"""Announced size from which a frame's owner is notified before its body arrives."""
PAYLOAD_FROM_BYTES = 4_096
"""Frame size from which to look for a payload."""
HEAD_BYTES = 48
"""Bytes at a frame's start that contain the type and the request id of its command."""
_LENGTH = struct.Struct(">I")
_LENGTHS = struct.Struct(">II")
_CHECKSUM_MAGIC = b"\x0e\x01"
_HASHED_FROM = 6
_TYPE_TAG, _TYPE_END, _LONG_VARINT = 0x08, 6, 0x80


def command_type_in(head: bytes) -> int | None:
    """Return an unparsed command's type; None if the command does not begin with it.

    Every serializer used by clients writes the type first.

    Args:
        head: The first six or more bytes after a frame's length field.
    """
    if len(head) < _TYPE_END or head[_LENGTH.size] != _TYPE_TAG:
        return None
    number = head[_TYPE_END - 1]
    return number if number < _LONG_VARINT else None


def command_size_in(head: bytes) -> int:
    """Return the size of the command in bytes, as announced by its frame.

    ``head`` is as in command_type_in.
    """
    (size,) = _LENGTH.unpack_from(head)
    return int(size)


class Frame:
    """A received frame: its announced size and the bytes after its length field.

    Attributes:
        total_size: The value of the length field: the number of bytes after it.
        parts: The bytes after the length field, as views of the received chunks.
    """

    __slots__ = ("parts", "total_size")

    def __init__(self, total_size: int, parts: Sequence[memoryview]) -> None:
        self.total_size = total_size
        self.parts = parts

    def body(self) -> bytes:
        """Return all bytes after the frame's length field, joined."""
        return b"".join(self.parts)

    def start(self, size: int) -> bytes:
        """Return the first ``size`` bytes after the frame's length field, or fewer."""
        return _first_bytes(self.parts, size)

    def command_type(self) -> int | None:
        """Return the type of the unparsed command, or None; see command_type_in."""
        return command_type_in(self.start(_TYPE_END))

    def work_bytes(self) -> int:
        """Return the cost of processing the frame, expressed in bytes.

        The payload's bytes count a quarter, since they are only copied.
        """
        size = self.total_size
        if size < PAYLOAD_FROM_BYTES:
            return size
        payload = size - command_size_in(self.start(LENGTH_FIELD_BYTES))
        return size - max(0, payload) * 3 // 4

    def command_bytes(self) -> bytes:
        """Return the command's protobuf bytes, without copying the payload.

        Raises:
            RemoteProtocolError: The command's length does not fit the frame.
        """
        end = _command_end(self.start(_LENGTH.size), self.total_size)
        return self.start(end)[_LENGTH.size :]

    def command(self) -> pb.BaseCommand:
        """Return the parsed command.

        Raises:
            RemoteProtocolError: See parse_command.
        """
        return parse_command(self.command_bytes())


def split_body(body: bytes, total_size: int) -> tuple[bytes, bytes]:
    """Split a frame's body into the command's bytes and the payload (of SEND and MESSAGE)."""
    end = _command_end(body, total_size)
    return body[_LENGTH.size : end], body[end:]


def _command_end(head: bytes, total_size: int) -> int:
    """Return the offset of a command's end, counted from the end of the frame's length field."""
    if total_size < _LENGTH.size:
        raise RemoteProtocolError(f"a frame of {total_size} bytes has no room for a command")
    end = _LENGTH.size + command_size_in(head)
    if end > total_size:
        raise RemoteProtocolError(
            f"a command of {end - _LENGTH.size} bytes does not fit a frame of {total_size} bytes"
        )
    return end


def _first_bytes(parts: Iterable[memoryview], size: int) -> bytes:
    out = bytearray()
    for part in parts:
        if not out and len(part) >= size:
            return part[:size].tobytes()  # The common case: a frame in one chunk.
        out += part[: size - len(out)]
        if len(out) >= size:
            break
    return bytes(out)


def encode_command(command: pb.BaseCommand) -> bytes:
    """Encode a command without a payload as a frame."""
    data = command.SerializeToString()
    return _LENGTHS.pack(len(data) + _LENGTH.size, len(data)) + data


def encode_payload_command(command: pb.BaseCommand, metadata: bytes, payload: bytes) -> bytes:
    """Encode a command with a payload (SEND, MESSAGE) as a frame, with a checksum."""
    data = command.SerializeToString()
    tail = _LENGTH.pack(len(metadata)) + metadata + payload
    checked = _CHECKSUM_MAGIC + _LENGTH.pack(google_crc32c.value(tail)) + tail
    return _LENGTHS.pack(_LENGTH.size + len(data) + len(checked), len(data)) + data + checked


def verify_checksum(tail: bytes) -> bool:
    """Return True if the bytes after a command match their CRC32C, or have no checksum."""
    if not tail.startswith(_CHECKSUM_MAGIC):
        return True
    if len(tail) < _HASHED_FROM:
        return False
    (announced,) = _LENGTH.unpack_from(tail, len(_CHECKSUM_MAGIC))
    return bool(google_crc32c.value(tail[_HASHED_FROM:]) == announced)


class FrameDecoder:
    """Decoder that splits a connection's received bytes into frames.

    Holds at most one announced frame and the rest of the last chunk.

    Args:
        max_message_bytes: maxMessageSize; a length field may announce 10,236 more.
        on_large_frame: Called once for each frame of LARGE_FRAME_BYTES or more, before its body is
            complete, with the announced size and the first bytes after the length field. On False
            the frame is drained instead of returned.
    """

    def __init__(
        self,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        on_large_frame: Callable[[int, bytes], bool] | None = None,
    ) -> None:
        self.max_message_bytes = max_message_bytes
        self._on_large_frame = on_large_frame
        self._chunks: deque[memoryview] = deque()
        self._buffered = 0
        self._small = 0
        self._expected: int | None = None
        self._announced = False
        self._draining = 0

    @property
    def buffered_bytes(self) -> int:
        """Number of bytes received and not yet returned as part of a frame."""
        return self._buffered

    @property
    def within_frame(self) -> bool:
        """True if bytes of a frame have been received, but the frame is not yet returned."""
        return self._expected is not None or self._buffered > 0 or self._draining > 0

    @property
    def unfinished_bytes(self) -> int:
        """Number of bytes received of an incomplete frame whose length is known."""
        return 0 if self._expected is None else self._buffered

    @property
    def between_frames(self) -> bool:
        """True if the buffered bytes begin at the start of a frame.

        Only then does ``take_residue`` return all bytes of that frame.
        """
        return self._expected is None and not self._draining

    def feed(self, data: bytes | memoryview) -> None:
        """Append a received chunk of bytes."""
        view = memoryview(data)
        if self._draining:
            skipped = min(self._draining, len(view))
            self._draining -= skipped
            view = view[skipped:]
        if len(view):
            self._chunks.append(view)
            self._buffered += len(view)
            self._small = self._small + 1 if len(view) < SMALL_CHUNK_BYTES else 0
            if self._small == SMALL_CHUNKS_JOINED:
                self._join_small()

    def _join_small(self) -> None:
        """Join the last small chunks, since even a one-byte chunk occupies two hundred bytes."""
        count = min(self._small, len(self._chunks))
        tail = [self._chunks.pop() for _ in range(count)]
        self._chunks.append(memoryview(b"".join(reversed(tail))))
        self._small = 0

    def next_frame(self) -> Frame | None:
        """Return the next frame, or None if it has not been received completely.

        Raises:
            FrameTooLargeError: The length field is above the limit.
        """
        if len(self._chunks) == 1 and (frame := self._only_frame()) is not None:
            return frame
        while True:
            if self._expected is None and not self._read_length():
                return None
            if not self._announced and self._buffered >= HEAD_BYTES and not self._announce():
                continue
            expected = self._expected
            if expected is None or self._buffered < expected:
                return None
            self._expected = None
            return Frame(expected, self._take(expected))

    def _only_frame(self) -> Frame | None:
        """Return a small frame that arrived as one chunk, as most requests do; otherwise None."""
        size = self._buffered - _LENGTH.size
        if self._expected is not None or not 0 <= size < LARGE_FRAME_BYTES:
            return None
        chunk = self._chunks[0]
        if _LENGTH.unpack_from(chunk) != (size,):
            return None
        self._chunks.clear()
        self._buffered = 0
        return Frame(size, (chunk[_LENGTH.size :],))

    def take_residue(self) -> bytes:
        """Return and remove all buffered bytes, undecoded.

        Call it only between frames: a length field that was read already is not returned.
        """
        return b"".join(self._take(self._buffered))

    def discard(self) -> None:
        """Drop all buffered bytes."""
        self._chunks.clear()
        self._buffered = 0

    def _read_length(self) -> bool:
        if self._buffered < _LENGTH.size:
            return False
        (size,) = _LENGTH.unpack(b"".join(self._take(_LENGTH.size)))
        limit = self.max_message_bytes + FRAME_PADDING_BYTES
        if size > limit:
            raise FrameTooLargeError(size, limit)
        self._expected = size
        self._announced = size < LARGE_FRAME_BYTES or self._on_large_frame is None
        return True

    def _announce(self) -> bool:
        """Notify the decoder's owner of a large frame; return False if the owner rejects it."""
        self._announced = True
        size = self._expected or 0
        head = _first_bytes(self._chunks, HEAD_BYTES)
        if self._on_large_frame is None or self._on_large_frame(size, head):
            return True
        here = min(size, self._buffered)
        self._take(here)
        self._draining = size - here
        self._expected = None
        return False

    def _take(self, size: int) -> list[memoryview]:
        self._buffered -= size
        parts: list[memoryview] = []
        while size:
            chunk = self._chunks[0]
            if len(chunk) <= size:
                parts.append(self._chunks.popleft())
                size -= len(chunk)
            else:
                parts.append(chunk[:size])
                self._chunks[0] = chunk[size:]
                size = 0
        return parts
