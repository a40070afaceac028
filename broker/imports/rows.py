"""Checks of the rows of topic files, column by column: a million names take about a second.

Column operations find the invalid rows; error texts are built only for the reported rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.errors import RefusedError
from broker.topics.properties import MAX_PROPERTIES, MAX_PROPERTY_BYTES, check_properties
from proto.invalid_rows import EXPECTED_NAME, MAX_TOLD_ROWS, shown
from proto.names import (
    DOMAINS,
    JAVA_WHITESPACE,
    MAX_NAME_BYTES,
    MAX_PARTITION_INDEX,
    MAX_PARTITIONS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeAlias

    from proto.invalid_rows import InvalidRows

    Row: TypeAlias = Mapping[str, Any]

_CONTROL = r"\x00-\x1f\x7f"
_TOPIC = (
    r"\A(?:non-)?persistent://[-=:.\w]+/[-=:.\w]+/"
    rf"[^/{_CONTROL}]*[^/{_CONTROL}{JAVA_WHITESPACE}][^/{_CONTROL}]*\z"
)
_NAMESPACE_PREFIX = r"\A(?:non-)?persistent://(?P<namespace>[^/]+/[^/]+)/"
_FEW_NAMESPACES = 16
"""The largest number of namespaces compared by prefix; if there are more, namespaces are extracted
from the names."""
_PARTITION = r"-partition-(?P<index>0|[1-9][0-9]{0,9})\z"
_PARTITION_SUFFIX = r"-partition-(?:0|[1-9][0-9]{0,9})\z"
_OF_NOTHING = rf"/[{JAVA_WHITESPACE}]*-partition-[+-]?[0-9]+\z"
_BEYOND = rf"-partition-[1-9][0-9]{{{len(str(MAX_PARTITIONS)) - 1},9}}\z"
"""Pattern of partition numbers that may exceed MAX_PARTITIONS: at least as many digits."""


class TopicRows(NamedTuple):
    """A batch of rows of a topic file.

    Attributes:
        table: Columns ``topic``, and ``namespace`` and ``properties`` if the file has them.
        numbers: The position of each row in the file.
        place: The unit of the positions, such as ``line``.
        comes_later: Returns True if more rows of a namespace may follow.
    """

    table: pa.Table
    numbers: np.ndarray
    place: str
    comes_later: Callable[[str], bool]


def valid_rows(rows: TopicRows, invalid: InvalidRows) -> pa.Table:
    """Return the rows that are valid; report the invalid rows to ``invalid``.

    Raises:
        pa.ArrowException: The columns are damaged.
    """
    check = _Check(rows)
    table = check.checked() if len(rows.table) else rows.table
    invalid.rows += len(rows.table)
    invalid.add(check.count, check.told())
    return table


class _Check:
    """A check of a batch of rows that removes invalid rows and records the reasons."""

    def __init__(self, rows: TopicRows) -> None:
        self._table = rows.table
        self._numbers = rows.numbers
        self._place = rows.place
        self._told: list[tuple[int, str]] = []
        self.count = 0

    def told(self) -> list[str]:
        """Return error texts for the first invalid rows, sorted by position in the file."""
        first = sorted(self._told)[:MAX_TOLD_ROWS]
        return [f"{self._place} {number}: {reason}" for number, reason in first]

    def checked(self) -> pa.Table:
        self._take_out(_incomplete(self._table), lambda _: "lacks its topic or its namespace")
        if not _is_utf8(self._table):
            self._take_out_other_encodings()
        self._take_out(_misnamed(self._table), _name_fault)
        self._take_out(_partitions_of_nothing(self._table["topic"]), _nothing_fault)
        self._take_out(_beyond_partitions(self._table["topic"]), _partition_fault)
        if "properties" in self._table.column_names:
            self._take_out(_wrong_properties(self._table), _properties_fault)
        return self._table

    def _take_out(
        self, wrong: np.ndarray, reason: Callable[[Row], str], table: pa.Table | None = None
    ) -> None:
        """Remove the rows where ``wrong`` is true, and record the reason for the first of them.

        ``reason`` receives values of ``table`` if given, otherwise of the removed rows.
        """
        places = np.flatnonzero(wrong)
        if not len(places):
            return
        first = places[:MAX_TOLD_ROWS]
        words = (self._table if table is None else table).take(pa.array(first)).to_pylist()
        self._told += zip(self._numbers[first].tolist(), map(reason, words), strict=True)
        self.count += len(places)
        self._table = self._table.filter(pa.array(~wrong))
        self._numbers = self._numbers[~wrong]

    def _take_out_other_encodings(self) -> None:
        """Remove rows with values that are not UTF-8.

        Each value is examined, which is slow, but such files are rare.
        """
        table = _as_bytes(self._table)
        wrong = np.zeros(len(table), bool)
        for name in table.column_names:
            values = enumerate(table[name].to_pylist())
            wrong[[row for row, value in values if _other_encoding(value) is not None]] = True
        self._take_out(wrong, _encoding_fault, table)


def _incomplete(table: pa.Table) -> np.ndarray:
    names = [table[name] for name in ("topic", "namespace") if name in table.column_names]
    missing = np.zeros(len(table), bool)
    for column in names:
        if column.null_count:
            missing |= column.is_null().to_numpy()
    return missing


# -- UTF-8 ------------------------------------------------------------------------------------


def _is_utf8(table: pa.Table) -> bool:
    """Return True if all texts of a table are valid UTF-8, which Parquet readers do not check."""
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _as_bytes(table: pa.Table) -> pa.Table:
    of_properties = pa.map_(pa.binary(), pa.binary())
    kinds = {
        name: of_properties if name == "properties" else pa.binary() for name in table.column_names
    }
    return pa.table({name: table[name].cast(kind) for name, kind in kinds.items()})


def _other_encoding(value: Any) -> bytes | None:  # noqa: ANN401 - a name, or pairs of texts
    texts = [value] if isinstance(value, bytes) else [text for pair in value or () for text in pair]
    for text in texts:
        try:
            (text or b"").decode()
        except UnicodeDecodeError:
            return bytes(text)
    return None


def _encoding_fault(row: Row) -> str:
    text = next(filter(None, map(_other_encoding, row.values())), b"")
    return f"{shown(text)} is not UTF-8"


# -- names ------------------------------------------------------------------------------------


def with_namespaces(table: pa.Table) -> pa.Table:
    """Return valid rows with a column ``namespace``, added if the file has none."""
    if "namespace" in table.column_names:
        return table
    return table.append_column("namespace", namespaces_of(table["topic"]))


def namespaces_of(topics: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with the namespace of each full topic name."""
    return pc.struct_field(pc.extract_regex(topics, _NAMESPACE_PREFIX), "namespace")


def _misnamed(table: pa.Table) -> np.ndarray:
    """Return a mask of rows whose topic name is invalid, too long, or in another namespace."""
    topics = table["topic"]
    right = pc.and_(
        pc.match_substring_regex(topics, _TOPIC),
        pc.less_equal(pc.binary_length(topics), MAX_NAME_BYTES),
    )
    right = np.asarray(right.to_numpy(), bool)
    return ~(right & _inside(table)) if "namespace" in table.column_names else ~right


def _inside(table: pa.Table) -> np.ndarray:
    """Return a mask of rows whose topic name begins with the row's namespace."""
    topics = table["topic"]
    column = table["namespace"].combine_chunks().dictionary_encode()
    if len(column.dictionary) > _FEW_NAMESPACES:
        inside = pc.equal(namespaces_of(topics), table["namespace"])
        return np.asarray(pc.fill_null(inside, False).to_numpy(), bool)
    codes, inside = column.indices.to_numpy(), np.zeros(len(table), bool)
    for code, name in enumerate(column.dictionary.to_pylist()):
        for domain in DOMAINS:
            begins = pc.starts_with(topics, f"{domain}://{name}/").to_numpy()
            inside |= (codes == code) & begins.astype(bool)
    return inside


def _name_fault(row: Row) -> str:
    topic: str = row["topic"]
    size_bytes = len(topic.encode())
    if size_bytes > MAX_NAME_BYTES:
        return f"{shown(topic)} has {size_bytes:,} bytes, a name may have {MAX_NAME_BYTES:,}"
    if re.search(f"[{_CONTROL}]", topic):
        return f"{shown(topic)} has a control character, such as an end of line"
    namespace = f" in namespace {shown(row['namespace'])}" if "namespace" in row else ""
    return f"{shown(topic)} is not a full topic name{namespace}; {EXPECTED_NAME}"


# -- partitions -------------------------------------------------------------------------------


def highest_partitions(
    topics: pa.ChunkedArray, places: np.ndarray
) -> Iterator[tuple[str, int, int]]:
    """Yield partitioned topics with their highest partition number.

    Each is yielded with the number in ``places`` that its partitions have in common.

    Args:
        topics: Full topic names.
        places: A number for each name, the same for all partitions of a topic.
    """
    are = pc.match_substring_regex(topics, _PARTITION_SUFFIX)
    partitions = topics.filter(are)
    if not len(partitions):
        return
    bases = pc.replace_substring_regex(partitions, _PARTITION_SUFFIX, "")
    places = places[np.asarray(are.to_numpy(), bool)]
    table = pa.table({"base": bases, "place": places, "index": _partition_indexes(partitions)})
    table = table.filter(pc.less_equal(table["index"], MAX_PARTITION_INDEX))
    highest = table.group_by(["base", "place"]).aggregate([("index", "max")])
    columns = (highest[name].to_pylist() for name in ("base", "place", "index_max"))
    yield from zip(*columns, strict=True)


def _partition_indexes(partitions: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.struct_field(pc.extract_regex(partitions, _PARTITION), "index").cast(pa.int64())


def _partitions_of_nothing(topics: pa.ChunkedArray) -> np.ndarray:
    """Return a mask of partitions whose topic name is empty before ``-partition-``."""
    return np.asarray(pc.match_substring_regex(topics, _OF_NOTHING).to_numpy(), bool)


def _nothing_fault(row: Row) -> str:
    return f"{shown(row['topic'])} is a partition of a topic without a name"


def _beyond_partitions(topics: pa.ChunkedArray) -> np.ndarray:
    """Return a mask of names whose partition number is above the maximum.

    A number above a Java int is no partition number, but a part of the topic's name.
    """
    long = np.asarray(pc.match_substring_regex(topics, _BEYOND).to_numpy(), bool)
    places = np.flatnonzero(long)
    if len(places):
        indexes = _partition_indexes(topics.take(pa.array(places))).to_numpy()
        long[places] = (indexes >= MAX_PARTITIONS) & (indexes <= MAX_PARTITION_INDEX)
    return long


def _partition_fault(row: Row) -> str:
    index = row["topic"].rpartition("-")[2]
    shown_name = shown(row["topic"])
    return f"{shown_name} is partition {index}; a topic has at most {MAX_PARTITIONS:,}"


# -- properties -------------------------------------------------------------------------------


def _wrong_properties(table: pa.Table) -> np.ndarray:
    """Return a mask of rows with properties that the REST API would refuse."""
    wrong = [np.zeros(0, bool)]
    for batch in table.select(["topic", "properties"]).to_batches():
        name_bytes = pc.binary_length(batch["topic"]).to_numpy()
        wrong.append(_wrong_in_chunk(batch["properties"], name_bytes))
    return np.concatenate(wrong)


def _wrong_in_chunk(column: pa.MapArray, name_bytes: np.ndarray) -> np.ndarray:
    offsets = column.offsets.to_numpy()
    wrong = np.diff(offsets) > MAX_PROPERTIES
    size_bytes = np.zeros(len(column.keys), np.int64)
    has_nul = np.zeros(len(column.keys), bool)
    for texts in (column.keys, column.items):
        size_bytes += pc.fill_null(pc.binary_length(texts), 0).to_numpy()
        matches = pc.fill_null(pc.match_substring(texts, "\0"), False)
        has_nul |= matches.to_numpy(zero_copy_only=False)
    pairs = np.flatnonzero(has_nul | (size_bytes > MAX_PROPERTY_BYTES - MAX_NAME_BYTES))
    pairs = pairs[(pairs >= offsets[0]) & (pairs < offsets[-1])]
    rows = np.searchsorted(offsets, pairs, side="right") - 1
    wrong[rows[has_nul[pairs] | (size_bytes[pairs] + name_bytes[rows] > MAX_PROPERTY_BYTES)]] = True
    return np.asarray(wrong & column.is_valid().to_numpy(zero_copy_only=False))


def _properties_fault(row: Row) -> str:
    pairs = row["properties"]
    reason = f"{len(pairs)} properties: a topic may have {MAX_PROPERTIES}"
    try:
        check_properties(row["topic"], {key: value or "" for key, value in pairs})
    except RefusedError as error:
        reason = error.reason
    return f"{shown(row['topic'])}: {reason}"
