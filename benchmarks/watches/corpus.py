"""The namespace that watches are measured on: its names, its patterns, and what they keep."""

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
"""Keeps everything; as a client sends it."""


@cache
def watched_names() -> Sequence[str]:
    """Return the names that are there: 100 bytes each, with 400 different endings."""
    return tuple(_name(index, _TAGS[index % len(_TAGS)]) for index in range(NAMES))


def event_names(indexes: Sequence[int]) -> list[str]:
    """Return names that are not there, which every pattern keeps; 0 to NAMES - 1, spread evenly."""
    return [_name(index, _NO_TAG) for index in indexes]


def pattern_without(number: int) -> str:
    """Return a pattern that keeps all names but the 25 with one of the 400 endings."""
    tag = _TAGS[number]
    return f"{_PREFIX}.*([^{tag[0]}].|.[^{tag[1]}])"


def kept_without(number: int) -> list[str]:
    """Return what that pattern keeps of the names that are there."""
    return [name for name in watched_names() if not name.endswith(_TAGS[number])]


def write_names(path: Path) -> None:
    """Write the names as an import reads them: one a line."""
    path.write_text("".join(f"{name}\n" for name in watched_names()))


def _name(index: int, tag: str) -> str:
    width = NAME_BYTES - len(_PREFIX) - len(tag)
    return f"{_PREFIX}{index:0{width}d}{tag}"
