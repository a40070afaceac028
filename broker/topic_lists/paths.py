"""Paths for pattern matching: ``tenant/namespace/local``.

Functions work on whole columns; for a single name there is ``path_of``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from proto.names import MAX_PARTITION_INDEX, NON_PERSISTENT, PARTITION_SEPARATOR, PERSISTENT

if TYPE_CHECKING:
    from typing import TypeAlias

    Column: TypeAlias = pa.Array

DOMAIN_PREFIXES = (f"{PERSISTENT}://".encode(), f"{NON_PERSISTENT}://".encode())
TO_THE_END = 1 << 30
"""An end for Arrow's slices: beyond every name."""
_SEPARATOR = PARTITION_SEPARATOR.encode()
# Numbers up to a Java int's largest, as names.partition_index: 2147483647.
_INDEX = "|".join(
    (
        r"0|[1-9][0-9]{0,8}|1[0-9]{9}|20[0-9]{8}|21[0-3][0-9]{7}|214[0-6][0-9]{6}",
        r"2147[0-3][0-9]{5}|21474[0-7][0-9]{4}|214748[0-2][0-9]{3}|2147483[0-5][0-9]{2}",
        r"21474836[0-3][0-9]|214748364[0-7]",
    )
)
_PARTITION_SUFFIX = rf"-partition-(?:{_INDEX})\z"
_DOMAIN_PREFIX = r"\A(?:non-)?persistent://"
_PARTITION = re.compile(rb"-partition-(0|[1-9][0-9]{0,9})\Z")


def path_of(name: bytes) -> bytes:
    """Return a full topic name without domain and ``-partition-N``."""
    path = name.split(b"://", 1)[-1]
    if _SEPARATOR in path:
        found = _PARTITION.search(path)
        if found is not None and int(found.group(1)) <= MAX_PARTITION_INDEX:
            return path[: found.start()]
    return path


def common_domain(first: bytes, last: bytes) -> bytes:
    """Return the domain prefix of all names from ``first`` to ``last``; empty if both differ.

    The names are in order: a common prefix of first and last is a prefix of all.
    """
    prefixes = (prefix for prefix in DOMAIN_PREFIXES if first.startswith(prefix))
    return next((prefix for prefix in prefixes if last.startswith(prefix)), b"")


def as_text(column: Column) -> Column:
    """Reinterpret a column of UTF-8 bytes as text, without copying or checking."""
    if column.type == pa.string():
        return column
    buffers = column.buffers()
    return pa.Array.from_buffers(pa.string(), len(column), buffers, offset=column.offset)


def without_partitions(paths: Column) -> Column:
    """Return a text column with every ``-partition-N`` removed."""
    return pc.replace_substring_regex(paths, _PARTITION_SUFFIX, "")


def paths_of(names: Column) -> Column:
    """Return the paths of a column of full names, of either domain."""
    text = as_text(names)
    return without_partitions(pc.replace_substring_regex(text, _DOMAIN_PREFIX, ""))
