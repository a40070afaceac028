"""The range of sort keys in which the matches of a pattern lie."""

from __future__ import annotations

import re2

_RANGE_BYTES = 128
"""Bytes of a pattern's beginning that tell the range."""
_LAST = b"\xff\xff"
_LAST_PARTITION = b"-partition-" + _LAST


def key_range(whole: re2._Regexp) -> tuple[bytes, bytes]:
    """Return the lowest and the highest key of paths that match, with their partitions."""
    try:
        low, high = whole.possiblematchrange(_RANGE_BYTES)
    except re2.error:
        return b"", _LAST
    low, high = _ascii_start(low), _ascii_start(high) + (b"" if high.isascii() else _LAST)
    # A partition sorts behind the path it is taken off, and what starts the last may match, too.
    starts = (high[:size] for size in range(len(high) + 1))
    return low, max([high, *(start + _LAST_PARTITION for start in starts if start >= low)])


def _ascii_start(text: bytes) -> bytes:
    """Return the text before the first byte that Java's order would lift, or might."""
    return next((text[:index] for index, byte in enumerate(text) if byte > 0x7F), text)
