"""A JSON array of strings that arrives in pieces: a million names, never all of them at once."""

from __future__ import annotations

import json
import re

from client.admin.errors import AdminAnswerError

MAX_STRING_BYTES = 1024 * 1024
"""Bytes of the longest string: an answer without an end of one within these is no list of names."""

_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_QUOTE = b'"'


class StringArray:
    """A decoder of the pieces; it keeps the bytes that are not yet decoded.

    A piece is cut behind its last whole string, and what is before the cut is decoded by the JSON
    decoder at once, so nothing is done for each name here. Whether a quote opens or closes a
    string follows from their number: a piece always begins outside of strings.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, data: bytes) -> list[str]:
        """Take the next piece; return the strings that are whole now.

        Raises:
            AdminAnswerError: This is no array of strings.
        """
        pending = self._rest + data
        end = _end_of_last_string(pending)
        whole, self._rest = pending[:end], pending[end:]
        if len(self._rest) > MAX_STRING_BYTES:
            raise AdminAnswerError(f"a name of more than {MAX_STRING_BYTES} bytes was answered")
        return self._decoded(whole.lstrip()) if whole else []

    def close(self) -> None:
        """Check that the array has ended.

        Raises:
            AdminAnswerError: It has not.
        """
        expected = b"]" if self._begun else b"[]"
        if b"".join(self._rest.split()) != expected:
            raise AdminAnswerError(_no_list(self._rest, begun=self._begun))

    def _decoded(self, whole: bytes) -> list[str]:
        if whole[:1] != (b"," if self._begun else b"["):
            raise AdminAnswerError(_no_list(whole, begun=self._begun))
        try:
            names = json.loads(b"[" + whole[1:] + b"]")
        except (ValueError, RecursionError):
            raise AdminAnswerError(_no_list(whole, begun=self._begun)) from None
        if set(map(type, names)) != {str}:
            raise AdminAnswerError(_no_list(whole, begun=self._begun))
        self._begun = True
        return list(names)


def _end_of_last_string(data: bytes) -> int:
    """Return the position behind the last string that is whole; 0 without one."""
    # What is escaped is no quote; the length stays.
    masked = _ESCAPED.sub(b"__", data) if b"\\" in data else data
    last = masked.rfind(_QUOTE)
    if masked.count(_QUOTE) % 2:
        last = masked.rfind(_QUOTE, 0, last)
    return last + 1


def _no_list(data: bytes, *, begun: bool) -> str:
    shown = data[:60].decode("utf-8", "replace")
    if begun:
        return f"the list of names broke off or is malformed at {shown!r}"
    return f"the answer is no list of names but begins with {shown!r}"
