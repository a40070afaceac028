"""A corpus: topics as Parquet files, and the manifest that says what they hold.

The tasks of a job each write one file with whole namespaces, ordered by name, and hand back what
the manifest needs, computed from the rows while they are in memory.

A corpus appears at once: it is written beside its place and moved there when it is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.corpus.manifest import (
    MANIFEST_NAME,
    Manifest,
    make_manifest,
    read_manifest,
    write_manifest,
)
from loadgen.corpus.part_file import part_path, write_part_file
from loadgen.corpus.replacing import replacing
from loadgen.corpus.synthetic import TOPIC_SCHEMA, namespace_rows
from loadgen.corpus.topic_plan import TopicPlan, part_namespaces, plan_parts
from loadgen.errors import LoadgenError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.corpus.executors import Executor
    from loadgen.corpus.part_file import Entry


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
        parts: Most files; the rows do not depend on it.
        executor: What runs :func:`write_part` for every part, here or in Spark's tasks.

    Raises:
        UsageError: ``out`` holds something else than a corpus.
        LoadgenError: The files cannot be written, or the job lost a namespace.
    """
    with replacing(out) as directory:
        work = partial(write_part, plan, parts, directory)
        entries = executor(work, len(plan_parts(plan, parts)))
        manifest = make_manifest(plan.seed, plan.shape.to_json(), entries)
        if (manifest.topics, len(manifest.namespaces)) != (plan.topics, plan.namespaces):
            raise LoadgenError(
                f"The job handed back {manifest.topics} topics in {len(manifest.namespaces)} "
                f"namespaces instead of {plan.topics} in {plan.namespaces}."
            )
        write_manifest(manifest, directory)
    return Corpus(out, manifest, _part_files(out))


def write_part(plan: TopicPlan, parts: int, directory: Path, part: int) -> list[Entry]:
    """Write one of the files of a corpus and return the manifest entries of its namespaces."""
    namespaces = part_namespaces(plan, part, parts)
    rows = ((namespace.name, namespace_rows(plan, namespace)) for namespace in namespaces)
    return write_part_file(part_path(directory, part), rows)


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


def _part_files(directory: Path) -> tuple[Path, ...]:
    """Return the Parquet files of a corpus in the order of their namespaces."""
    return tuple(sorted(directory.glob("part-*.parquet")))
