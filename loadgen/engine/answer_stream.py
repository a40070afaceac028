"""Takes frames apart while they arrive, without holding a listing in memory.

Bytes in, values out: no I/O and no clock. The body of a listing goes straight to the
:class:`~loadgen.engine.answers.AnswerBody` that the caller provides; every other command is
collected and parsed.

Source: the simple frame of Pulsar's binary protocol, and how protobuf writes a BaseCommand whose
only fields are its type and getTopicsOfNamespaceResponse. A listing that is written in any other
way is collected and taken apart by protobuf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.parsing.parser import parse_command
from proto.parsing.varint import decode_varint

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.engine.answers import AnswerBody

# The length field of one answer. A broker writes listings beyond its own frame limit without an
# error, so this bound is ours: 1.5 million names of 170 bytes.
LARGEST_FRAME_BYTES = 256 * 1024 * 1024
_HEADER_BYTES = 8
# type, tag of field 33, its length, tag of request_id, the id: at most 2 + 2 + 5 + 1 + 10 bytes.
_HEAD_BYTES = 20
_LISTING_HEAD = b"\x08\x21\x8a\x02"
_REQUEST_ID_TAG = 0x08


@dataclass(frozen=True, slots=True)
class Listing:
    """A complete GET_TOPICS_OF_NAMESPACE_RESPONSE.

    Attributes:
        request_id: The request that it answers.
        body: What stands behind the request id.
    """

    request_id: int
    body: AnswerBody


Received = Listing | pb.BaseCommand


class AnswerStream:
    """The incoming bytes of one connection.

    Args:
        new_body: Provides the place for a listing's bytes, by the request that it answers.
    """

    def __init__(self, new_body: Callable[[int], AnswerBody]) -> None:
        self._new_body = new_body
        self._head = bytearray()
        self._needed = _HEADER_BYTES
        self._in_header = True
        self._remaining = 0  # of the frame, behind what _head holds
        self._command_bytes = 0
        self._listing: Listing | None = None

    @property
    def idle(self) -> bool:
        """True if the stream stands between two frames."""
        return self._in_header and not self._head

    def feed(self, chunk: memoryview) -> list[Received]:
        """Take bytes as they come and return the commands that they complete.

        Raises:
            RemoteProtocolError: The bytes are not Pulsar's binary protocol.
        """
        completed: list[Received] = []
        while chunk:
            chunk = self._take(chunk)
            done = self._completed()
            if done is not None:
                completed.append(done)
        return completed

    def _take(self, chunk: memoryview) -> memoryview:
        if self._listing is not None:
            size = min(self._remaining, len(chunk))
            self._listing.body.feed(chunk[:size])
            self._remaining -= size
            return chunk[size:]
        size = min(self._needed - len(self._head), len(chunk))
        self._head += chunk[:size]
        return chunk[size:]

    def _completed(self) -> Received | None:
        if self._listing is None and len(self._head) == self._needed:
            if self._in_header:
                self._begin_command()
                return None
            self._recognize()
        if self._listing is not None and self._remaining == 0:
            return self._finish(self._listing)
        if self._listing is None and not self._in_header and len(self._head) == self._command_bytes:
            return self._finish(parse_command(bytes(self._head)))
        return None

    def _begin_command(self) -> None:
        total = int.from_bytes(self._head[:4], "big")
        self._command_bytes = int.from_bytes(self._head[4:], "big")
        if total > LARGEST_FRAME_BYTES:
            raise RemoteProtocolError(f"a frame of {total} bytes is announced")
        if self._command_bytes == 0 or total != self._command_bytes + 4:
            raise RemoteProtocolError(
                f"a frame of {total} bytes with a command of {self._command_bytes} bytes arrived"
            )
        self._head.clear()
        self._in_header = False
        self._needed = min(self._command_bytes, _HEAD_BYTES)

    def _recognize(self) -> None:
        head = listing_head(bytes(self._head), self._command_bytes)
        if head is None:
            self._needed = self._command_bytes
            return
        request_id, offset = head
        self._listing = Listing(request_id, self._new_body(request_id))
        self._listing.body.feed(memoryview(self._head)[offset:])
        self._remaining = self._command_bytes - len(self._head)

    def _finish(self, received: Received) -> Received:
        if isinstance(received, pb.BaseCommand) and received.HasField(
            "getTopicsOfNamespaceResponse"
        ):
            received = self._unusual_listing(received.getTopicsOfNamespaceResponse)
        self._head = bytearray()
        self._needed, self._in_header = _HEADER_BYTES, True
        self._listing = None
        return received

    def _unusual_listing(self, response: pb.CommandGetTopicsOfNamespaceResponse) -> Listing:
        request_id = response.request_id
        listing = Listing(request_id, self._new_body(request_id))
        response.request_id = 1  # one byte, so that the body begins at a known place
        listing.body.feed(memoryview(response.SerializeToString())[2:])
        return listing


def listing_head(head: bytes, command_bytes: int) -> tuple[int, int] | None:
    """Return request id and offset of the body, or None if this is not a plain listing.

    Args:
        head: The first bytes of a BaseCommand, 20 if it has as many.
        command_bytes: Length of the whole command.
    """
    if not head.startswith(_LISTING_HEAD):
        return None
    try:
        size, offset = decode_varint(head, len(_LISTING_HEAD))
        if offset + size != command_bytes or head[offset : offset + 1] != bytes((_REQUEST_ID_TAG,)):
            return None
        return decode_varint(head, offset + 1)
    except RemoteProtocolError:
        return None
