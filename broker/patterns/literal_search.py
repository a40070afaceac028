"""Faster matching of patterns like ``tenant/ns/.*-7.*``: compare the prefix, search the rest.

Searching for the rest behind the prefix takes RE2 half the time of a full match: RE2 begins at the
end of a name, or skips to a possible start of the rest. Only patterns whose meaning clearly stays
the same are split. For every pattern, RE2 gives a range of keys containing all matches.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import re2

_BEGINNING = r"((?:[A-Za-z0-9/_:=-]|\\\.)*)\.\*"
# No look-behind, no branches of the whole pattern, no flags, no quotations.
_CHARACTER = r"[A-Za-z0-9/_:=!~@%,; -]|\\[dwsDWS.-]|\[\^?[A-Za-z0-9_.-]+\]|\."
_GROUP = r"\((?:\?:)?[A-Za-z0-9/_:=.|-]*\)"
_REPEATED = r"(?:[*+?]\??|\{[0-9]+(?:,[0-9]*)?\})?"
_SIMPLE = re.compile(
    rf"{_BEGINNING}((?:(?:{_CHARACTER}|{_GROUP}){_REPEATED})*)\$?", re.ASCII | re.DOTALL
)
_RANGE_BYTES = 128
"""Most bytes of the lowest and of the highest matching key."""
_LAST = b"\xff\xff"
_LAST_PARTITION = b"-partition-" + _LAST


class Search(NamedTuple):
    """A pattern split into a literal prefix and a rest that is searched for behind it.

    Attributes:
        beginning: The literal prefix; ASCII.
        rest: The RE2 pattern to search for behind the prefix.
    """

    beginning: str
    rest: str


def taken_apart(pattern: str) -> Search | None:
    """Split a pattern into a literal prefix and a rest; None if it cannot be split.

    Args:
        pattern: A pattern compiled by RE2.
    """
    simple = _SIMPLE.fullmatch(pattern)
    if simple is None:
        return None
    beginning, rest = simple.group(1).replace("\\.", "."), simple.group(2)
    if rest.endswith(".*") and not rest.endswith("\\.*"):
        return Search(beginning, rest[:-2])
    return Search(beginning, rf"(?:{rest})\z")


def key_range(whole: re2._Regexp) -> tuple[bytes, bytes]:
    """Return the lowest and highest sort key that paths matching a pattern can have.

    The range includes the partitions of matching topics.
    """
    try:
        low, high = whole.possiblematchrange(_RANGE_BYTES)
    except re2.error:
        return b"", _LAST
    low, high = _ascii_start(low), _ascii_start(high) + (b"" if high.isascii() else _LAST)
    # A partition sorts behind its topic's path, and a prefix of the last match may match, too.
    starts = (high[:size] for size in range(len(high) + 1))
    return low, max([high, *(start + _LAST_PARTITION for start in starts if start >= low)])


def _ascii_start(text: bytes) -> bytes:
    """Return the ASCII bytes with which a text begins.

    From the first other byte on, Java's sort order may differ.
    """
    return next((text[:index] for index, byte in enumerate(text) if byte > 0x7F), text)
