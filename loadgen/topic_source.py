"""Topics to create one by one: a corpus, a Parquet file or a list of names, read as a stream.

An admin API creates a partitioned topic once and not each of its partitions, so partitions come
together to one topic here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from loadgen.corpus import open_corpus, parquet_rows
from loadgen.failures import UsageError
from proto.names import InvalidNameError, TopicName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_PARQUET_MAGIC = b"PAR1"
_BATCH_ROWS = 10_000


@dataclass(frozen=True)
class TopicToCreate:
    """A topic as an admin API creates it.

    Attributes:
        name: Without partition.
        partitions: Number of partitions; 0 for a topic without.
    """

    name: TopicName
    partitions: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)


def count_names(path: Path) -> int | None:
    """Return how many names a source lists; ``None`` where only reading it would tell.

    Raises:
        UsageError: It does not exist or is not what it seems.
    """
    if path.is_dir():
        return open_corpus(path).manifest.topics
    return parquet_rows(path) if _is_parquet(path) else None


def read_topics(path: Path) -> Iterator[TopicToCreate]:
    """Return the topics of a corpus directory, a Parquet file or a text of one name a line.

    Raises:
        UsageError: It does not exist, or a name in it is no topic name.
    """
    if path.is_dir():
        for file in open_corpus(path).files:
            yield from _from_parquet(file)
    elif _is_parquet(path):
        parquet_rows(path)
        yield from _from_parquet(path)
    else:
        yield from _from_text(path)


def _is_parquet(path: Path) -> bool:
    """Tell by its first bytes whether a file is Parquet."""
    try:
        with path.open("rb") as file:
            return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def _from_parquet(file: Path) -> Iterator[TopicToCreate]:
    """Return the topics of one file; the row of partition 0 stands for all of its topic."""
    columns = ["topic", "partitions", "properties"]
    with pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
            for row in batch.to_pylist():
                name = _parsed(row["topic"], str(file))
                if name.partition_index in (-1, 0):
                    yield TopicToCreate(
                        name.partitioned_name, row["partitions"] or 0, dict(row["properties"] or ())
                    )


def _from_text(path: Path) -> Iterator[TopicToCreate]:
    """Return the topics of a list of names.

    The whole list is in memory as one entry a topic: the number of partitions of a topic is known
    only at the end.
    """
    partitions: dict[TopicName, int] = {}
    with path.open(encoding="utf-8", errors="strict") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                if text := line.strip():
                    name = _parsed(text, f"line {number} of {path}")
                    base = name.partitioned_name
                    partitions[base] = max(partitions.get(base, 0), name.partition_index + 1)
        except UnicodeDecodeError as error:
            raise UsageError(f"{path} is neither Parquet nor UTF-8 text.") from error
    for base, count in partitions.items():
        yield TopicToCreate(base, count)


def _parsed(text: str, where: str) -> TopicName:
    """Return the topic name in ``text``."""
    if "://" not in text:
        raise UsageError(
            f"{where} says {text!r}, which is no full topic name (persistent://tenant/namespace/x)."
        )
    try:
        return TopicName.parse(text)
    except InvalidNameError as error:
        raise UsageError(f"{where}: {error}.") from error
