"""A streaming parser of a listing's answer, keeping only the matching names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto.errors import RemoteProtocolError
from proto.parsing.varint import decode_varint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.discovery.topics_pattern import TopicsPattern
    from proto.topics_response import TopicsAnswer

NAMES_IN_A_STEP = 2_000
"""Names read per event-loop iteration: 3 ms."""
_NAME, _FILTERED, _HASH, _CHANGED = 2, 3, 4, 5
_VARINT, _BYTES = 0, 2


class MatchingNames:
    """An answer's matching names, and its other fields.

    Args:
        answer: As received.
        pattern: Applied to the names if the broker did not.

    Attributes:
        names: The matching names.
        topics_hash: The broker's hash of the whole list, or None.
        filtered: Whether the broker applied the pattern.
        changed: False if the request's hash matched; the list is empty then.
    """

    def __init__(self, answer: TopicsAnswer, pattern: TopicsPattern) -> None:
        self._answer = answer
        self._pattern = pattern
        self.names: set[str] = set()
        self.topics_hash: str | None = None
        self.filtered = False
        self.changed = True

    def read(self) -> Iterator[None]:
        """Read the answer in steps of a few milliseconds.

        Raises:
            RemoteProtocolError: The answer is not protobuf, or a name is not UTF-8.
            InvalidConfiguration: The pattern takes too long.
        """
        tail = self._answer.tail()
        self.filtered = tail is not None and tail.filtered
        data = b"".join(self._answer.rest)
        self._answer.rest.clear()  # Early: others hold equally large lists.
        offset = count = 0
        while offset < len(data):
            tag, offset = decode_varint(data, offset)
            if tag & 7 == _BYTES:
                size, offset = decode_varint(data, offset)
                if offset + size > len(data):
                    raise RemoteProtocolError("a topic list is cut off")
                self._text(tag >> 3, data[offset : offset + size])
                offset += size
            elif tag & 7 == _VARINT:
                value, offset = decode_varint(data, offset)
                self._flag(tag >> 3, value)
            else:
                raise RemoteProtocolError(f"a topic list has a field with the tag {tag}")
            count += 1
            if count % NAMES_IN_A_STEP == 0:
                yield

    def _text(self, number: int, value: bytes) -> None:
        try:
            if number == _NAME:
                name = value.decode()
                if self.filtered or self._pattern.matches(name):
                    self.names.add(name)
            elif number == _HASH:
                self.topics_hash = value.decode() or None
        except UnicodeDecodeError:
            raise RemoteProtocolError("a name in a topic list is not UTF-8") from None

    def _flag(self, number: int, value: int) -> None:
        if number == _CHANGED:
            self.changed = bool(value)
        elif number == _FILTERED:
            self.filtered = bool(value)
