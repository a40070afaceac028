"""Conversion of an operator's list of topics, in any order and of any length, to a corpus.

It takes two rounds, each with a task for each part. The first round reads a piece of the list,
checks every name, and distributes the rows to buckets by namespace. The second round sorts a bucket
and writes a file of the corpus. Memory is bounded by a piece and a bucket, with any executor.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadgen.errors import LoadgenError, UsageError
from loadgen.stored import StoredPath, lies_in, readable, written_whole
from loadgen.topics.corpus import SCRATCH, Corpus, replacing, write_part_file
from loadgen.topics.lists import CHECKED, pieces_of, require_topics, rows_of, with_tenants
from loadgen.topics.manifest import write_manifest
from loadgen.topics.plan import MOST_NAME_BYTES
from loadgen.units import format_bytes
from proto.invalid_rows import InvalidRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from loadgen.topics.executors import Executor
    from loadgen.topics.lists import Piece
    from loadgen.topics.manifest import Entry

BUCKET_ROWS = 500_000
"""Topics sorted together in memory, in a bucket of whole namespaces."""
MOST_BUCKETS = 1_000


@dataclass(frozen=True)
class ListedCorpus:
    """A corpus made from a list of topics, with the number of rows that were left out."""

    corpus: Corpus
    duplicates: int
    invalid: InvalidRows


def write_listed_corpus(
    path: Path, out: Path, executors: Sequence[Executor], *, skip_invalid: bool = False
) -> ListedCorpus:
    """Convert a list of topics to a corpus in ``out``, replacing an older one.

    Args:
        path: A text file with one name per line, a Parquet file with a column ``topic``, or a
            folder of such files.
        out: The directory of the corpus.
        executors: The executors that run the tasks of the first and of the second round.
        skip_invalid: Leave invalid names out; otherwise they are errors.

    Raises:
        UsageError: The list cannot be read, is in ``out``, has no topic, or has invalid topics.
        LoadgenError: The files cannot be written.
    """
    pieces = pieces_of(path.resolve())  # tasks may run in another folder
    if any(lies_in(piece.file, out) for piece in pieces):
        raise UsageError(f"--out {out} would replace the list {path}: name another folder.")
    buckets = max(1, min(MOST_BUCKETS, sum(piece.rows for piece in pieces) // BUCKET_ROWS))
    with replacing(out) as directory:
        scratch = directory / SCRATCH
        dealt = executors[0](partial(deal_piece, path, pieces, buckets, scratch), len(pieces))
        invalid = InvalidRows(path)
        for _, found in sorted(dealt, key=itemgetter(0)):
            invalid.include(found)
        require_topics(path, invalid, skip_invalid=skip_invalid)
        written = list(executors[1](partial(write_bucket, scratch, directory), buckets))
        if isinstance(scratch, StoredPath):
            scratch.remove()
        else:
            shutil.rmtree(scratch)
        duplicates = sum(twice for _, twice in written)
        origin = {"list": path.name, "duplicates": duplicates, "invalid": invalid.count}
        entries = (entry for some, _ in written for entry in some)
        manifest = write_manifest(directory, None, origin, entries)
    return ListedCorpus(Corpus(out, manifest), duplicates, invalid)


def deal_piece(
    path: Path, pieces: Sequence[Piece], buckets: int, scratch: Path, number: int
) -> list[tuple[int, InvalidRows]]:
    """Read one piece of a list of topics, and write its rows to temporary files by namespace."""
    invalid = InvalidRows(path)
    rows = pa.concat_tables([CHECKED.empty_table(), *rows_of([pieces[number]], invalid)])
    namespaces = rows.column("namespace").combine_chunks().dictionary_encode()
    names = namespaces.dictionary.to_pylist()
    bucket_of = np.array([google_crc32c.value(name.encode()) % buckets for name in names], int)
    place = bucket_of[namespaces.indices.to_numpy()]
    for bucket in np.unique(place):
        folder = scratch / f"{bucket:05d}"
        folder.mkdir(parents=True, exist_ok=True)
        with written_whole(folder / f"{number:05d}.parquet") as file:
            pq.write_table(rows.filter(pa.array(place == bucket)), file, compression="lz4")
    return [(number, invalid)]


def write_bucket(scratch: Path, directory: Path, bucket: int) -> list[tuple[list[Entry], int]]:
    """Sort the temporary rows of some namespaces, and write them as a file of the corpus.

    Returns the manifest entries of these namespaces, and the number of duplicate names.
    """
    files = sorted((scratch / f"{bucket:05d}").glob("*.parquet"))
    if not files:
        return []
    table = pa.concat_tables(pq.read_table(readable(file)) for file in files)
    size = pc.sum(pc.binary_length(table["topic"])).as_py()
    if size > MOST_NAME_BYTES:
        names = ", ".join(table["namespace"].unique().to_pylist()[:3])
        raise LoadgenError(
            f"names of {format_bytes(size)} in namespaces such as {names} cannot be sorted "
            f"together, at most {format_bytes(MOST_NAME_BYTES)} can: give them in several lists"
        )
    table = table.combine_chunks()
    order = pc.sort_indices(table, [("namespace", "ascending"), ("topic", "ascending")])
    keys = table.column("topic").take(order)
    first = np.ones(len(keys), dtype=bool)
    first[1:] = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1)).to_numpy()
    kept = table.take(order.filter(pa.array(first)))
    entries = write_part_file(directory, bucket, _namespaces(_with_partitions(kept)))
    return [(entries, len(table) - len(kept))]


def _with_partitions(rows: pa.Table) -> pa.Table:
    """Fill in partition counts that the list does not state, from the last listed partition."""
    counted = rows.group_by("base").aggregate([("index", "max")])
    places = pc.index_in(rows.column("base"), counted.column("base"))
    listed = pc.add(counted.column("index_max").take(places), pa.scalar(1, pa.int32()))
    partitions = pc.coalesce(rows.column("partitions"), listed)
    return rows.set_column(rows.schema.get_field_index("partitions"), "partitions", partitions)


def _namespaces(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of one namespace after the other; all rows must be sorted."""
    names, whole = rows.column("namespace").combine_chunks(), with_tenants(rows)
    ends = [0, *pc.run_end_encode(names).run_ends.to_pylist()]
    for start, end in pairwise(ends):
        yield whole.slice(start, end - start)
