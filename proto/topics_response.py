"""Encoding and reading of GET_TOPICS_OF_NAMESPACE_RESPONSE without copying the topic names.

Writing or reading a response creates neither a protobuf object nor a copy of the names.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.parsing.unparsed import fields
from proto.parsing.varint import decode_varint, encode_varint

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

_LENGTHS = struct.Struct(">II")
_COMMAND_SIZE_BYTES = 4
_REQUEST_ID_TAG = b"\x08"
_FILTERED = (b"\x18\x00", b"\x18\x01")
_HASH_TAG = b"\x22"
_CHANGED = (b"\x28\x00", b"\x28\x01")
_TAIL = re.compile(rb"\x18([\x00\x01])\x22\x08([0-9a-f]{8})\x28([\x00\x01])", re.DOTALL)
_TAIL_BYTES = 14
_TOPICS_TAG = 0x12
PIECE_BYTES = 65_536
"""Bytes of a response parsed in one step: half a millisecond."""
COPY_BYTES = 1 << 20
"""Bytes of a response copied in one step: half a millisecond."""


def command_start(kind: pb.BaseCommand.Type.ValueType) -> bytes:
    """Return a command's first bytes: its type field and the tag of its body.

    The body's field number equals the type.
    """
    return b"\x08" + encode_varint(kind) + encode_varint(kind << 3 | 2)


_START = command_start(pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE)


class TopicsResponse:
    """A frame with topic names, encoded as a list of buffers.

    Attributes:
        buffers: The frame's bytes in order.
        command_bytes: Size of the command, charged as direct memory.
    """

    __slots__ = ("buffers", "command_bytes")

    def __init__(self, buffers: list[bytes | memoryview], command_bytes: int) -> None:
        self.buffers = buffers
        self.command_bytes = command_bytes

    @property
    def size(self) -> int:
        """Size of the whole frame in bytes."""
        return self.command_bytes + _LENGTHS.size

    def joined(self) -> TopicsResponse:
        """Return a copy of the response in a single buffer."""
        return TopicsResponse([b"".join(self.buffers)], self.command_bytes)

    def copying(self) -> Generator[None, None, TopicsResponse]:
        """Copy the response in steps, a buffer of about COPY_BYTES in each; return the copy."""
        copies: list[bytes | memoryview] = []
        some, size = [b""], 0  # Of two or more buffers, even if empty, a copy is made.
        for buffer in self.buffers:
            some.append(cast("bytes", buffer))
            size += len(buffer)
            if size >= COPY_BYTES:
                copies.append(b"".join(some))
                some, size = [b""], 0
                yield
        if len(some) > 1:
            copies.append(b"".join(some))
        return TopicsResponse(copies, self.command_bytes)


def encode_topics_response(
    request_id: int,
    names: Sequence[bytes],
    names_bytes: int,
    topics_hash: str,
    *,
    filtered: bool,
    changed: bool,
) -> TopicsResponse:
    """Encode the response to a topic-list request without copying the topic names.

    Args:
        request_id: The client's request id, 0 to 2**64 - 1.
        names: Names in UTF-8; none when the client's list is still current.
        names_bytes: The sum of the names' bytes.
        topics_hash: Hash of the client's new list.
        filtered: Whether the broker applied the client's pattern.
        changed: False when the client's own hash was current.
    """
    digest = topics_hash.encode()
    tail = _FILTERED[filtered] + _HASH_TAG + encode_varint(len(digest)) + digest + _CHANGED[changed]
    return framed(_START, _REQUEST_ID_TAG + encode_varint(request_id), names, names_bytes, tail)


def framed(
    start: bytes, ids: bytes, parts: Sequence[bytes | memoryview], parts_bytes: int, tail: bytes
) -> TopicsResponse:
    """Build a command's frame from its first bytes and the pieces of its body, without copying."""
    body_size = len(ids) + parts_bytes + len(tail)
    prefix = start + encode_varint(body_size)
    command_size = len(prefix) + body_size
    head = _LENGTHS.pack(command_size + _COMMAND_SIZE_BYTES, command_size) + prefix + ids
    buffers: list[bytes | memoryview] = [head, *parts]
    if tail:
        buffers.append(tail)
    return TopicsResponse(buffers, command_size)


def read_topics_head(head: bytes) -> tuple[int, int] | None:
    """Read the request id at the start of an unparsed topic-list response.

    Args:
        head: The bytes after the first length field: at least 40, or the whole frame.

    Returns:
        The request id and the offset after it; None for another command, or if the fields are not
            in the order of Pulsar's encoders.
    """
    offset = _COMMAND_SIZE_BYTES
    if head[offset : offset + len(_START)] != _START:
        return None
    try:
        _, offset = decode_varint(head, offset + len(_START))
        if head[offset : offset + 1] != _REQUEST_ID_TAG:
            return None
        return decode_varint(head, offset + 1)
    except RemoteProtocolError:
        return None


@dataclass(frozen=True, slots=True)
class TopicsTail:
    """The fields that follow the topic names in a topic-list response.

    Attributes:
        filtered: Whether the broker applied the client's pattern.
        topics_hash: Hash of the list, as eight hexadecimal digits.
        changed: False when the hash in the request was current; then the response has no names.
    """

    filtered: bool
    topics_hash: str
    changed: bool


class TopicsAnswer:
    """A received topic-list response, kept undecoded to be forwarded under other request ids.

    It lives until the slowest receiver has it, and keeps at most twice its size in memory: its part
    of a chunk with mostly other frames is copied.

    Attributes:
        rest: The bytes after the request id, as views of the received chunks.
        rest_bytes: The number of bytes in ``rest``.
        command_bytes: Size of the received command.
    """

    __slots__ = ("command_bytes", "rest", "rest_bytes")

    def __init__(self, total_size: int, parts: Sequence[memoryview], offset: int) -> None:
        self.rest = [_kept(part) for part in _skip(parts, offset)]
        self.rest_bytes = total_size - offset
        self.command_bytes = total_size - _COMMAND_SIZE_BYTES

    def addressed_to(self, request_id: int) -> TopicsResponse:
        """Return the response's frame with another request id, without copying the names."""
        ids = _REQUEST_ID_TAG + encode_varint(request_id)
        return framed(_START, ids, self.rest, self.rest_bytes, b"")

    @property
    def has_names(self) -> bool:
        """True if topic names precede the fields that ``tail`` returns."""
        return self.rest_bytes > _TAIL_BYTES

    def tail(self) -> TopicsTail | None:
        """Return the fields after the topic names, without decoding or joining the response.

        Returns:
            None if the response does not end like Pulsar's encoders end it: filtered, a hash of
                eight digits, changed. A name's bytes can be mistaken for these fields only if the
                server wrote none, and such a server ignores a request's hash as well.
        """
        found = _TAIL.fullmatch(_last_bytes(self.rest, _TAIL_BYTES))
        if found is None:
            return None
        filtered, digest, changed = found.groups()
        return TopicsTail(filtered == b"\x01", digest.decode(), changed == b"\x01")

    def decoded(self) -> pb.CommandGetTopicsOfNamespaceResponse:
        """Parse the response; the result's request id is 0.

        Raises:
            RemoteProtocolError: The response is not protobuf, or a name is not UTF-8.
        """
        return _parsed(b"".join(self.rest))

    def pieces(self) -> Iterator[pb.CommandGetTopicsOfNamespaceResponse]:
        """Parse the response in pieces, and yield each with some of the names or fields.

        It raises the errors of ``decoded``.
        """
        pending = bytearray()
        for part in self.rest:
            for start in range(0, len(part), PIECE_BYTES):
                pending += part[start : start + PIECE_BYTES]
                end = _whole_fields(pending)
                if end:
                    yield _parsed(bytes(pending[:end]))
                    del pending[:end]
        if pending:
            yield _parsed(bytes(pending))


def _parsed(some_fields: bytes) -> pb.CommandGetTopicsOfNamespaceResponse:
    response = pb.CommandGetTopicsOfNamespaceResponse()
    try:
        response.ParseFromString(_REQUEST_ID_TAG + b"\x00" + some_fields)
    except DecodeError as error:
        reason = str(error).rpartition(": ")[2]
        raise RemoteProtocolError(f"a topic list is not protobuf: {reason}") from None
    return response


def _whole_fields(data: bytearray) -> int:
    end, size = 0, len(data)
    while end + 2 < size:
        is_name, low, high = data[end] == _TOPICS_TAG, data[end + 1], data[end + 2]
        if is_name and low < 0x80:
            following = end + 2 + low
        elif is_name and high < 0x80:
            following = end + 3 + (low & 0x7F | high << 7)
        else:
            try:
                following = end + next(fields(memoryview(data)[end:])).end
            except RemoteProtocolError:
                break
        if following > size:
            break
        end = following
    return end


def _skip(parts: Sequence[memoryview], size: int) -> list[memoryview]:
    kept = []
    for part in parts:
        if size >= len(part):
            size -= len(part)
        else:
            kept.append(part[size:] if size else part)
            size = 0
    return kept


def _kept(part: memoryview) -> memoryview:
    """Return a view, or a copy if the view would keep more than twice its size in memory."""
    chunk = cast("bytes", part.obj)
    return part if 2 * len(part) >= len(chunk) else memoryview(bytes(part))


def _last_bytes(parts: Sequence[memoryview], size: int) -> bytes:
    end = b""
    for part in reversed(parts):
        if len(end) == size:
            break
        end = bytes(part[len(end) - size :]) + end
    return end
