"""The watched namespace: its names, the patterns, and the names that each pattern keeps."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAMESPACE = "bench/watches"
NAMES = 10_000
NAME_BYTES = 100
_PREFIX = f"persistent://{NAMESPACE}/"
_LETTERS = "abcdefghijklmnopqrst"
_TAGS = tuple("".join(pair) for pair in product(_LETTERS, repeat=2))
_NO_TAG = "zz"
SHARED_PATTERN = f"{_PREFIX}.*"
"""Keeps all names, in a client's notation."""


@cache
def watched_names() -> Sequence[str]:
    """Return the namespace's initial names, with 100 bytes each and 400 different endings."""
    return tuple(_name(index, _TAGS[index % len(_TAGS)]) for index in range(NAMES))


def event_names(indexes: Sequence[int]) -> list[str]:
    """Return new names, which every pattern keeps, for given indexes from 0 to NAMES - 1."""
    return [_name(index, _NO_TAG) for index in indexes]


def pattern_without(number: int) -> str:
    """Return a pattern that keeps all names except the 25 with one of the 400 endings."""
    tag = _TAGS[number]
    return f"{_PREFIX}.*([^{tag[0]}].|.[^{tag[1]}])"


def kept_without(number: int) -> list[str]:
    """Return the initial names that :func:`pattern_without` of a number keeps."""
    return [name for name in watched_names() if not name.endswith(_TAGS[number])]


def write_names(path: Path) -> None:
    """Write the initial names to a file for import, one name per line."""
    path.write_text("".join(f"{name}\n" for name in watched_names()))


def _name(index: int, tag: str) -> str:
    width = NAME_BYTES - len(_PREFIX) - len(tag)
    return f"{_PREFIX}{index:0{width}d}{tag}"
