"""A corpus: topics as Parquet files, and the manifest that says what they hold.

The tasks of a job each write one file with whole namespaces, ordered by name, and hand back what
the manifest needs, computed from the rows while they are in memory.
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
"""Columns without which a file is not topics; others that it lacks are null."""
_FOOTERS_AT_ONCE = 16
SCRATCH = ".scratch"
_LEFT = re.compile(rf"part-\d+\.parquet|\{SCRATCH}")
"""Names in a folder of a store whose corpus was interrupted."""


@dataclass(frozen=True)
class Corpus:
    """A corpus on disk."""

    directory: Path
    manifest: Manifest

    @property
    def files(self) -> tuple[Path, ...]:
        """The Parquet files in the order of their namespaces."""
        return tuple(sorted(self.directory.glob("part-*.parquet")))

    @property
    def file_bytes(self) -> int:
        """Size of the Parquet files together."""
        return sum(file.stat().st_size for file in self.files)


def write_corpus(plan: TopicPlan, out: Path, parts: int, executor: Executor) -> Corpus:
    """Make the topics of a plan and put them at ``out``, where an older corpus is replaced.

    Args:
        plan: What to make.
        out: The directory of the corpus.
        parts: Most files; the rows do not depend on it.
        executor: What runs :func:`write_part` for every part, here or in Spark's tasks.

    Raises:
        UsageError: ``out`` holds something else than a corpus.
        LoadgenError: The files cannot be written, or the job lost a namespace.
    """
    with replacing(out) as directory:
        work = partial(write_part, plan, parts, directory)
        entries = executor(work, len(plan_parts(plan, parts)))
        manifest = write_manifest(directory, plan.seed, asdict(plan.shape), entries)
        topics, namespaces = manifest.topics, len(manifest.namespaces)
        if (topics, namespaces) != (plan.topics, plan.namespaces):
            told = f"The job handed back {topics} topics in {namespaces} namespaces"
            raise LoadgenError(f"{told} instead of {plan.topics} in {plan.namespaces}.")
    return Corpus(out, manifest)


def write_part(plan: TopicPlan, parts: int, directory: Path, part: int) -> list[Entry]:
    """Write one of the files of a corpus and return the manifest entries of its namespaces."""
    namespaces = plan_parts(plan, parts)[part]
    return write_part_file(directory, part, (namespace_rows(plan, one) for one in namespaces))


def write_part_file(directory: Path, part: int, namespaces: Iterable[pa.Table]) -> list[Entry]:
    """Write a file of namespaces, the rows of each in order, and return their manifest entries.

    Row groups hold whole namespaces while those are small. Memory is bounded by a row group and
    a namespace.
    """
    entries: list[Entry] = []
    pending: list[pa.Table] = []

    def flush() -> None:
        if pending:
            writer.write_table(pa.concat_tables(pending), row_group_size=ROW_GROUP_ROWS)
            pending.clear()

    # A task that is tried again must not meet, or leave, half a file.
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
    """Return the corpus in a directory after checking that it is one, from its footers alone.

    Raises:
        UsageError: It is not; the sentence says what is missing or different.
    """
    if not directory.is_dir():
        how = f"Make a corpus with: loadgen topics --out {directory}"
        raise UsageError(f"{directory} is not a directory. {how}")
    corpus = Corpus(directory, read_manifest(directory))
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as threads:  # in a store each is a call or two
        rows = sum(threads.map(parquet_rows, corpus.files))
    if rows != (topics := corpus.manifest.topics):
        told = f"{rows} topics, but its {manifest_path(directory).name} says {topics}"
        raise UsageError(f"{directory} holds {told}; make the corpus again with: loadgen topics")
    return corpus


def parquet_rows(file: Path) -> int:
    """Return the number of rows of a Parquet file that has the columns of a corpus.

    Raises:
        UsageError: It is no Parquet, or has other columns.
    """
    with opened(file) as parquet:
        found = {each.name: each.type for each in parquet.schema_arrow}
        for wanted in TOPIC_SCHEMA:
            missing = "missing" if wanted.name in _NEEDED else wanted.type
            if (kind := found.get(wanted.name, missing)) != wanted.type:
                told = f"column {wanted.name} is {kind}, not {wanted.type}"
                raise UsageError(f"{file} is not topics: {told}.")
        return int(parquet.metadata.num_rows)


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Hand out a directory beside ``out`` that takes its place if the block succeeds.

    A store cannot rename: there it is ``out`` itself, which is no corpus from now on until its
    manifest is written.

    Raises:
        UsageError: ``out`` holds something else than a corpus.
        LoadgenError: It cannot be written.
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
        for left in directory.glob(".part-*"):  # By a task that was killed, and done again.
            left.unlink()
        if out.exists():
            shutil.rmtree(out)
        directory.rename(out)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
