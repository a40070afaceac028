"""Shortened excerpts of texts received from a peer, for error messages and log lines."""

from __future__ import annotations

import re

TEXT_BYTES = 800
"""Most UTF-8 bytes of an error on the wire, a reason of a REST error, or a log line."""
SCHEMAS_TEXT_BYTES = 16_384
"""Most UTF-8 bytes of an error that shows two schemas."""
QUOTED_CHARACTERS = 64
"""Most characters of a quotation in a sentence; escaped, each may take ten bytes."""
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_CREDENTIALS = re.compile(r"\A([\w+.-]+://)?.*@", re.DOTALL)


def excerpt(text: str, most_bytes: int = TEXT_BYTES) -> str:
    """Return a text; if longer than ``most_bytes`` of UTF-8, cut it and append its full length."""
    # A character has at least one byte, so the rest of a long text is never needed.
    return _cut(text[: most_bytes + 1], len(text), most_bytes)


def one_line(text: str) -> str:
    """Return an excerpt of a text with line breaks and other control characters escaped."""
    start = _UNPRINTABLE.sub(lambda found: repr(found.group())[1:-1], text[: TEXT_BYTES + 1])
    return _cut(start, len(text), TEXT_BYTES)


def quoted(text: str) -> str:
    """Return a text in quotes, cut if long, with unprintable characters escaped."""
    if len(text) <= QUOTED_CHARACTERS:
        return repr(text)
    return f"{text[:QUOTED_CHARACTERS]!r}... ({len(text)} characters)"


def without_credentials(url: str) -> str:
    """Return a URL, with or without a scheme, with its user and password replaced."""
    return _CREDENTIALS.sub(r"\1(hidden)@", url)


def _cut(start: str, characters: int, most_bytes: int) -> str:
    """Return ``start``; if too long, cut it and append the whole text's length."""
    data = start.encode(errors="backslashreplace")
    if len(data) <= most_bytes:
        return start
    end = f"... ({characters} characters)"
    return data[: most_bytes - len(end)].decode(errors="ignore") + end
