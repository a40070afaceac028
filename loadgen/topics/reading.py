"""Reading of topics from a corpus or a list, to create them or to count them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from loadgen.errors import UsageError
from loadgen.topics.corpus import open_corpus, parquet_rows
from loadgen.topics.lists import is_parquet, pieces_of, require_topics, rows_of
from proto.invalid_rows import InvalidRows
from proto.names import TopicName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_NAMESPACES_SHOWN = 3


@dataclass(frozen=True)
class TopicToCreate:
    """A topic in the form in which the admin REST API creates it.

    Attributes:
        name: Name without partition, because a partitioned topic is created once as a whole.
        partitions: Number of partitions; 0 for a non-partitioned topic.
    """

    name: TopicName
    partitions: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)


def count_names(path: Path) -> int | None:
    """Return the number of topic names in a corpus or list.

    The number is None for a text file, which would have to be read.

    Raises:
        UsageError: The source does not exist or is invalid.
    """
    if path.is_dir():
        return open_corpus(path).manifest.topics
    return parquet_rows(path) if is_parquet(path) else None


def read_topics(path: Path, skipped: InvalidRows | None = None) -> Iterator[TopicToCreate]:
    """Return the topics in a corpus, a Parquet file, or a text file with a name on each line.

    All names are checked before the first topic is returned.

    Args:
        path: The corpus, Parquet file or text file.
        skipped: Called with the invalid names, which are left out; by default they are errors.

    Raises:
        UsageError: The source does not exist, has no topic, or has invalid topics; the message
            names them.
    """
    count_names(path)
    invalid = InvalidRows(path) if skipped is None else skipped
    for _ in rows_of(pieces_of(path), invalid):
        pass
    require_topics(path, invalid, skip_invalid=skipped is not None)
    return _topics(path)


def _topics(path: Path) -> Iterator[TopicToCreate]:
    """Yield the valid topics in a corpus or list, in the form in which the REST API creates them.

    Partitioned topics without a stated number of partitions come last, and stay in memory until
    then: their number is one more than the last listed partition.
    """
    listed: dict[str, int] = {}
    for rows in rows_of(pieces_of(path), InvalidRows(path)):
        columns = rows.select(["base", "index", "partitions", "properties"]).columns
        values = (column.to_pylist() for column in columns)
        for base, index, partitions, pairs in zip(*values, strict=True):
            if partitions is None:
                listed[base] = max(listed.get(base, 0), index + 1)
            elif index <= 0:  # partition 0 stands for the whole topic
                yield TopicToCreate(TopicName.parse(base), partitions, dict(pairs or ()))
    for base, count in listed.items():
        yield TopicToCreate(TopicName.parse(base), count)


@dataclass
class NamespaceSize:
    """The number of persistent topics in a namespace, and the total length of their names."""

    topics: int = 0
    name_bytes: int = 0


def read_own_topics(path: Path, names: Sequence[str] = ()) -> dict[str, NamespaceSize]:
    """Count the persistent topics of each namespace in a text, a Parquet file or a folder.

    Args:
        path: The text file, Parquet file or folder.
        names: The names of the namespaces to count; empty: all.

    Raises:
        UsageError: The source cannot be read, has invalid topics, or has no persistent topic at all
            or in a namespace.
    """
    sizes: dict[str, NamespaceSize] = {}
    invalid = InvalidRows(path)
    for rows in rows_of(pieces_of(path), invalid):
        found = rows.filter(pc.starts_with(rows["topic"], "persistent://"))
        lengths = found.append_column("bytes", pc.binary_length(found["topic"]))
        counted = lengths.group_by("namespace").aggregate([("bytes", "count"), ("bytes", "sum")])
        values = (column.to_pylist() for column in counted.columns)
        for name, topics, name_bytes in zip(*values, strict=True):
            size = sizes.setdefault(name, NamespaceSize())
            size.topics += topics
            size.name_bytes += name_bytes
    if invalid.count:
        raise UsageError(f"--topics {invalid}\ncorrect the file: one full topic name a line")
    if not sizes:
        rule = "one full name a line, such as persistent://my-tenant/my-namespace/my-topic"
        raise UsageError(f"--topics {path} names no persistent topic: {rule}")
    if missing := [name for name in names if name not in sizes]:
        by_size = sorted(sizes, key=lambda name: (-sizes[name].topics, name))
        said = f"--namespace {missing[0][:100]} has no persistent topic in {path}"
        known = ", ".join(by_size[:_NAMESPACES_SHOWN])
        raise UsageError(f"{said}; its largest namespaces are: {known}")
    return {name: sizes[name] for name in names or sizes}
