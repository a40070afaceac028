"""Bulk import of topics. An import only adds.

A namespace becomes visible only with all its rows: rows are staged until no later row group can
hold more rows of the namespace (by Parquet's statistics), then applied as one change. Existing
topics stay unchanged; imported topics are never deleted as inactive.

A file is read twice: first to check all rows, then to import. A thread reads, checks and sorts, so
that the broker serves requests meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from broker.imports.additions import additions
from broker.imports.files import ImportFailedError as ImportFailedError
from broker.imports.files import read_rows, state_of
from broker.imports.rows import valid_rows, with_namespaces
from broker.imports.staging import StagedRows
from proto.invalid_rows import InvalidRows
from proto.names import InvalidNameError
from server.tasks.freeing import free_in_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from broker.imports.files import FileStates
    from broker.imports.rows import TopicRows
    from broker.imports.staging import Lot
    from broker.stores.changes import NamespaceChanges
    from broker.stores.store import MetadataStore


logger = logging.getLogger(__name__)

_TOLD_TOPICS = 1_000_000
"""Interval of progress in the log."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import.

    Attributes:
        topics: Names read, each partition counted.
        namespaces: Namespaces of the topics.
        seconds: Duration.
        skipped: Invalid topics left out.
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
    """Import a Parquet file, a folder of Parquet files, or a text file with a full name a line.

    Args:
        store: The store of the topics.
        path: The file or folder.
        progress: Called with the number of names applied so far.
        skip_invalid: Whether invalid topics are left out; otherwise an invalid topic fails the
            import.
        state: The caller's ``state_of`` the path; None for the present state.

    Raises:
        ImportFailedError: Missing, malformed or empty file, or invalid topics; names the file and
            the expected content.
        StoreError: The store failed; namespaces applied before stay.
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
    """Free an applied lot in steps: a million names take longer than a turn may."""
    for _, changes in lot:
        if isinstance(changes.added, list):
            free_in_steps(changes.added)
    lot.clear()


def _checked(path: Path, skip_invalid: bool) -> InvalidRows:
    """Check all of a file before the import."""
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
    """Read a checked file, and yield changes of whole namespaces.

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
