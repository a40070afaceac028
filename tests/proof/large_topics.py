"""A namespace of a million topics, of which everything is known: names, sets of 1 %, properties.

A name is 100 bytes: its number, and ten groups of a letter and two digits. Each of the ten times
100 values a group can have is that of exactly 1 % of the topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAMESPACE = "load/large"
NAME_BYTES = 100
TEAMS = 1_000
"""Each has 0.1 % of the topics."""
EVERY = "every"
"""Stands in names that each pattern keeps."""
VALUES = 100
_PREFIX = f"persistent://{NAMESPACE}/"
_LETTERS = "abcdefghij"
# Coprime to every count of topics here: numbers times one of them are in another order.
_STRIDES = (1, 7, 97, 1_009, 7_919, 17_389, 104_729, 224_737, 350_377, 611_953)
_ROW_GROUP_ROWS = 100_000
PATTERNS = len(_LETTERS) * VALUES


def large_names(count: int) -> list[str]:
    """Return the names in order."""
    return [large_name(number, count) for number in range(count)]


def large_name(number: int, count: int, word: str = "") -> str:
    """Return the name of a topic; with a word in it, of one that is not among them."""
    groups = "".join(
        f"{letter}{_value(group, number, count):02d}" for group, letter in enumerate(_LETTERS)
    )
    return f"{_PREFIX}{number:07d}-{groups}-{word}".ljust(NAME_BYTES, "x")


def _value(group: int, number: int, count: int) -> int:
    return number * _STRIDES[group] % count * VALUES // count


def pattern_of(index: int) -> str:
    """Return one of the PATTERNS patterns that keep 1 %, and every name with EVERY in it."""
    return f"{_PREFIX}.*({_group(index)}|{EVERY}).*"


def is_kept(name: str, index: int) -> bool:
    """Tell whether that pattern keeps a name."""
    return _group(index) in name or EVERY in name


def _group(index: int) -> str:
    letter, value = divmod(index, VALUES)
    return f"{_LETTERS[letter]}{value:02d}"


def kept_by_pattern(names: Sequence[str]) -> list[list[str]]:
    """Return for each pattern the names it keeps, in their order."""
    kept: list[list[str]] = [[] for _ in range(PATTERNS)]
    start = len(_PREFIX) + 8
    for name in names:
        if EVERY in name:
            for one in kept:
                one.append(name)
            continue
        for letter in range(len(_LETTERS)):
            place = start + 3 * letter + 1
            kept[letter * VALUES + int(name[place : place + 2])].append(name)
    return kept


def team_of(number: int) -> str:
    """Return the value of the property ``team``."""
    return f"team-{number % TEAMS:03d}"


def write_large_topics(path: Path, count: int) -> None:
    """Write Parquet as an import reads it: two properties a topic."""
    properties = [
        [("team", team_of(number)), ("env", f"env-{number % 4}")] for number in range(count)
    ]
    table = pa.table(
        {
            "namespace": pa.array([NAMESPACE] * count),
            "topic": pa.array(large_names(count)),
            "properties": pa.array(properties, pa.map_(pa.string(), pa.string())),
        }
    )
    pq.write_table(table, path, row_group_size=_ROW_GROUP_ROWS)
