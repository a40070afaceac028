"""A namespace of a million topics with known names, sets of 1 %, and properties.

A name is 100 bytes: one of 1,000 applications, each with 0.1 % of the topics side by side, a
number, and three groups of a letter and two digits. Each of the three times 100 values of a group
belongs to exactly 1 % of the topics, scattered over the namespace.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

NAMESPACE = "load/large"
NAME_BYTES = 100
TEAMS = 1_000
"""Each has 0.1 % of the topics."""
PATTERNS = 1_000
EVERY = "every"
"""Part of all names kept by a pattern for scattered topics."""
APPLICATIONS = 1_000
WINDOW = 10
"""Applications that a pattern for neighbours keeps."""
_PREFIX = f"persistent://{NAMESPACE}/"
_LETTERS, _VALUES = "abc", 100
# Coprime to every number of topics here: multiples of numbers are in another order.
_STRIDES = (7_919, 104_729, 611_953)
# Of ten patterns three keep scattered topics.
_OF, _SCATTERED = 10, 3
_ROW_GROUP_ROWS = 100_000


def large_names(count: int) -> list[str]:
    return [large_name(number, count) for number in range(count)]


def large_name(number: int, count: int, word: str = "") -> str:
    """Return the name of a topic; with a word in it, of an additional topic."""
    application = number * APPLICATIONS // count
    groups = "".join(
        f"{letter}{number * stride % count * _VALUES // count:02d}"
        for letter, stride in zip(_LETTERS, _STRIDES, strict=True)
    )
    name = f"{_PREFIX}app-{application:03d}-{number:07d}-{groups}-{word}"
    return name.ljust(NAME_BYTES, "x")


def pattern_of(index: int) -> str:
    """Return one of the PATTERNS patterns that keep 1 %."""
    lap, place = divmod(index, _OF)
    if place < _SCATTERED:
        return f"{_PREFIX}.*({_group(lap * _SCATTERED + place)}|{EVERY}).*"
    first = lap * (_OF - _SCATTERED) + place - _SCATTERED
    tens, ones = divmod(first, WINDOW)
    window = f"{tens:02d}[{ones}-9]" + (f"|{tens + 1:02d}[0-{ones - 1}]" if ones else "")
    return f"{_PREFIX}app-({window})-.*"


def _group(number: int) -> str:
    letter, value = divmod(number, _VALUES)
    return f"{_LETTERS[letter]}{value:02d}"


def keepers(name: str) -> Iterator[int]:
    """Yield the patterns that keep a name."""
    start = len(_PREFIX) + len("app-")
    application = int(name[start : start + 3])
    for first in range(max(0, application - WINDOW + 1), application + 1):
        lap, place = divmod(first, _OF - _SCATTERED)
        if lap * _OF < PATTERNS:
            yield lap * _OF + _SCATTERED + place
    groups: Sequence[int] = range(len(_LETTERS) * _VALUES)
    if EVERY not in name:
        start += len("000-0000000-")
        places = (start + 3 * letter + 1 for letter in range(len(_LETTERS)))
        values = (int(name[place : place + 2]) for place in places)
        groups = [letter * _VALUES + value for letter, value in enumerate(values)]
    for number in groups:
        lap, place = divmod(number, _SCATTERED)
        yield lap * _OF + place


def kept_by_pattern(names: Sequence[str]) -> list[list[str]]:
    """Return for each pattern its matching names, in order."""
    kept: list[list[str]] = [[] for _ in range(PATTERNS)]
    for name in names:
        for index in keepers(name):
            kept[index].append(name)
    return kept


def team_of(number: int) -> str:
    """Return the value of the property ``team``."""
    return f"team-{number % TEAMS:03d}"


def write_large_topics(path: Path, count: int) -> None:
    """Write Parquet for an import: two properties a topic."""
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
