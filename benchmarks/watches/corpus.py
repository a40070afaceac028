"""Watched namespace: its names, its patterns, and the names that patterns keep."""

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
    """Return the initial names: 100 bytes each, with 400 different endings."""
    return tuple(_name(index, _TAGS[index % len(_TAGS)]) for index in range(NAMES))


def event_names(indexes: Sequence[int]) -> list[str]:
    """Return new names, which every pattern keeps; 0 to NAMES - 1, spread evenly."""
    return [_name(index, _NO_TAG) for index in indexes]


def pattern_without(number: int) -> str:
    """Return a pattern that keeps all names but the 25 with a given ending of 400."""
    tag = _TAGS[number]
    return f"{_PREFIX}.*([^{tag[0]}].|.[^{tag[1]}])"


def kept_without(number: int) -> list[str]:
    """Return the initial names that the pattern keeps."""
    return [name for name in watched_names() if not name.endswith(_TAGS[number])]


def write_names(path: Path) -> None:
    """Write an import file of the names, a name per line."""
    path.write_text("".join(f"{name}\n" for name in watched_names()))


def _name(index: int, tag: str) -> str:
    width = NAME_BYTES - len(_PREFIX) - len(tag)
    return f"{_PREFIX}{index:0{width}d}{tag}"
