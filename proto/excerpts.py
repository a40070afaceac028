"""Excerpts of texts: what a peer said is quoted in errors and log lines in bounded size."""

from __future__ import annotations

import re

TEXT_BYTES = 800
"""UTF-8 bytes of the longest error on the wire, reason of a REST error, or log line."""
SCHEMAS_TEXT_BYTES = 16_384
"""The same of an error that shows two schemas."""
QUOTED_CHARACTERS = 64
"""Characters of the longest quotation in a sentence; escaped, each may take ten bytes."""
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_CREDENTIALS = re.compile(r"\A([\w+.-]+://)?.*@", re.DOTALL)


def excerpt(text: str, most_bytes: int = TEXT_BYTES) -> str:
    """Return a text, or its beginning and how long it was, in ``most_bytes`` of UTF-8 at most."""
    # A character has a byte at least, so no more of a long text is looked at.
    return _cut(text[: most_bytes + 1], len(text), most_bytes)


def one_line(text: str) -> str:
    """Return an excerpt in which line breaks and other control characters are escaped."""
    start = _UNPRINTABLE.sub(lambda found: repr(found.group())[1:-1], text[: TEXT_BYTES + 1])
    return _cut(start, len(text), TEXT_BYTES)


def quoted(text: str) -> str:
    """Return a text in quotes with what cannot be printed escaped; of a long one the beginning."""
    if len(text) <= QUOTED_CHARACTERS:
        return repr(text)
    return f"{text[:QUOTED_CHARACTERS]!r}... ({len(text)} characters)"


def without_credentials(url: str) -> str:
    """Return a URL, with or without a scheme, in which user and password are hidden."""
    return _CREDENTIALS.sub(r"\1(hidden)@", url)


def _cut(start: str, characters: int, most_bytes: int) -> str:
    """Return the start of a text of so many characters, cut where it is too long."""
    data = start.encode(errors="backslashreplace")
    if len(data) <= most_bytes:
        return start
    end = f"... ({characters} characters)"
    return data[: most_bytes - len(end)].decode(errors="ignore") + end
