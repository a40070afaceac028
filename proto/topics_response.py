"""GET_TOPICS_OF_NAMESPACE_RESPONSE as buffers: a head, the names as they were given, and a tail.

Neither a protobuf object nor a copy of the names is made, to write a response or to read one.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.parsing.varint import decode_varint, encode_varint

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

_LENGTHS = struct.Struct(">II")
_COMMAND_SIZE_BYTES = 4
_REQUEST_ID_TAG = b"\x08"
_FILTERED = (b"\x18\x00", b"\x18\x01")
_HASH_TAG = b"\x22"
_CHANGED = (b"\x28\x00", b"\x28\x01")
_TAIL = re.compile(rb"\x18([\x00\x01])\x22\x08([0-9a-f]{8})\x28([\x00\x01])", re.DOTALL)
_TAIL_BYTES = 14
_TOPICS_TAG = 0x12
_TWO_BYTES = 0x80
"""From this size on the length of a name has two bytes or more."""
_LONGEST_PREFIX = 11
"""Bytes of a name's tag and length, at most."""


def command_start(kind: pb.BaseCommand.Type.ValueType) -> bytes:
    """Return a command's type and the tag of its body, which has the number of the type."""
    return b"\x08" + encode_varint(kind) + encode_varint(kind << 3 | 2)


_START = command_start(pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE)


class TopicsResponse:
    """A GET_TOPICS_OF_NAMESPACE_RESPONSE frame as the buffers it consists of.

    Attributes:
        buffers: The frame's bytes in order.
        command_bytes: Size of the command, which is what direct memory is charged with.
    """

    __slots__ = ("buffers", "command_bytes")

    def __init__(self, buffers: list[bytes | memoryview], command_bytes: int) -> None:
        self.buffers = buffers
        self.command_bytes = command_bytes

    @property
    def size(self) -> int:
        """Bytes of the whole frame."""
        return self.command_bytes + _LENGTHS.size

    def joined(self) -> TopicsResponse:
        """Return the same response in one private buffer."""
        return TopicsResponse([b"".join(self.buffers)], self.command_bytes)


def encode_topics_response(
    request_id: int,
    names: Sequence[bytes],
    names_bytes: int,
    topics_hash: str,
    *,
    filtered: bool,
    changed: bool,
) -> TopicsResponse:
    """Assemble the answer to one listing request around the names to send.

    Args:
        request_id: The client's, 0 to 2**64 - 1.
        names: Names as they go on the wire; none when the client's list is still right.
        names_bytes: The sum of their bytes.
        topics_hash: Hash of the client's new list.
        filtered: Whether the broker applied the client's pattern.
        changed: False when the client's own hash was right.
    """
    digest = topics_hash.encode()
    tail = _FILTERED[filtered] + _HASH_TAG + encode_varint(len(digest)) + digest + _CHANGED[changed]
    return framed(_START, _REQUEST_ID_TAG + encode_varint(request_id), names, names_bytes, tail)


def framed(
    start: bytes, ids: bytes, parts: Sequence[bytes | memoryview], parts_bytes: int, tail: bytes
) -> TopicsResponse:
    """Return the frame of a command: its start, and a body of ids, parts and a tail."""
    body_size = len(ids) + parts_bytes + len(tail)
    prefix = start + encode_varint(body_size)
    command_size = len(prefix) + body_size
    head = _LENGTHS.pack(command_size + _COMMAND_SIZE_BYTES, command_size) + prefix + ids
    buffers: list[bytes | memoryview] = [head, *parts]
    if tail:
        buffers.append(tail)
    return TopicsResponse(buffers, command_size)


def read_topics_head(head: bytes) -> tuple[int, int] | None:
    """Find the request id at the start of a listing's answer.

    Args:
        head: What follows the first length field: at least 40 bytes, or the whole frame.

    Returns:
        The request id and the offset of what follows it; None if this is another command, or
        one whose fields do not come in the order that Pulsar's encoders write them.
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
    """The fields behind the names of a listing's answer.

    Attributes:
        filtered: Whether the broker applied the client's pattern.
        topics_hash: Hash of the list, as eight hexadecimal digits.
        changed: False when the hash in the request was right; then no names come before.
    """

    filtered: bool
    topics_hash: str
    changed: bool


class NamesMeasured(NamedTuple):
    """The names of an answer: how many there are, and their UTF-8 bytes."""

    names: int
    names_bytes: int


class TopicsAnswer:
    """A listing's answer as received and not decoded: to be sent on under other request ids.

    It lives as long as the slowest who is sent it, and keeps at most twice its size: its part of a
    chunk that is mostly other frames' is copied.

    Attributes:
        rest: What follows the request id in the received frame, as views of the chunks.
        rest_bytes: Their length.
        command_bytes: Size of the received command.
    """

    __slots__ = ("command_bytes", "rest", "rest_bytes")

    def __init__(self, total_size: int, parts: Sequence[memoryview], offset: int) -> None:
        self.rest = [_kept(part) for part in _skip(parts, offset)]
        self.rest_bytes = total_size - offset
        self.command_bytes = total_size - _COMMAND_SIZE_BYTES

    def addressed_to(self, request_id: int) -> TopicsResponse:
        """Return the frame for one client: new lengths and request id, the same bytes behind."""
        ids = _REQUEST_ID_TAG + encode_varint(request_id)
        return framed(_START, ids, self.rest, self.rest_bytes, b"")

    @property
    def has_names(self) -> bool:
        """True if there is more than the fields behind the names, if ``tail`` found these."""
        return self.rest_bytes > _TAIL_BYTES

    def tail(self) -> TopicsTail | None:
        """Read the fields behind the names; nothing is decoded or joined for it.

        Returns:
            None if the answer does not end as Pulsar's encoders end it: filtered, a hash of
            eight digits, changed. The bytes of a name can be taken for these only where the
            server wrote none, and such a server does not look at a request's hash either.
        """
        found = _TAIL.fullmatch(_last_bytes(self.rest, _TAIL_BYTES))
        if found is None:
            return None
        filtered, digest, changed = found.groups()
        return TopicsTail(filtered == b"\x01", digest.decode(), changed == b"\x01")

    def measured(self) -> Generator[None, None, NamesMeasured | None]:
        """Count the names and their bytes, a part of the answer in a step; nothing is kept of it.

        Returns:
            None for an answer that is none, that has names which are not UTF-8, or that does not
            end as ``tail`` knows it: what is wrong with it ``decoded`` tells.
        """
        if self.tail() is None:
            return None
        left, rest, names, names_bytes = self.rest_bytes - _TAIL_BYTES, b"", 0, 0
        for part in self.rest:
            found = _whole_entries(data := (rest + part)[:left])
            if found is None:
                return None
            end, sizes = found
            names += len(sizes)
            names_bytes += sum(sizes)
            left, rest = left - end, data[end:]
            yield
        return NamesMeasured(names, names_bytes) if not left else None

    def decoded(self) -> pb.CommandGetTopicsOfNamespaceResponse:
        """Parse the answer; its request id is 0.

        Raises:
            RemoteProtocolError: Not protobuf, or a name is not UTF-8.
        """
        response = pb.CommandGetTopicsOfNamespaceResponse()
        try:
            response.ParseFromString(_REQUEST_ID_TAG + b"\x00" + b"".join(self.rest))
        except DecodeError as error:
            reason = str(error).rpartition(": ")[2]
            raise RemoteProtocolError(f"a topic list is not protobuf: {reason}") from None
        return response


def _whole_entries(data: bytes) -> tuple[int, list[int]] | None:
    """Return where the last whole name ends, and the sizes of all names; None if that are none."""
    at, end, starts, sizes = 0, len(data), list[int](), list[int]()
    while at + _LONGEST_PREFIX <= end or (at < end and _is_short(data, at)):
        if data[at] != _TOPICS_TAG:
            return None
        size, start = data[at + 1], at + 2
        if size >= _TWO_BYTES:
            try:
                size, start = decode_varint(data, at + 1)
            except RemoteProtocolError:
                return None
        if start + size > end:
            break
        starts.append(start)
        sizes.append(size)
        at = start + size
    return (at, sizes) if _are_utf8(data[:at], starts, sizes) else None


def _is_short(data: bytes, at: int) -> bool:
    """Tell whether the length of a name near the end is there, in one byte."""
    return len(data) > at + 1 and data[at + 1] < _TWO_BYTES


def _are_utf8(entries: bytes, starts: Sequence[int], sizes: Sequence[int]) -> bool:
    """Tell whether names are UTF-8: all at once where no length has two bytes."""
    try:
        entries.decode()
    except UnicodeDecodeError:
        try:
            for start, size in zip(starts, sizes, strict=True):
                entries[start : start + size].decode()
        except UnicodeDecodeError:
            return False
    return True


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
    """Return a view that keeps no chunk of more than twice its size."""
    chunk = cast("bytes", part.obj)
    return part if 2 * len(part) >= len(chunk) else memoryview(bytes(part))


def _last_bytes(parts: Sequence[memoryview], size: int) -> bytes:
    end = b""
    for part in reversed(parts):
        if len(end) == size:
            break
        end = bytes(part[len(end) - size :]) + end
    return end
