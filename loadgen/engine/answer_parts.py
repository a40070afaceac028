"""Parts of an answer, read where they stand: nothing of it is copied or parsed whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.engine.answers import parse_answer
from proto.parsing.varint import decode_varint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.discovery.topics_pattern import TopicsPattern
    from loadgen.engine.answers import AnswerBody

_TOPICS_TAG = 0x12


def ending(body: AnswerBody) -> tuple[str | None, bool]:
    """Return the hash that a complete answer says, if any, and whether the list has changed.

    Raises:
        DecodeError: It is no answer.
        RemoteProtocolError: The same.
    """
    known = body.shared.endings
    if body.own is None and body.size_bytes in known:
        return known[body.size_bytes]
    offset = 0
    with memoryview(body.shared.data if body.own is None else body.own)[: body.size_bytes] as view:
        while offset < len(view) and view[offset] == _TOPICS_TAG:
            size, begin = decode_varint(view, offset + 1)
            offset = begin + size
        response = parse_answer(bytes(view[offset:]))
    found = response.topics_hash if response.HasField("topics_hash") else None, response.changed
    if body.own is None:
        known[body.size_bytes] = found
    return found


def first_names(body: AnswerBody, count: int, matching: TopicsPattern | None = None) -> list[str]:
    """Return the first ``count`` names of a complete answer, or of those that match.

    Raises:
        RemoteProtocolError: The answer is no list of names.
    """
    if body.own is not None:
        return _first(body.own, body.size_bytes, count, matching)
    key = body.size_bytes, count, "" if matching is None else matching.text
    found = body.shared.first_names.get(key)
    if found is None:
        found = _first(body.shared.data, body.size_bytes, count, matching)
        body.shared.first_names[key] = found
    return found


def _first(
    data: bytearray, size_bytes: int, count: int, matching: TopicsPattern | None
) -> list[str]:
    found: list[str] = []
    if count:
        with memoryview(data)[:size_bytes] as view:
            for name in _names(view):
                if matching is None or matching.matches(name):
                    found.append(name)
                    if len(found) == count:
                        break
    return found


def _names(view: memoryview) -> Iterator[str]:
    offset = 0
    while offset < len(view) and view[offset] == _TOPICS_TAG:
        size, begin = decode_varint(view, offset + 1)
        offset = begin + size
        yield str(view[begin:offset], "utf-8", "replace")
