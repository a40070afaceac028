"""Bulk import of topics: the Spark job's Parquet, or text with one full topic name a line.

A namespace becomes visible when all of its rows are in, never before: its rows are staged until
no later row group can hold more of them (Parquet says so in its statistics), then applied as one
change. What is there already stays; nothing imported is ever deleted as inactive. Files are read,
checked and sorted in a thread: others are served meanwhile.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker.stores.properties import PropertyRows
from broker.stores.store import TopicChanges
from proto.names import DOMAINS, MAX_PARTITION_INDEX, InvalidNameError, NamespaceName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from broker.stores.store import MetadataStore

TEXT_LINES_PER_BATCH = 100_000
MOST_ROWS_ON_THE_LOOP = 20_000
"""Rows of a namespace that are made ready where they are applied, in about 2 ms."""
_TOPIC = r"\A(?:non-)?persistent://(?P<namespace>[-=:.\w]+/[-=:.\w]+)/[^/]*[^/\s][^/]*\z"
_NAMESPACE_PREFIX = r"\A(?:non-)?persistent://(?P<namespace>[^/]+/[^/]+)/"
_PARTITION = r"-partition-(?P<index>0|[1-9][0-9]*)\z"
_PARTITION_SUFFIX = r"-partition-(?:0|[1-9][0-9]*)\z"
_PARQUET_MAGIC = b"PAR1"
REQUIRED_COLUMNS = {"namespace": pa.string(), "topic": pa.string()}
PROPERTIES_TYPE = pa.map_(pa.string(), pa.string())


class ImportFailedError(Exception):
    """What is wrong with the file, in one sentence; namespaces applied before it stay."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did.

    Attributes:
        topics: Names read, partitions one by one.
        namespaces: Namespaces they lie in.
        seconds: How long it took.
    """

    topics: int
    namespaces: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some rows by namespace, and the namespaces so far of which no more will come."""

    rows: Mapping[str, pa.Table]
    complete: Sequence[str]


async def import_topics(
    store: MetadataStore, path: Path, progress: Callable[[int], object] = lambda _: None
) -> ImportResult:
    """Import a Parquet file, a folder of them, or a text file.

    Args:
        store: Where the topics go.
        path: What to read.
        progress: Told the number of names applied so far.

    Raises:
        ImportFailedError: Missing or malformed file; says which, and what was expected.
    """
    started, topics, namespaces = time.perf_counter(), 0, set()
    staged: dict[str, list[pa.Table]] = {}
    batches = await asyncio.to_thread(_batches, path)
    while (batch := await asyncio.to_thread(next, batches, None)) is not None:
        for name, rows in batch.rows.items():
            staged.setdefault(name, []).append(rows)
        for name in batch.complete:
            topics += await _apply(store, name, staged.pop(name), path)
            namespaces.add(name)
            progress(topics)
            await asyncio.sleep(0)
    # What Arrow's allocator keeps of a thread's buffers it gives back only when that thread asks.
    await asyncio.to_thread(pa.default_memory_pool().release_unused)
    return ImportResult(topics, len(namespaces), time.perf_counter() - started)


async def _apply(store: MetadataStore, namespace: str, tables: list[pa.Table], path: Path) -> int:
    try:
        name = NamespaceName.parse(namespace)
    except InvalidNameError as error:
        raise ImportFailedError(f"{path}: {error}") from None
    if sum(map(len, tables)) > MOST_ROWS_ON_THE_LOOP:
        changes = await asyncio.to_thread(_changes, tables)
    else:
        changes = _changes(tables)
    await store.apply(name, changes)
    return len(changes.added)


def _changes(tables: Sequence[pa.Table]) -> TopicChanges:
    """Return what is changed by the rows of a namespace."""
    table = pa.concat_tables(tables).combine_chunks()
    names: list[bytes] = table["topic"].cast(pa.binary()).to_pylist()
    properties = None
    if "properties" in table.column_names and len(table):
        properties = PropertyRows.from_map_column(names, table["properties"].chunk(0))
    counts = _partition_counts(table["topic"])
    return TopicChanges(names, (), counts, properties, adds_only=True)


def _partition_counts(topics: pa.ChunkedArray) -> Mapping[str, int]:
    """Return how many partitions each partitioned topic has: its highest partition + 1."""
    partitions = topics.filter(pc.match_substring_regex(topics, _PARTITION_SUFFIX))
    if not len(partitions):
        return {}
    bases = pc.replace_substring_regex(partitions, _PARTITION_SUFFIX, "")
    indexes = pc.struct_field(pc.extract_regex(partitions, _PARTITION), "index")
    table = pa.table({"base": bases, "index": _as_numbers(indexes)})
    highest = table.group_by("base").aggregate([("index", "max")])
    pairs = zip(highest["base"].to_pylist(), highest["index_max"].to_pylist(), strict=True)
    return {base: index + 1 for base, index in pairs if index <= MAX_PARTITION_INDEX}


def _as_numbers(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read digits as numbers; more than eighteen of them are no partition index."""
    short = pc.if_else(pc.less_equal(pc.utf8_length(texts), 18), texts, str(2**40))
    return short.cast(pa.int64())


def _by_namespace(table: pa.Table) -> dict[str, pa.Table]:
    """Sort rows of a batch under their namespaces, however many these are."""
    column = table["namespace"].combine_chunks().dictionary_encode()
    names: list[str] = column.dictionary.to_pylist()
    if len(names) == 1:
        return {names[0]: table}
    codes = column.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(names) + 1)).tolist()
    if not np.array_equal(order, np.arange(len(order))):
        table = table.take(pa.array(order))
    return {
        name: table.slice(start, end - start)
        for name, (start, end) in zip(names, itertools.pairwise(starts), strict=True)
    }


def _batches(path: Path) -> Iterator[_Batch]:
    try:
        files = _parquet_files(path)
    except OSError as error:
        raise ImportFailedError(f"{path} cannot be read: {error.strerror}") from None
    return _parquet_batches(files) if files else _text_batches(path)


def _parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files that a path names; none if it is a text file."""
    if not path.exists():
        raise ImportFailedError(f"{path} does not exist")
    if path.is_dir():
        files = sorted(path.glob("*.parquet"))
        if not files:
            raise ImportFailedError(f"{path} holds no *.parquet file")
        return files
    with path.open("rb") as file:
        return [path] if file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC else []


# -- Parquet ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _RowGroup:
    file: Path
    index: int
    lowest: str | None
    highest: str | None

    def may_hold(self, namespace: str) -> bool:
        """Whether rows of a namespace may be in this row group."""
        if self.lowest is None or self.highest is None:
            return True
        return self.lowest <= namespace <= self.highest


def _parquet_batches(files: Iterable[Path]) -> Iterator[_Batch]:
    groups = [group for file in files for group in _row_groups(file)]
    reader: pq.ParquetFile | None = None
    open_names: dict[str, None] = {}
    for position, group in enumerate(groups):
        if reader is None or groups[position - 1].file != group.file:
            reader = pq.ParquetFile(group.file)
        rows = _by_namespace(_read_row_group(reader, group))
        open_names.update(dict.fromkeys(rows))
        later = groups[position + 1 :]
        complete = [name for name in open_names if not any(other.may_hold(name) for other in later)]
        for name in complete:
            del open_names[name]
        yield _Batch(rows, complete)


def _row_groups(file: Path) -> Iterator[_RowGroup]:
    try:
        reader = pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise ImportFailedError(f"{file} is not a readable Parquet file: {error}") from None
    _check_columns(file, reader.schema_arrow)
    column = reader.schema_arrow.names.index("namespace")
    for index in range(reader.num_row_groups):
        statistics = reader.metadata.row_group(index).column(column).statistics
        known = statistics is not None and statistics.has_min_max
        low, high = (statistics.min, statistics.max) if known else (None, None)
        yield _RowGroup(file, index, low, high)


def _check_columns(file: Path, schema: pa.Schema) -> None:
    for name, kind in REQUIRED_COLUMNS.items():
        if name not in schema.names or not _is_text(schema.field(name).type):
            found = ", ".join(f"{field.name} {field.type}" for field in schema)
            raise ImportFailedError(
                f"{file} has no column {name} of type {kind}; its columns are: {found}. "
                "Expected what `loadgen topics` writes: namespace, topic and, if any, properties"
            )
    kind = schema.field("properties").type if "properties" in schema.names else PROPERTIES_TYPE
    if not (pa.types.is_map(kind) and _is_text(kind.key_type) and _is_text(kind.item_type)):
        raise ImportFailedError(f"{file}: column properties is {kind}, expected {PROPERTIES_TYPE}")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _read_row_group(reader: pq.ParquetFile, group: _RowGroup) -> pa.Table:
    columns = [
        name for name in ("namespace", "topic", "properties") if name in reader.schema_arrow.names
    ]
    try:
        # Arrow's own threads would keep what they freed: as much as a row group each.
        table = reader.read_row_group(group.index, columns=columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise ImportFailedError(f"{group.file} cannot be read: {error}") from None
    table = table.set_column(0, "namespace", table["namespace"].cast(pa.string()))
    table = table.set_column(1, "topic", table["topic"].cast(pa.string()))
    _check_topics(group.file, table)
    return table


def _check_topics(file: Path, table: pa.Table) -> None:
    """Every topic must be a full name that lies in its row's namespace."""
    topics = table["topic"]
    if topics.null_count or table["namespace"].null_count:
        raise ImportFailedError(f"{file}: a row lacks its topic or its namespace")
    valid = pc.match_substring_regex(topics, _TOPIC)
    inside = pc.struct_field(pc.extract_regex(topics, _NAMESPACE_PREFIX), "namespace")
    wrong = pc.invert(pc.and_(valid, pc.fill_null(pc.equal(inside, table["namespace"]), False)))
    if pc.any(wrong).as_py():
        row = table.filter(wrong).slice(0, 1).to_pylist()[0]
        where = f" in namespace {row['namespace']!r}" if row["namespace"] else ""
        raise ImportFailedError(
            f"{file}: {row['topic']!r} is not a full topic name{where}; "
            f"expected {DOMAINS[0]}://tenant/namespace/topic"
        )


# -- text -------------------------------------------------------------------------------------


def _text_batches(path: Path) -> Iterator[_Batch]:
    """Read a text file whole batch by whole batch; its order says nothing, so all is staged."""
    schema = pa.schema(REQUIRED_COLUMNS)
    open_names: dict[str, None] = {}
    for lines, last in _text_lines(path):
        topics = pa.array(lines, pa.string())
        inside = pc.struct_field(pc.extract_regex(topics, _NAMESPACE_PREFIX), "namespace")
        table = pa.table([pc.fill_null(inside, ""), topics], schema=schema)
        if len(table):
            _check_topics(path, table)
        rows = _by_namespace(table)
        open_names.update(dict.fromkeys(rows))
        yield _Batch(rows, list(open_names) if last else ())


def _text_lines(path: Path) -> Iterator[tuple[list[str], bool]]:
    lines: list[str] = []
    try:
        # Editors on Windows begin UTF-8 with a byte order mark.
        with path.open(encoding="utf-8-sig") as file:
            for line in file:
                name = line.strip().strip('"')
                if name:
                    lines.append(name)
                if len(lines) == TEXT_LINES_PER_BATCH:
                    yield lines, False
                    lines = []
    except (OSError, UnicodeDecodeError) as error:
        raise ImportFailedError(f"{path} is neither Parquet nor UTF-8 text: {error}") from None
    yield lines, True
