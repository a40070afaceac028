"""A streaming parser of a JSON array of strings: a million names, never all in memory."""

from __future__ import annotations

import json
import re

from client.admin.errors import AdminAnswerError

MAX_STRING_BYTES = 1024 * 1024
"""Maximum bytes of a string: beyond, the answer is not a list of names."""

_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_QUOTE = b'"'


class StringArray:
    """A streaming decoder; keeps the undecoded bytes.

    Each piece is cut after its last complete string, and decoded up to the cut by the JSON decoder
    in a single call, without work per name in Python. The parity of the number of quotes tells
    opening from closing quotes: a piece always starts outside of strings.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, data: bytes) -> list[str]:
        """Decode the next piece; return the newly complete strings.

        Raises:
            AdminAnswerError: The answer is not an array of strings.
        """
        pending = self._rest + data
        end = _end_of_last_string(pending)
        whole, self._rest = pending[:end], pending[end:]
        if len(self._rest) > MAX_STRING_BYTES:
            raise AdminAnswerError(f"a name of more than {MAX_STRING_BYTES} bytes was answered")
        return self._decoded(whole.lstrip()) if whole else []

    def close(self) -> None:
        """Check the end of the array.

        Raises:
            AdminAnswerError: The array is incomplete.
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
    """Return the position after the last complete string; 0 for none."""
    # Mask escaped quotes, keeping the length.
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
