"""A corpus of topics: a directory with Parquet files, and a manifest of their contents.

Each task of a job writes a file with whole namespaces, ordered by name. It returns the manifest's
entries for them, which it computes while the rows are in memory.
"""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.errors import LoadgenError, UsageError
from loadgen.stored import StoredPath, emptied, written_whole
from loadgen.topics.lists import opened
from loadgen.topics.manifest import (
    MANIFEST_NAME,
    Manifest,
    manifest_path,
    namespace_entry,
    read_manifest,
    write_manifest,
)
from loadgen.topics.plan import TopicPlan, plan_parts
from loadgen.topics.rows import TOPIC_SCHEMA, namespace_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from loadgen.topics.executors import Executor
    from loadgen.topics.manifest import Entry

ROW_GROUP_ROWS = 100_000
_NEEDED = ("namespace", "topic")
"""Required columns of a file of topics; further missing columns are null."""
_FOOTERS_AT_ONCE = 16
SCRATCH = ".scratch"
_LEFT = re.compile(rf"part-\d+\.parquet|\{SCRATCH}")
"""Names left in a store's folder by an interrupted corpus."""


@dataclass(frozen=True)
class Corpus:
    """A directory of topics as Parquet files, with its manifest."""

    directory: Path
    manifest: Manifest

    @property
    def files(self) -> tuple[Path, ...]:
        """The Parquet files of the corpus, in the order of their namespaces."""
        return tuple(sorted(self.directory.glob("part-*.parquet")))

    @property
    def file_bytes(self) -> int:
        """The total size of the Parquet files, in bytes."""
        return sum(file.stat().st_size for file in self.files)


def write_corpus(plan: TopicPlan, out: Path, parts: int, executor: Executor) -> Corpus:
    """Generate the topics of a plan as a corpus in ``out``, replacing an older one.

    Args:
        plan: The topics to generate.
        out: The directory of the corpus.
        parts: The largest number of files; the rows do not depend on it.
        executor: Runs :func:`write_part` for every part, in this process, in others or in Spark.

    Raises:
        UsageError: ``out`` contains files that do not belong to a corpus.
        LoadgenError: The files cannot be written, or the job lost a namespace.
    """
    with replacing(out) as directory:
        work = partial(write_part, plan, parts, directory)
        entries = executor(work, len(plan_parts(plan, parts)))
        manifest = write_manifest(directory, plan.seed, asdict(plan.shape), entries)
        topics, namespaces = manifest.topics, len(manifest.namespaces)
        if (topics, namespaces) != (plan.topics, plan.namespaces):
            told = f"The job returned {topics} topics in {namespaces} namespaces"
            raise LoadgenError(f"{told} instead of {plan.topics} in {plan.namespaces}.")
    return Corpus(out, manifest)


def write_part(plan: TopicPlan, parts: int, directory: Path, part: int) -> list[Entry]:
    """Generate one file of a corpus; return the manifest entries of its namespaces."""
    namespaces = plan_parts(plan, parts)[part]
    return write_part_file(directory, part, (namespace_rows(plan, one) for one in namespaces))


def write_part_file(directory: Path, part: int, namespaces: Iterable[pa.Table]) -> list[Entry]:
    """Write the rows of whole namespaces to one file of a corpus; return their manifest entries.

    A row group holds whole namespaces if they are small. Memory is bounded by the size of a row
    group and of a namespace.
    """
    entries: list[Entry] = []
    pending: list[pa.Table] = []

    def flush() -> None:
        if pending:
            writer.write_table(pa.concat_tables(pending), row_group_size=ROW_GROUP_ROWS)
            pending.clear()

    # A retried task must neither find nor leave half a file.
    with (
        written_whole(directory / f"part-{part:05d}.parquet") as file,
        pq.ParquetWriter(file, TOPIC_SCHEMA, compression="zstd") as writer,
    ):
        for rows in namespaces:
            entries.append((rows["namespace"][0].as_py(), namespace_entry(rows["topic"])))
            if sum(map(len, pending)) + len(rows) > ROW_GROUP_ROWS:
                flush()
            pending.append(rows)
        flush()
    return entries


def open_corpus(directory: Path) -> Corpus:
    """Return the corpus in a directory; of its Parquet files only the footers are checked.

    Raises:
        UsageError: The directory is not a corpus; the message names the missing or different part.
    """
    if not directory.is_dir():
        how = f"Make a corpus with: loadgen topics --out {directory}"
        raise UsageError(f"{directory} is not a directory. {how}")
    corpus = Corpus(directory, read_manifest(directory))
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as threads:  # in a store each footer is a call or two
        rows = sum(threads.map(parquet_rows, corpus.files))
    if rows != (topics := corpus.manifest.topics):
        told = f"{rows} topics, but its {manifest_path(directory).name} says {topics}"
        raise UsageError(f"{directory} holds {told}; make the corpus again with: loadgen topics")
    return corpus


def parquet_rows(file: Path) -> int:
    """Check the columns of a Parquet file of topics; return its number of rows.

    Raises:
        UsageError: The file is not Parquet, or has other columns.
    """
    with opened(file) as parquet:
        found = {each.name: each.type for each in parquet.schema_arrow}
        for wanted in TOPIC_SCHEMA:
            missing = "missing" if wanted.name in _NEEDED else wanted.type
            if (kind := found.get(wanted.name, missing)) != wanted.type:
                told = f"column {wanted.name} is {kind}, not {wanted.type}"
                raise UsageError(f"{file} is not a file of topics: {told}.")
        return int(parquet.metadata.num_rows)


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Yield a new directory that replaces ``out`` if the ``with`` block succeeds.

    Nothing in an object store can be renamed. There the new directory is ``out`` itself, which is
    no corpus until the manifest is written.

    Raises:
        UsageError: ``out`` contains files that do not belong to a corpus.
        LoadgenError: The directory cannot be written.
    """
    stored = isinstance(out, StoredPath)
    found: Iterable[Path] = out.iterdir() if out.is_dir() else [out] if out.exists() else ()
    others = any(not (stored and _LEFT.fullmatch(each.name)) for each in found)
    if others and not manifest_path(out).is_file():
        told = f"{out} exists and is not a topic corpus, so it is not replaced"
        raise UsageError(f"{told}; give another --out or remove it.")
    taken: AbstractContextManager[Path] = (
        emptied(out, MANIFEST_NAME) if isinstance(out, StoredPath) else _beside(out)
    )
    try:
        with taken as directory:
            yield directory
    except OSError as error:
        raise LoadgenError(f"The corpus {out} cannot be written: {error}.") from error


@contextmanager
def _beside(out: Path) -> Iterator[Path]:
    directory = out.resolve().with_name(f".{out.resolve().name}.{os.getpid()}")
    try:
        directory.mkdir(parents=True)
        yield directory
        for left in directory.glob(".part-*"):  # Left by a killed and repeated task.
            left.unlink()
        if out.exists():
            shutil.rmtree(out)
        directory.rename(out)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
