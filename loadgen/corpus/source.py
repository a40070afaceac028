"""Topics to create one by one: a corpus, a Parquet file or a list of names, read as a stream.

An admin API creates a partitioned topic once and not each of its partitions, so partitions come
together to one topic here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.corpus.corpus import open_corpus, parquet_rows
from loadgen.errors import UsageError
from proto.invalid_rows import EXPECTED_NAME, InvalidRows, shown
from proto.names import MAX_PARTITIONS, InvalidNameError, TopicName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import TypeAlias

    Properties: TypeAlias = Sequence[tuple[bytes, bytes]] | None

_PARQUET_MAGIC = b"PAR1"
_BATCH_ROWS = 10_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LOOKED_AT_BYTES = 8_000
"""Of a file, to see whether it is text."""


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
    return parquet_rows(path) if is_parquet(path) else None


def read_topics(path: Path, skipped: InvalidRows | None = None) -> Iterator[TopicToCreate]:
    """Return the topics of a corpus directory, a Parquet file or a text of one name a line.

    All names are looked at before the first topic is returned.

    Args:
        path: Where they are.
        skipped: Told of invalid ones, which are left out; without it they are refused.

    Raises:
        UsageError: It does not exist, holds no topic, or has invalid ones: says which.
    """
    invalid = InvalidRows(path) if skipped is None else skipped
    for _ in _topics(path, invalid):
        pass
    if invalid.count and skipped is None:
        raise UsageError(invalid.refusal)
    if invalid.count == invalid.rows:
        raise UsageError(str(invalid) if invalid.count else f"{path} holds no topic.")
    return _topics(path, InvalidRows(path))


def _topics(path: Path, invalid: InvalidRows) -> Iterator[TopicToCreate]:
    """Yield the valid topics of a source, and count the others."""
    if path.is_dir():
        for file in open_corpus(path).files:
            yield from _from_parquet(file, invalid, f"{file.name}, row")
    elif is_parquet(path):
        parquet_rows(path)
        yield from _from_parquet(path, invalid, "row")
    else:
        yield from _from_text(path, invalid)


def is_parquet(path: Path) -> bool:
    """Tell by its first bytes whether a file is Parquet."""
    try:
        with path.open("rb") as file:
            return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def _from_parquet(file: Path, invalid: InvalidRows, place: str) -> Iterator[TopicToCreate]:
    """Return the topics of one file; the row of partition 0 stands for all of its topic."""
    for number, (topic, partitions, properties) in enumerate(_rows(file), start=1):
        name = parsed_name(topic or b"", invalid, f"{place} {number}")
        if name is None or name.partition_index not in (-1, 0):
            continue
        try:
            pairs = {key.decode(): (value or b"").decode() for key, value in properties or ()}
        except UnicodeDecodeError:
            told = f"{place} {number}: the properties of {shown(topic)} are not UTF-8"
            invalid.add(1, [told])
            continue
        yield TopicToCreate(name.partitioned_name, partitions or 0, pairs)


def _rows(file: Path) -> Iterator[tuple[bytes, int | None, Properties]]:
    with pq.ParquetFile(file) as parquet:
        columns = ["topic", "partitions", "properties"]
        for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
            yield from _undecoded(batch)


def _undecoded(batch: pa.RecordBatch) -> Iterator[tuple[bytes, int | None, Properties]]:
    """Yield the rows of a batch with texts as bytes, for no reader of Parquet looks at them."""
    kinds = (pa.binary(), pa.int32(), pa.map_(pa.binary(), pa.binary()))
    columns = (column.cast(kind) for column, kind in zip(batch.columns, kinds, strict=True))
    return zip(*(column.to_pylist() for column in columns), strict=True)


def _from_text(path: Path, invalid: InvalidRows) -> Iterator[TopicToCreate]:
    """Return the topics of a list of names; blank lines and comments are none.

    The whole list is in memory as one entry a topic: the number of partitions of a topic is known
    only at the end.
    """
    partitions: dict[TopicName, int] = {}
    for name in names_of_text(path, invalid):
        base = name.partitioned_name
        partitions[base] = max(partitions.get(base, 0), name.partition_index + 1)
    for base, count in partitions.items():
        yield TopicToCreate(base, count)


def names_of_text(path: Path, invalid: InvalidRows) -> Iterator[TopicName]:
    """Yield the valid names of a text with one a line, and count the others.

    Raises:
        UsageError: It is no text.
    """
    require_text(path)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            text = line.removeprefix(_BYTE_ORDER_MARK).strip().strip(b'"')
            if text and not text.startswith(b"#"):
                name = parsed_name(text, invalid, f"line {number}")
                if name is not None:
                    yield name


def require_text(path: Path) -> None:
    """Refuse a file that begins like no text.

    Raises:
        UsageError: It does.
    """
    with path.open("rb") as file:
        if b"\0" in file.read(_LOOKED_AT_BYTES):
            raise UsageError(f"{path} is neither Parquet nor UTF-8 text.")


def parsed_name(text: bytes, invalid: InvalidRows, where: str) -> TopicName | None:
    """Return the topic name in ``text``; None for what is none, which is counted."""
    invalid.rows += 1
    try:
        return full_topic_name(text)
    except InvalidNameError as error:
        invalid.add(1, [f"{where}: {error}"])
        return None


def full_topic_name(text: bytes) -> TopicName:
    """Parse a full name.

    Raises:
        InvalidNameError: It is none, or that of a partition that no topic may have.
    """
    try:
        name = text.decode()
    except UnicodeDecodeError:
        raise InvalidNameError(f"{shown(text)} is not UTF-8") from None
    try:
        topic = TopicName.parse(name)
    except InvalidNameError:
        topic = None
    if topic is None or "://" not in name:
        raise InvalidNameError(f"{shown(name)} is not a full topic name; {EXPECTED_NAME}")
    if topic.partition_index >= MAX_PARTITIONS:
        raise InvalidNameError(
            f"{shown(name)} is partition {topic.partition_index}; "
            f"a topic has at most {MAX_PARTITIONS:,}"
        )
    return topic
