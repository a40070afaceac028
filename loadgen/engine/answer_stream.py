"""Incremental parsing of received frames, without holding a whole topic listing in memory.

Bytes in, values out: no I/O and no clock. The body of a listing goes straight to the
:class:`~loadgen.engine.answers.AnswerBody` that the caller provides; every other command is
collected and parsed, a message with the payload after it.

Source: the simple frame of Pulsar's binary protocol, and protobuf's encoding of a BaseCommand with
only the fields type and getTopicsOfNamespaceResponse. A listing in another encoding is collected
and parsed by protobuf.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.frames import HEAD_BYTES
from proto.parsing.parser import parse_command
from proto.parsing.varint import decode_varint
from proto.topics_response import read_topics_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadgen.engine.answers import AnswerBody

# The length field of an answer. A broker writes listings beyond its own frame limit without an
# error, so this bound is ours: 1.5 million names of 170 bytes.
LARGEST_FRAME_BYTES = 256 * 1024 * 1024
_LENGTHS = struct.Struct(">II")
_LISTING_LENGTH_AT = 8  # After the command's size, type and tag.


class Listing(NamedTuple):
    """A completely received GET_TOPICS_OF_NAMESPACE_RESPONSE command, with a list of topics.

    Attributes:
        request_id: The id of the answered request.
        body: The bytes of the response after the request id.
    """

    request_id: int
    body: AnswerBody


class AnswerStream:
    """An incremental parser of the bytes that a client's connection receives.

    Mutable state: the incomplete frame.

    Args:
        new_body: Returns the object that collects a listing's bytes, given the request's id.
    """

    def __init__(self, new_body: Callable[[int], AnswerBody]) -> None:
        self._new_body = new_body
        self._start = b""  # Of a frame, still without a type.
        self._frame = bytearray()  # Of a command and the payload after it.
        self._command_bytes = 0
        self._listing: Listing | None = None
        self._remaining = 0  # Of the frame or the listing.

    @property
    def wanted(self) -> int:
        """The number of bytes that the incomplete frame still lacks; 1 between frames."""
        return self._remaining or 1

    def feed(self, chunk: memoryview) -> Iterator[tuple[Listing | pb.BaseCommand, bytes]]:
        """Parse received bytes; yield each command that becomes complete, with its payload.

        Raises:
            RemoteProtocolError: The bytes are not Pulsar's binary protocol.
        """
        if self._start:
            chunk, self._start = memoryview(self._start + chunk), b""
        while chunk:
            if not self._remaining:
                begun = self._begin(chunk)
                if not begun:
                    self._start = bytes(chunk)
                    break
                chunk = chunk[begun:]
            part, chunk = chunk[: self._remaining], chunk[self._remaining :]
            self._remaining -= len(part)
            if self._listing is None:
                self._frame += part
            else:
                self._listing.body.feed(part)
            if not self._remaining:
                yield self._finished()

    def _begin(self, chunk: memoryview) -> int:
        """Parse the head of a frame; return its size in bytes, or 0 if more bytes are needed."""
        if len(chunk) < _LENGTHS.size:
            return 0
        total, size = _LENGTHS.unpack_from(chunk)
        if total > LARGEST_FRAME_BYTES:
            raise RemoteProtocolError(f"a frame of {total} bytes is announced")
        if size == 0 or total < size + 4:
            raise RemoteProtocolError(
                f"a frame of {total} bytes with a command of {size} bytes arrived"
            )
        end = _LENGTHS.size + size
        if len(chunk) < min(end, HEAD_BYTES):
            return 0
        start = bytes(chunk[4 : min(end, HEAD_BYTES)])
        head = read_topics_head(start)
        # The listing has to reach to the command's end: the length field has a known offset.
        if head is None or sum(decode_varint(start, _LISTING_LENGTH_AT)) != size + 4:
            self._command_bytes, self._remaining = size, total - 4
            return _LENGTHS.size
        request_id, begun = head[0], head[1] + 4
        self._listing = Listing(request_id, self._new_body(request_id))
        self._remaining = end - begun
        return begun

    def _finished(self) -> tuple[Listing | pb.BaseCommand, bytes]:
        listing, self._listing = self._listing, None
        if listing is not None:
            return listing, b""
        frame = bytes(self._frame)
        self._frame.clear()
        command, payload = parse_command(frame[: self._command_bytes]), frame[self._command_bytes :]
        if payload and command.type != pb.BaseCommand.MESSAGE:
            raise RemoteProtocolError(
                f"{len(payload)} bytes stand behind a command without payload"
            )
        if not command.HasField("getTopicsOfNamespaceResponse"):
            return command, payload
        # Another encoding than that of Pulsar's own encoders.
        response = command.getTopicsOfNamespaceResponse
        listing = Listing(response.request_id, self._new_body(response.request_id))
        response.request_id = 1  # One byte, so that the body begins at a known offset.
        listing.body.feed(memoryview(response.SerializeToString())[2:])
        return listing, b""
