"""The names of a listing's answer that match, read one by one: the list itself is never made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto.errors import RemoteProtocolError
from proto.parsing.varint import decode_varint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.discovery.topics_pattern import TopicsPattern
    from proto.topics_response import TopicsAnswer

NAMES_IN_A_STEP = 2_000
"""Names that are read before others have their turn: 3 ms."""
_NAME, _FILTERED, _HASH, _CHANGED = 2, 3, 4, 5
_VARINT, _BYTES = 0, 2


class MatchingNames:
    """An answer's names that match, and the fields behind them.

    Args:
        answer: As received.
        pattern: What names must match where the broker did not look.

    Attributes:
        names: Those that match.
        topics_hash: The broker's hash of all it listed; None if it says none.
        filtered: Whether the broker applied the pattern; names that do not match are none then.
        changed: False when the request's hash was right; then there are no names.
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
            RemoteProtocolError: It is not protobuf, or a name is not UTF-8.
            InvalidConfiguration: The pattern takes too long.
        """
        tail = self._answer.tail()
        self.filtered = tail is not None and tail.filtered
        data = b"".join(self._answer.rest)
        self._answer.rest.clear()  # Others have their turns meanwhile, each with a list as large.
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
