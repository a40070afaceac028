"""Arrow columns of topic names, and of paths to match, built from names in wire format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.topic_lists.block import LONGEST_ENTRIES, SHORTEST_PREFIX_BYTES

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    from broker.patterns.literal_search import Search
    from broker.topic_lists.block import Mask, Offsets

    Column: TypeAlias = pa.Array

TO_THE_END = 1 << 30
"""An end for Arrow's slices: beyond every name."""
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


def entry_column(wire: bytes, offsets: Offsets | npt.NDArray[np.int32]) -> pa.BinaryArray:
    """Return an Arrow column of encoded names (wire format), without copying their bytes."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(wire)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def name_column(
    wire: bytes, offsets: Offsets | npt.NDArray[np.int32], skipped: int = 0
) -> pa.BinaryArray:
    """Return an Arrow column of the names without the first ``skipped`` bytes of each.

    ``wire`` holds the names in wire format, each beginning at one of ``offsets``.
    """
    entries = entry_column(wire, offsets)
    sizes = np.diff(np.frombuffer(offsets, np.int32))
    longest = int(sizes.max()) if len(sizes) else 0
    if longest <= LONGEST_ENTRIES[0]:
        return pc.binary_slice(entries, SHORTEST_PREFIX_BYTES + skipped, TO_THE_END)
    shortest = int(sizes.min())
    column = pc.binary_slice(entries, _prefix_bytes(shortest) + skipped, TO_THE_END)
    for bound in LONGEST_ENTRIES:
        if shortest <= bound < longest:
            start = _prefix_bytes(bound + 1) + skipped
            longer = pc.binary_slice(entries, start, TO_THE_END)
            column = pc.if_else(pa.array(sizes > bound), longer, column)
    return column


def _prefix_bytes(entry_bytes: int) -> int:
    """Return the number of bytes before the name in an encoded entry of the given size."""
    return SHORTEST_PREFIX_BYTES + sum(entry_bytes > bound for bound in LONGEST_ENTRIES)


def as_text(column: Column) -> Column:
    """Convert a column of UTF-8 bytes to a text column, without copying or checking them."""
    if column.type == pa.string():
        return column
    buffers = column.buffers()
    return pa.Array.from_buffers(pa.string(), len(column), buffers, offset=column.offset)


def without_partitions(paths: Column) -> Column:
    """Return a text column whose paths have no suffix ``-partition-N``."""
    return pc.replace_substring_regex(paths, _PARTITION_SUFFIX, "")


def paths_of(names: Column) -> Column:
    """Convert full topic names to the paths that patterns match: no domain, no partition suffix."""
    text = as_text(names)
    return without_partitions(pc.replace_substring_regex(text, _DOMAIN_PREFIX, ""))


def matched(paths: pa.StringArray, whole: str, search: Search | None = None) -> Mask:
    """Match each path of a text column with an RE2 pattern, in one call.

    Args:
        paths: The column.
        whole: The pattern for a match from end to end.
        search: The pattern split into prefix and rest, if it can be.
    """
    mask = _searched(paths, search) if search is not None else None
    if mask is None:
        mask = _mask(pc.match_substring_regex(paths, whole))
    return mask.tobytes()


def _searched(paths: pa.StringArray, search: Search) -> npt.NDArray[np.bool_] | None:
    """Match paths by comparing their literal prefix and searching for the pattern behind it.

    None if a path contains a line break.

    ``.`` matches every other character, and the search would also find the rest behind a line
    break.
    """
    _, offsets, data = paths.buffers()
    if data is not None and len(paths) and b"\n" in _own_bytes(paths, offsets, data):
        return None
    column = pa.Array.from_buffers(
        pa.binary(), len(paths), [None, offsets, data], offset=paths.offset
    )
    behind = as_text(pc.binary_slice(column, len(search.beginning), TO_THE_END))
    found = _mask(pc.match_substring_regex(behind, search.rest))
    return found & _mask(pc.starts_with(paths, search.beginning))


def _own_bytes(paths: pa.StringArray, offsets: pa.Buffer, data: pa.Buffer) -> bytes:
    """Return the UTF-8 bytes of a column; if it is a slice, only the slice's bytes."""
    begins = np.frombuffer(offsets, np.int32)
    begin, end = int(begins[paths.offset]), int(begins[paths.offset + len(paths)])
    return bytes(data.slice(begin, end - begin).to_pybytes())


def _mask(column: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
    return mask
