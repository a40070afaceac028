"""Encoding of WATCH_TOPIC_LIST_SUCCESS and WATCH_TOPIC_UPDATE for many watchers at once.

Commands for watchers of the same set differ only in ids, so the rest is encoded once.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.parsing.varint import encode_varint
from proto.topics_response import TopicsResponse, command_start, framed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LENGTHS = struct.Struct(">II")
_COMMAND_SIZE_BYTES = 4


_SUCCESS_START = command_start(pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS)
_UPDATE_START = command_start(pb.BaseCommand.WATCH_TOPIC_UPDATE)
_HASH = b"\x22\x08"
TOPIC_TAG = b"\x1a"
"""Field 3 of WATCH_TOPIC_LIST_SUCCESS, ``topic``; in WATCH_TOPIC_UPDATE ``deleted_topics``."""
NEW_TOPIC_TAG = b"\x12"
"""Field 2 of WATCH_TOPIC_UPDATE, ``new_topics``."""
_PREFIXES = {
    tag: tuple(tag + encode_varint(size) for size in range(512))
    for tag in (TOPIC_TAG, NEW_TOPIC_TAG)
}


def encode_names(names: Iterable[bytes], tag: bytes) -> bytes:
    """Encode topic names as repeated protobuf string fields with the given tag."""
    prefixes = _PREFIXES[tag]
    return b"".join(
        [
            (prefixes[len(name)] if len(name) < 512 else tag + encode_varint(len(name))) + name
            for name in names
        ]
    )


def watch_success(
    request_id: int, watcher_id: int, names: Sequence[bytes], topics_hash: str
) -> TopicsResponse:
    """Encode the response to a client that starts to watch a topic list.

    Args:
        request_id: The client's request id.
        watcher_id: The client's watcher id.
        names: The set, encoded by ``encode_names`` with TOPIC_TAG, in any number of parts.
        topics_hash: Hash of the topic list, as eight hexadecimal digits.
    """
    ids = b"\x08" + encode_varint(request_id) + b"\x10" + encode_varint(watcher_id)
    tail = _HASH + topics_hash.encode()
    return framed(_SUCCESS_START, ids, names, sum(map(len, names)), tail)


class WatchUpdate:
    """A WATCH_TOPIC_UPDATE command, encoded once for any number of watchers.

    Args:
        names: Added and removed names, as encoded by ``encode_changes``.
        topics_hash: Eight hexadecimal digits: the hash of the set after the update.
        parts: Parts before ``names``, for an update of many names.

    Attributes:
        body_bytes: Size of the part shared by all watchers.
    """

    __slots__ = ("_last_frame", "_last_id", "_parts", "body_bytes")

    def __init__(self, names: bytes, topics_hash: str, parts: Sequence[bytes] = ()) -> None:
        self._parts = (*parts, names + _HASH + topics_hash.encode())
        self.body_bytes = sum(map(len, self._parts))
        self._last_id = -1
        self._last_frame = b""

    def frame(self, watcher_id: int) -> bytes:
        """Return the update's frame for a watcher.

        The last frame is cached, since the next watcher often has the same id.
        """
        if watcher_id != self._last_id:
            self._last_frame = b"".join(self.buffers(watcher_id))
            self._last_id = watcher_id
        return self._last_frame

    def buffers(self, watcher_id: int) -> tuple[bytes, ...]:
        """Return the update's frame as buffers: the watcher's own head, then the shared bytes."""
        return _update_head(watcher_id, self.body_bytes), *self._parts


@lru_cache(maxsize=4_096)
def _update_head(watcher_id: int, body_bytes: int) -> bytes:
    """Return the bytes that precede the names in an update's frame.

    Cached, since sizes are few and watcher ids begin at 0.
    """
    ids = b"\x08" + encode_varint(watcher_id)
    head = _UPDATE_START + encode_varint(len(ids) + body_bytes) + ids
    size_bytes = len(head) + body_bytes
    return _LENGTHS.pack(size_bytes + _COMMAND_SIZE_BYTES, size_bytes) + head


def encode_changes(added: Sequence[bytes], removed: Sequence[bytes]) -> bytes:
    """Encode the names in an update: the added names, then the removed names."""
    return encode_names(added, NEW_TOPIC_TAG) + encode_names(removed, TOPIC_TAG)


def command_bytes(*frame: bytes) -> int:
    """Return the size in bytes of a frame's command, which is charged as direct memory."""
    return sum(map(len, frame)) - _LENGTHS.size
