"""Bulk import of topics, which adds topics and never changes or removes existing ones.

A namespace becomes visible only with all its rows: rows are staged until no later row group can
hold more rows of the namespace (by Parquet's statistics), then applied as one change. Existing
topics stay unchanged; imported topics are never deleted as inactive.

A file is read twice: first to check all rows, then to import. A thread reads, checks and sorts, so
that the broker serves requests meanwhile.

At the broker's start (``--import``) each file is imported once: the store remembers the content of
completely imported files. A restart with the same file leaves topics alone that were deleted or
changed since. An interrupted import is repeated, and adds missing topics.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from broker.imports.files import ImportFailedError as ImportFailedError
from broker.imports.files import files_of, read_rows, state_of, unreadable
from broker.imports.rows import highest_partitions, valid_rows, with_namespaces
from broker.imports.staging import StagedRows
from broker.stores.changes import StoreError, TopicChanges
from broker.stores.property_rows import PropertyRows, row_texts
from proto.invalid_rows import InvalidRows
from proto.names import InvalidNameError, NamespaceName
from server.errors import StartError
from server.tasks.freed_memory import free_in_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from broker.imports.files import FileStates
    from broker.imports.rows import TopicRows
    from broker.imports.staging import Lot
    from broker.stores.changes import NamespaceChanges
    from broker.stores.store import MetadataStore
    from server.imports import Imports

logger = logging.getLogger(__name__)

_TOLD_TOPICS = 1_000_000
"""The number of topics imported between two progress lines in the log."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The numbers of imported and skipped topics, and the duration of an import.

    Attributes:
        topics: The number of topic names read; each partition counts.
        namespaces: The number of namespaces with these topics.
        seconds: The duration of the import.
        skipped: The number of invalid topics that were left out.
        report: Errors of the invalid topics; empty without invalid topics.
    """

    topics: int
    namespaces: int
    seconds: float
    skipped: int = 0
    report: str = ""


async def import_topics(
    store: MetadataStore,
    path: Path,
    progress: Callable[[int], object] = lambda _: None,
    *,
    skip_invalid: bool = False,
    state: FileStates | None = None,
) -> ImportResult:
    """Import a Parquet file, a folder of Parquet files, or a text file with a full name per line.

    Args:
        store: The store of the topics.
        path: The file or folder.
        progress: Called with the number of names applied so far.
        skip_invalid: Whether invalid topics are left out; otherwise an invalid topic fails the
            import.
        state: The result of the caller's earlier ``state_of``; None for the present state of the
            path.

    Raises:
        ImportFailedError: The file is missing, malformed or empty, or has invalid topics; the text
            names the file and the expected content.
        StoreError: The store failed; the namespaces that were applied before stay imported.
    """
    started, topics, namespaces = time.perf_counter(), 0, 0
    if state is None:
        state = await asyncio.to_thread(state_of, path)
    invalid = await asyncio.to_thread(_checked, path, skip_invalid)
    lots = _lots(path, state, any_invalid=invalid.count > 0)
    while (lot := await asyncio.to_thread(next, lots, None)) is not None:
        await store.apply_all(lot)
        # A namespace is in a single lot. Names are not kept: 100,000 would be freed in one turn.
        namespaces += len(lot)
        for count in [len(changes.added) for _, changes in lot]:
            if (topics + count) // _TOLD_TOPICS > topics // _TOLD_TOPICS:
                logger.info("imported %d topics of %s so far", topics + count, path)
            topics += count
            progress(topics)
        # The next lot is built without this lot in memory.
        await asyncio.to_thread(_let_go, lot)
    # Arrow's allocator returns a thread's freed buffers only at the same thread's request.
    await asyncio.to_thread(pa.default_memory_pool().release_unused)
    seconds = time.perf_counter() - started
    report = str(invalid) if invalid.count else ""
    return ImportResult(topics, namespaces, seconds, invalid.count, report)


def _let_go(lot: list[NamespaceChanges]) -> None:
    """Free the memory of an applied batch in steps: one step would block other threads for long."""
    for _, changes in lot:
        if isinstance(changes.added, list):
            free_in_steps(changes.added)
    lot.clear()


def _checked(path: Path, skip_invalid: bool) -> InvalidRows:
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


def _lots(path: Path, state: FileStates, *, any_invalid: bool) -> Iterator[list[NamespaceChanges]]:
    """Read a checked file; yield batches of changes, each with all rows of its namespaces.

    Args:
        path: The file or folder.
        state: The path's state before the check.
        any_invalid: Whether to leave out invalid rows.
    """
    again, staged = InvalidRows(path), StagedRows()
    _check_unchanged(path, state)
    for rows in read_rows(path):
        table = _valid(path, rows, again) if any_invalid else rows.table
        staged.add(with_namespaces(table))
        del table
        complete = [name for name in staged.names if not rows.comes_later(name)]
        del rows
        yield from map(partial(_additions, path), staged.lots(complete))
    yield from map(partial(_additions, path), staged.lots(staged.names))
    _check_unchanged(path, state)


def _additions(path: Path, lot: Lot) -> list[NamespaceChanges]:
    try:
        return additions(lot)
    except InvalidNameError:
        raise _changed(path) from None


def _check_unchanged(path: Path, state: FileStates) -> None:
    if state_of(path) != state:
        raise _changed(path)


def _changed(path: Path) -> ImportFailedError:
    return ImportFailedError(f"{path} was changed while it was imported: import it again")


def additions(lot: Lot) -> list[NamespaceChanges]:
    """Return a change for each namespace in a batch of rows, which adds the namespace's topics.

    Raises:
        InvalidNameError: The name of a namespace is invalid.
    """
    topics: list[bytes] = lot.table["topic"].cast(pa.binary()).to_pylist()
    partitioned = _partition_counts(lot)
    column = _properties(lot)
    described = _described(lot, column)
    texts = row_texts(column) if column is not None and any(described) else ()
    found: list[NamespaceChanges] = []
    for place, (start, end) in enumerate(itertools.pairwise(lot.starts)):
        names = topics[start:end]
        rows = None
        if column is not None and described[place]:
            some = column.slice(start, end - start)
            rows = PropertyRows(names, some, texts[start:end])
        changes = TopicChanges(names, (), partitioned[place], rows, adds_only=True)
        found.append((NamespaceName.parse(lot.names[place]), changes))
    return found


def _partition_counts(lot: Lot) -> Sequence[dict[str, int]]:
    counts: list[dict[str, int]] = [{} for _ in lot.names]
    places = np.repeat(np.arange(len(lot.names)), np.diff(lot.starts))
    for base, place, highest in highest_partitions(lot.table["topic"], places):
        counts[place][base] = highest + 1
    return counts


def _properties(lot: Lot) -> pa.MapArray | None:
    if "properties" not in lot.table.column_names:
        return None
    return lot.table["properties"].combine_chunks()


def _described(lot: Lot, column: pa.MapArray | None) -> Sequence[bool]:
    """Return, for each namespace of a batch, whether any of its topics has properties."""
    if column is None:
        return ()
    pairs = column.offsets.to_numpy()[np.asarray(lot.starts)]
    described: list[bool] = (np.diff(pairs) > 0).tolist()
    return described


async def import_at_start(store: MetadataStore, imports: Imports) -> None:
    """Import the files of ``--import`` at the broker's start, except those imported before.

    Raises:
        StartError: A file cannot be imported, or the store failed.
    """
    for path in imports.paths:
        try:
            await _import(store, path, imports)
        except (ImportFailedError, StoreError) as error:
            raise StartError(f"--import: {error}") from None


async def _import(store: MetadataStore, path: Path, imports: Imports) -> None:
    # Taken before the content, so that the remembered content is the imported content.
    state = await asyncio.to_thread(state_of, path)
    content = await asyncio.to_thread(fingerprint, path)
    if not imports.again and await store.has_imported(content):
        logger.info(
            "%s was imported before and is skipped, to keep later changes; "
            "--import-again imports it again",
            path,
        )
        return
    logger.info("imports %s; all of it is checked first", path)
    result = await import_topics(store, path, skip_invalid=imports.skip_invalid, state=state)
    for line in result.report.splitlines():
        logger.warning("--skip-invalid: %s", line.strip())
    await store.remember_import(content)
    logger.info(
        "imported %d topics of %d namespaces from %s in %.1f s",
        result.topics,
        result.namespaces,
        path,
        result.seconds,
    )


def fingerprint(path: Path) -> str:
    """Return a SHA-256 digest of the content of a file, or of all files of a folder.

    Raises:
        ImportFailedError: A file is missing or unreadable.
    """
    digest = hashlib.sha256()
    for file in files_of(path):
        try:
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
        except OSError as error:
            raise unreadable(file, error) from None
    return digest.hexdigest()
