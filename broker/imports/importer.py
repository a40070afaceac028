"""Bulk import of topics. An import only adds.

A namespace becomes visible when all of its rows are in, never before: its rows are staged until
no later row group can hold more of them (Parquet says so in its statistics), then applied as one
change. Topics that exist stay as they are; nothing imported is ever deleted as inactive.

A file is read twice: once to see that all of it can be imported, then to import it. It is read,
checked and sorted in a thread, so that requests are served meanwhile.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from broker.imports.files import ImportFailedError as ImportFailedError
from broker.imports.files import read_rows, state_of
from broker.imports.rows import partition_counts, valid_rows, with_namespaces
from broker.stores.changes import TopicChanges
from broker.stores.property_rows import PropertyRows
from proto.invalid_rows import InvalidRows
from proto.names import InvalidNameError, NamespaceName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from broker.imports.files import FileStates
    from broker.imports.rows import TopicRows
    from broker.stores.store import MetadataStore


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import.

    Attributes:
        topics: Names read, partitions one by one.
        namespaces: Namespaces they lie in.
        seconds: How long it took.
        skipped: Invalid topics that were left out.
        report: The errors in them; empty without any.
    """

    topics: int
    namespaces: int
    seconds: float
    skipped: int = 0
    report: str = ""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows by namespace, and the namespaces that are complete with them."""

    rows: Mapping[str, pa.Table]
    complete: Sequence[str]


async def import_topics(
    store: MetadataStore,
    path: Path,
    progress: Callable[[int], object] = lambda _: None,
    *,
    skip_invalid: bool = False,
    state: FileStates | None = None,
) -> ImportResult:
    """Import a Parquet file, a folder of them, or a text file with a full name a line.

    Args:
        store: The store that topics are added to.
        path: The file or folder.
        progress: Called with the number of names applied so far.
        skip_invalid: Whether invalid topics are left out; otherwise one fails the import.
        state: The path's ``state_of`` that the caller relies on; None for the present one.

    Raises:
        ImportFailedError: Missing, malformed or empty file, or invalid topics; says which, and
            what was expected.
        StoreError: The store failed; namespaces applied before stay.
    """
    started, topics, namespaces = time.perf_counter(), 0, set()
    if state is None:
        state = await asyncio.to_thread(state_of, path)
    invalid = await asyncio.to_thread(_checked, path, skip_invalid)
    staged: dict[str, list[pa.Table]] = {}
    batches = _batches(path, state, any_invalid=invalid.count > 0)
    while (batch := await asyncio.to_thread(next, batches, None)) is not None:
        complete = _stage(batch, staged)
        del batch  # The next one is read without this one in memory.
        for name in complete:
            topics += await _apply(store, name, staged.pop(name), path)
            namespaces.add(name)
            progress(topics)
            await asyncio.sleep(0)
    # What Arrow's allocator keeps of a thread's buffers it gives back only when that thread asks.
    await asyncio.to_thread(pa.default_memory_pool().release_unused)
    seconds = time.perf_counter() - started
    report = str(invalid) if invalid.count else ""
    return ImportResult(topics, len(namespaces), seconds, invalid.count, report)


def _stage(batch: _Batch, staged: dict[str, list[pa.Table]]) -> Sequence[str]:
    for name, rows in batch.rows.items():
        staged.setdefault(name, []).append(rows)
    return batch.complete


def _checked(path: Path, skip_invalid: bool) -> InvalidRows:
    """Check all of a file before anything of it is imported."""
    invalid = InvalidRows(path)
    for rows in read_rows(path):
        _valid(path, rows, invalid)
    pa.default_memory_pool().release_unused()
    if invalid.count and not skip_invalid:
        raise ImportFailedError(invalid.refusal)
    if invalid.count == invalid.rows:
        raise ImportFailedError(str(invalid) if invalid.count else f"{path} holds no topic")
    return invalid


def _valid(path: Path, rows: TopicRows, invalid: InvalidRows) -> pa.Table:
    try:
        return valid_rows(rows, invalid)
    except pa.ArrowException as error:
        raise ImportFailedError(f"{path} cannot be read: {error}") from None


def _batches(path: Path, state: FileStates, *, any_invalid: bool) -> Iterator[_Batch]:
    """Read a file that was checked; ``state`` is the one it had before."""
    again = InvalidRows(path)
    open_names: dict[str, None] = {}
    _check_unchanged(path, state)
    for rows in read_rows(path):
        table = _valid(path, rows, again) if any_invalid else rows.table
        by_namespace = _by_namespace(with_namespaces(table))
        open_names.update(dict.fromkeys(by_namespace))
        complete = [name for name in open_names if not rows.comes_later(name)]
        for name in complete:
            del open_names[name]
        batch = _Batch(by_namespace, complete)
        del rows, table, by_namespace
        yield batch
        del batch
    yield _Batch({}, list(open_names))
    _check_unchanged(path, state)


def _check_unchanged(path: Path, state: FileStates) -> None:
    if state_of(path) != state:
        raise _changed(path)


def _changed(path: Path) -> ImportFailedError:
    return ImportFailedError(f"{path} was changed while it was imported: import it again")


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


async def _apply(store: MetadataStore, namespace: str, tables: list[pa.Table], path: Path) -> int:
    try:
        name = NamespaceName.parse(namespace)
    except InvalidNameError:
        raise _changed(path) from None
    changes = await asyncio.to_thread(_changes, tables)
    await store.apply(name, changes)
    return len(changes.added)


def _changes(tables: Sequence[pa.Table]) -> TopicChanges:
    """Return the change that adds the rows of a namespace."""
    # Files without properties may lie beside files with: theirs are null.
    table = pa.concat_tables(tables, promote_options="default").combine_chunks()
    names: list[bytes] = table["topic"].cast(pa.binary()).to_pylist()
    properties = None
    if "properties" in table.column_names and len(table):
        properties = PropertyRows.from_map_column(names, table["properties"].chunk(0))
    counts = partition_counts(table["topic"])
    return TopicChanges(names, (), counts, properties, adds_only=True)
