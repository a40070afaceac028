"""One file of a corpus: whole namespaces, ordered by name, and what the manifest says of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import google_crc32c
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadgen.corpus.manifest import Listing, NamespaceEntry
from loadgen.corpus.synthetic import TOPIC_SCHEMA
from proto.topic_hash import format_hash, topics_hash

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import TypeAlias

    Entry: TypeAlias = tuple[str, NamespaceEntry]

ROW_GROUP_ROWS = 100_000
_PERSISTENT = "persistent://"


def part_path(directory: Path, part: int) -> Path:
    """Return the file of a part."""
    return directory / f"part-{part:05d}.parquet"


def write_part_file(target: Path, namespaces: Iterable[tuple[str, pa.RecordBatch]]) -> list[Entry]:
    """Write a file of namespaces, each with its rows in order, and return their manifest entries.

    Row groups hold whole namespaces while those are small. Memory is bounded by a row group and
    a namespace.
    """
    # A task that is tried again must not meet, or leave, half a file.
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    entries: list[Entry] = []
    pending: list[pa.RecordBatch] = []
    with pq.ParquetWriter(unfinished, TOPIC_SCHEMA, compression="zstd") as writer:
        for name, rows in namespaces:
            entries.append((name, namespace_entry(rows.column("topic"))))
            if pending and sum(map(len, pending)) + len(rows) > ROW_GROUP_ROWS:
                _flush(writer, pending)
            pending.append(rows)
        _flush(writer, pending)
    unfinished.replace(target)
    return entries


def namespace_entry(names: pa.Array) -> NamespaceEntry:
    """Return the manifest entry of a namespace's names, which are in the order of their bytes."""
    persistent = pc.starts_with(names, _PERSISTENT)
    of_all = _listing(names)
    if pc.all(persistent).as_py() is not False:
        return NamespaceEntry(*of_all)
    return NamespaceEntry(*of_all, Listing(*_listing(names.filter(persistent))))


def _listing(names: pa.Array) -> tuple[int, str, int]:
    """Return number, topics hash and length of names."""
    name_bytes = pc.sum(pc.binary_length(names)).as_py() or 0
    return len(names), _hash(names), name_bytes


def _hash(names: pa.Array) -> str:
    """Return the topics hash of sorted names; of ASCII ones Arrow joins the text itself."""
    if len(names) == 0 or not pc.all(pc.string_is_ascii(names)).as_py():
        return topics_hash(names.to_pylist())
    joined = pc.binary_join_element_wise(",", names, "")
    start, end = (int.from_bytes(_offset(joined, index), "little") for index in (0, len(joined)))
    text = joined.buffers()[2].slice(start + 1, end - start - 1)
    return format_hash(google_crc32c.value(memoryview(text).tobytes()))


def _offset(names: pa.StringArray, index: int) -> bytes:
    return bytes(memoryview(names.buffers()[1])[4 * (names.offset + index) :][:4])


def _flush(writer: Any, pending: list[pa.RecordBatch]) -> None:  # noqa: ANN401
    """Write the pending rows as a row group (more than one if they are too many)."""
    if pending:
        writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_ROWS)
        pending.clear()
