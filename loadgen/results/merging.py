"""Merging of a run's table files: the many small files of its tasks become a few large ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.errors import LoadgenError, reason_of
from loadgen.results.tables import TABLES, part_of, parts_of
from loadgen.stored import readable, written_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

MOST_FILES = 16
"""Most files of a table."""
_AT_ONCE = 4
"""Files merged at a time: in a store each part takes several calls, and some 100 MB of memory."""
_ROW_GROUP_ROWS = 65_536


def merged_files(directory: Path, tasks: Iterable[int]) -> dict[str, list[str]]:
    """Merge the files of each table that has more than ``MOST_FILES``; return all files' names.

    A complete merged file replaces its parts; if the merge cannot be written, the parts stay.

    Args:
        directory: The directory of the run.
        tasks: The numbers of the tasks that reported their files as written.

    Raises:
        LoadgenError: The file of a task is missing, or a part cannot be deleted, so that its rows
            exist twice.
    """
    for table, task in product(("requests", "events"), tasks):
        if not (part := part_of(directory, table, task)).exists():
            raise LoadgenError(
                f"{part} is missing, but task {task} has written it: name an --out that all "
                "hosts share, a folder or an object store"
            )
    for table in TABLES:
        parts = parts_of(directory, table)
        size = -(-len(parts) // MOST_FILES)
        if size > 1:
            groups = [parts[begin : begin + size] for begin in range(0, len(parts), size)]
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                list(threads.map(_merge, groups))
    return {table: [each.name for each in parts_of(directory, table)] for table in TABLES}


def _merge(parts: Sequence[Path]) -> None:
    merged = parts[0].with_name(f"merged-{parts[0].name}")
    schema = TABLES[merged.parent.name]
    try:
        with (
            written_whole(merged) as file,
            pq.ParquetWriter(file, schema, compression="zstd") as writer,
        ):
            for rows in _row_groups(parts):
                writer.write_table(rows)
    except (OSError, ValueError, pa.ArrowException, LoadgenError) as error:
        if merged.exists():  # The file is complete, though the store did not answer.
            said = f"{merged} has rows that its parts have as well: {reason_of(error)}"
            raise LoadgenError(said) from error
        return
    for part in parts:
        try:
            part.unlink()
        except OSError as error:
            raise LoadgenError(f"{part} cannot be deleted: {reason_of(error)}") from error


def _row_groups(parts: Sequence[Path]) -> Iterator[pa.Table]:
    pending: list[pa.RecordBatch] = []
    for part in parts:
        with pq.ParquetFile(readable(part), pre_buffer=True) as source:
            for batch in source.iter_batches():
                pending.append(batch)
                if sum(map(len, pending)) >= _ROW_GROUP_ROWS:
                    yield pa.Table.from_batches(pending)
                    pending = []
    if pending:
        yield pa.Table.from_batches(pending)
