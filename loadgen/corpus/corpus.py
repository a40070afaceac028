"""A corpus: synthetic topics as Parquet files, and the manifest that says what they hold.

The tasks of a job each write one file with whole namespaces, ordered by name, and hand back what
the manifest needs, computed from the rows while they are in memory. Spark and the process
executor run the same function for each file, so both write the same rows.

A corpus appears at once: it is written beside its place and moved there when it is complete.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadgen.corpus.manifest import (
    MANIFEST_NAME,
    Manifest,
    NamespaceEntry,
    make_manifest,
    read_manifest,
    write_manifest,
)
from loadgen.corpus.synthetic import TOPIC_SCHEMA, namespace_rows
from loadgen.corpus.topic_plan import TopicPlan, part_namespaces
from loadgen.errors import LoadgenError, UsageError
from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    Entry: TypeAlias = tuple[str, NamespaceEntry]
    Executor: TypeAlias = Callable[[TopicPlan, int, Path], Iterable[Entry]]

ROW_GROUP_ROWS = 100_000


@dataclass(frozen=True)
class Corpus:
    """A corpus on disk."""

    directory: Path
    manifest: Manifest
    files: tuple[Path, ...]

    @property
    def file_bytes(self) -> int:
        """Size of the Parquet files together."""
        return sum(file.stat().st_size for file in self.files)


def write_corpus(plan: TopicPlan, out: Path, parts: int, executor: Executor) -> Corpus:
    """Make the topics of a plan and put them at ``out``, where an older corpus is replaced.

    Args:
        plan: What to make.
        out: The directory of the corpus.
        parts: Number of files; the rows do not depend on it.
        executor: What runs :func:`write_part` for every part, here or in Spark's tasks.

    Raises:
        UsageError: ``out`` holds something else than a corpus.
        LoadgenError: The files cannot be written, or the job lost a namespace.
    """
    parts = min(parts, plan.namespaces)
    with _replacing(out) as directory:
        manifest = make_manifest(plan, executor(plan, parts, directory))
        if (manifest.topics, len(manifest.namespaces)) != (plan.topics, plan.namespaces):
            raise LoadgenError(
                f"The job handed back {manifest.topics} topics in {len(manifest.namespaces)} "
                f"namespaces instead of {plan.topics} in {plan.namespaces}."
            )
        write_manifest(manifest, directory)
    return Corpus(out, manifest, _part_files(out))


def in_this_process(on_part_done: Callable[[int], None]) -> Executor:
    """Return the executor that writes one part after the other, without Spark or Java."""

    def execute(plan: TopicPlan, parts: int, directory: Path) -> Iterator[Entry]:
        for part in range(parts):
            yield from write_part(plan, part, parts, directory)
            on_part_done(part + 1)

    return execute


def in_spark(session: SparkSession, on_part_done: Callable[[int], None]) -> Executor:
    """Return the executor that writes every part in a task of its own.

    The directory must be one that all executors and this process share; local Spark's is.
    Tasks hand back a few numbers for each namespace, so an RDD carries them: ``mapInArrow`` would
    want pandas for the same (pyspark 4.3).
    """
    from loadgen.spark.jobs import collect_with_progress

    def execute(plan: TopicPlan, parts: int, directory: Path) -> Iterable[Entry]:
        def rows() -> list[Entry]:
            tasks = session.sparkContext.parallelize(range(parts), parts)
            written = tasks.flatMap(lambda part: write_part(plan, part, parts, directory))
            entries: list[Entry] = written.collect()
            return entries

        return collect_with_progress(session, rows, on_part_done)

    return execute


def write_part(plan: TopicPlan, part: int, parts: int, directory: Path) -> list[Entry]:
    """Write one file of a corpus and return the manifest entries of its namespaces.

    Row groups hold whole namespaces while those are small. Memory is bounded by a row group and
    a namespace.
    """
    target = directory / f"part-{part:05d}.parquet"
    # A task that is tried again must not meet, or leave, half a file.
    unfinished = directory / f".{target.name}.{os.getpid()}"
    entries: list[Entry] = []
    pending: list[pa.RecordBatch] = []
    with pq.ParquetWriter(unfinished, TOPIC_SCHEMA, compression="zstd") as writer:
        for namespace in part_namespaces(plan, part, parts):
            rows = namespace_rows(plan, namespace)
            entries.append((namespace.name, _entry(rows)))
            if pending and sum(map(len, pending)) + len(rows) > ROW_GROUP_ROWS:
                _flush(writer, pending)
            pending.append(rows)
        _flush(writer, pending)
    unfinished.replace(target)
    return entries


def open_corpus(directory: Path) -> Corpus:
    """Return the corpus in a directory after checking that it is one, from its footers alone.

    Raises:
        UsageError: It is not; the sentence says what is missing or different.
    """
    if not directory.is_dir():
        raise UsageError(
            f"{directory} is not a directory. Make a corpus with: loadgen topics --out {directory}"
        )
    manifest = read_manifest(directory)
    files = _part_files(directory)
    rows = sum(parquet_rows(file) for file in files)
    if rows != manifest.topics:
        raise UsageError(
            f"{directory} holds {rows} topics, but its {MANIFEST_NAME} says {manifest.topics}; "
            "make the corpus again with: loadgen topics"
        )
    return Corpus(directory, manifest, files)


def parquet_rows(file: Path) -> int:
    """Return the number of rows of a Parquet file that has the columns of a corpus.

    Raises:
        UsageError: It is no Parquet, or has other columns.
    """
    try:
        with pq.ParquetFile(file) as parquet:
            columns, rows = parquet.schema_arrow, int(parquet.metadata.num_rows)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{file} cannot be read as Parquet: {error}.") from error
    for wanted in TOPIC_SCHEMA:
        index = columns.get_field_index(wanted.name)
        found = columns.field(index).type if index >= 0 else "missing"
        if found != wanted.type:
            raise UsageError(
                f"{file} is not topics: column {wanted.name} is {found}, not {wanted.type}."
            )
    return rows


def _entry(rows: pa.RecordBatch) -> NamespaceEntry:
    """Return the manifest entry of a namespace's rows."""
    names = rows.column("topic")
    name_bytes = pc.sum(pc.binary_length(names)).as_py()
    return NamespaceEntry(len(rows), topics_hash(names.to_pylist()), name_bytes)


def _flush(writer: Any, pending: list[pa.RecordBatch]) -> None:  # noqa: ANN401
    """Write the pending rows as a row group (more than one if they are too many)."""
    if pending:
        writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_ROWS)
        pending.clear()


def _part_files(directory: Path) -> tuple[Path, ...]:
    """Return the Parquet files of a corpus in the order of their namespaces."""
    return tuple(sorted(directory.glob("part-*.parquet")))


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """Hand out a directory beside ``out`` that takes its place if the block succeeds."""
    _require_replaceable(out)
    directory = out.resolve().with_name(f".{out.resolve().name}.{os.getpid()}")
    try:
        directory.mkdir(parents=True)
        yield directory
        if out.exists():
            shutil.rmtree(out)
        directory.rename(out)
    except OSError as error:
        raise LoadgenError(f"The corpus {out} cannot be written: {error}.") from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _require_replaceable(out: Path) -> None:
    """Refuse to replace what is neither a corpus nor an empty directory."""
    if not out.exists() or (out / MANIFEST_NAME).is_file():
        return
    if out.is_dir() and not any(out.iterdir()):
        return
    raise UsageError(
        f"{out} exists and is not a topic corpus, so it is not replaced; "
        "give another --out or remove it."
    )
