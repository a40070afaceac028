"""Reading of an operator's list of topics: a text file, a Parquet file or a folder of these.

The list is cut into pieces, one for each task. Arrow splits names of the usual form in bulk; other
names are parsed one by one by :mod:`proto.names`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadgen.errors import UsageError, reason_of
from loadgen.stored import readable
from proto.invalid_rows import EXPECTED_NAME, InvalidRows, shown
from proto.names import MAX_PARTITIONS, PARTITION_SEPARATOR, InvalidNameError, TopicName
from proto.parquet_folders import parquet_files, values_said
from proto.parquet_versions import TOPICS_VERSION, why_too_new

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

PIECE_BYTES = 32 * 1024 * 1024
_TEXTS = pa.map_(pa.string(), pa.string())
CHECKED = pa.schema(
    {name: pa.string() for name in ("namespace", "topic", "base")}
    | {"index": pa.int32(), "partitions": pa.int32(), "properties": _TEXTS}
)
_READ = {
    "topic": pa.binary(),
    "partitions": pa.int32(),
    "properties": pa.map_(pa.binary(), pa.binary()),
}
"""Schema of unchecked rows, with texts as bytes.

The topic is null on a line without a name, other columns if the list does not state them.
"""
_STRINGS = (pa.string(), pa.large_string())
_PARQUET_MAGIC = b"PAR1"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LOOKED_AT_BYTES = 8_000
"""First bytes of a file that decide whether the file is text."""
_BATCH_ROWS = 50_000
# ASCII without spaces; all other names are parsed one by one.
_USUAL = r"^(?:non-)?persistent://(?P<namespace>[-=:.\w]+/[-=:.\w]+)/[!-.0-~]+$"
_PARTITION = rf"^(?P<base>.*){PARTITION_SEPARATOR}(?P<index>0|[1-9][0-9]{{0,4}})$"
_COUNT = re.compile(r"[0-9]{1,9}")
_LARGE_NUMBER = rf"{PARTITION_SEPARATOR}[0-9]{{6,}}$"


@dataclass(frozen=True)
class Piece:
    """A part of a list for one task: some lines of a text file, or a row group of a Parquet file.

    Attributes:
        place: The word before a row's number in error sentences, such as ``line``.
        start: Offset of the piece's first byte, or number of its row group.
        end: Offset after the piece's last byte, or number of the next row group.
        rows: Number of rows, including blank lines and comments.
        first: The number of the first row in the file.
        said: Values of columns that are stated in the names of the file's folders, by column.
    """

    file: Path
    parquet: bool
    place: str
    start: int
    end: int
    rows: int
    first: int
    said: Mapping[str, str | None] = field(default_factory=dict)


def rows_of(pieces: Iterable[Piece], invalid: InvalidRows) -> Iterator[pa.Table]:
    """Yield the valid topics in pieces of a list, as tables with the schema ``CHECKED``.

    Invalid topics are counted in ``invalid``.

    Raises:
        UsageError: A piece cannot be read.
    """
    for piece in pieces:
        for first, batch in batches_of(piece):
            rows, named, wrong = checked(batch, first)
            invalid.rows += named
            invalid.add(len(wrong), (f"{piece.place} {number}: {said}" for number, said in wrong))
            yield rows


def with_tenants(rows: pa.Table) -> pa.Table:
    """Convert checked rows to the schema of a corpus, which also has a column for the tenant."""
    from loadgen.topics.rows import TOPIC_SCHEMA

    tenants = pc.list_element(pc.split_pattern(rows["namespace"], "/", max_splits=1), 0)
    columns = [tenants, *(rows[name] for name in TOPIC_SCHEMA.names[1:])]
    return pa.Table.from_arrays(columns, schema=TOPIC_SCHEMA)


def require_topics(path: Path, invalid: InvalidRows, *, skip_invalid: bool) -> None:
    """Check that a list has topics and, unless ``skip_invalid``, that none is invalid.

    Raises:
        UsageError: The list has no topics, or invalid topics.
    """
    if invalid.count and not skip_invalid:
        raise UsageError(invalid.refusal)
    if invalid.count == invalid.rows:
        raise UsageError(str(invalid) if invalid.count else f"{path} holds no topic.")


# -- Pieces ---------------------------------------------------------------------------------------


def is_parquet(path: Path) -> bool:
    """Return True if a file is a Parquet file, as its first bytes show."""
    return _beginning(path).startswith(_PARQUET_MAGIC)


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LOOKED_AT_BYTES)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}.") from error


def pieces_of(path: Path) -> list[Piece]:
    """Divide a text file, a Parquet file or a folder of ``*.parquet`` into pieces for tasks.

    Raises:
        UsageError: The path cannot be read, or is not such a file or folder.
    """
    files = parquet_files(path) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{path} is a folder without Parquet files (*.parquet).")
    prefix = "{}, " if path.is_dir() else ""
    return [
        one
        for file in files
        for one in _pieces(file, prefix.format(file.relative_to(path)), _said(path, file))
    ]


def _said(path: Path, file: Path) -> dict[str, str | None]:
    said = {name: text for name, text in values_said(path, file).items() if name in _READ}
    partitions = said.get("partitions")
    if partitions is not None and not _COUNT.fullmatch(partitions):
        wrong = f"{shown(partitions)} is no number of partitions, as its folder says."
        raise UsageError(f"{file}: {wrong}")
    return said


def _pieces(file: Path, prefix: str, said: Mapping[str, str | None]) -> Iterator[Piece]:
    first = 1
    if is_parquet(file):
        with opened(file) as parquet:
            columns, groups = parquet.schema_arrow, parquet.metadata
        texts = {each.name for each in columns if each.type in _STRINGS}
        if "topic" not in texts | said.keys():
            raise UsageError(f"{file} has no column `topic` of text.")
        for group in range(groups.num_row_groups):
            rows = groups.row_group(group).num_rows
            yield Piece(file, True, f"{prefix}row", group, group + 1, rows, first, said)
            first += rows
        return
    if b"\0" in _beginning(file):
        raise UsageError(f"{file} is neither Parquet nor UTF-8 text.")
    with file.open("rb") as text:
        while some := text.read(PIECE_BYTES):
            some += text.readline()
            end, rows = text.tell(), some.count(b"\n")
            yield Piece(file, False, f"{prefix}line", end - len(some), end, rows, first)
            first += rows


def opened(file: Path) -> pq.ParquetFile:
    """Open a Parquet file of topics.

    Raises:
        UsageError: The file is not Parquet, or its topics were written by a newer version.
    """
    try:
        found = pq.ParquetFile(readable(file))
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{file} cannot be read as Parquet: {reason_of(error)}.") from error
    if why := why_too_new(found.metadata.metadata, TOPICS_VERSION):
        raise UsageError(f"{file} {why}.")
    return found


def batches_of(piece: Piece) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the lines or rows of a piece in batches, each with the number of its first row.

    Raises:
        UsageError: The piece cannot be read.
    """
    first = piece.first
    try:
        for columns in _row_batches(piece) if piece.parquet else _line_batches(piece):
            nothing = pa.nulls(len(columns["topic"]))
            read = {name: columns.get(name, nothing).cast(kind) for name, kind in _READ.items()}
            yield first, pa.record_batch(read)
            first += len(nothing)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{piece.file} cannot be read: {reason_of(error)}.") from error


def _line_batches(piece: Piece) -> Iterator[dict[str, pa.Array]]:
    with piece.file.open("rb") as file:
        file.seek(piece.start)
        lines = BytesIO(file.read(piece.end - piece.start))
    while names := [_name_in(line) for line in islice(lines, _BATCH_ROWS)]:
        yield {"topic": pa.array(names, pa.binary())}


def _name_in(line: bytes) -> bytes | None:
    """Return the topic name on a line of a list; None for a blank line or a comment."""
    text = line.removeprefix(_BYTE_ORDER_MARK).strip().strip(b'"')
    return None if not text or text.startswith(b"#") else text


def _row_batches(piece: Piece) -> Iterator[dict[str, pa.Array]]:
    with pq.ParquetFile(readable(piece.file)) as parquet:
        there = {*parquet.schema_arrow.names} - piece.said.keys()
        columns = [name for name in _READ if name in there]
        for batch in parquet.iter_batches(_BATCH_ROWS, [piece.start], columns):
            read = dict(zip(columns, batch.columns, strict=True))
            for name, text in piece.said.items():
                read[name] = pa.repeat(pa.scalar(text, pa.string()), len(batch))
            read["topic"] = pc.fill_null(read["topic"].cast(pa.binary()), b"")
            yield read


# -- Names ----------------------------------------------------------------------------------------


def checked(batch: pa.RecordBatch, first: int) -> tuple[pa.Table, int, list[tuple[int, str]]]:
    """Check the topic names in a batch of rows, and return the valid ones.

    A topic with a number of partitions is replaced by its partitions.

    Returns a table of the valid topics with the schema ``CHECKED``, in no order; then the number of
    names, including invalid ones; then the row number and the fault of each invalid name.

    Args:
        batch: A batch of rows from :func:`batches_of`.
        first: The number of the batch's first row.
    """
    usual = _usual(batch)
    named = pc.is_valid(batch["topic"])
    odd: list[dict[str, Any]] = []
    invalid: list[tuple[int, str]] = []
    for place in pc.indices_nonzero(pc.and_not(named, usual)).to_pylist():
        try:
            odd += _rows_of(**batch.slice(place, 1).to_pylist()[0])
        except InvalidNameError as error:
            invalid.append((first + place, str(error)))
    tables = [_taken_apart(batch.filter(usual)), pa.Table.from_pylist(odd, schema=CHECKED)]
    return pa.concat_tables(tables), pc.sum(named).as_py() or 0, invalid


def _usual(batch: pa.RecordBatch) -> pa.Array:
    """Return a mask of the rows of a batch whose names Arrow can parse in bulk."""
    names, partitions, properties = batch.columns
    usual = pc.match_substring_regex(names, _USUAL)
    large = pc.match_substring_regex(names, _LARGE_NUMBER)
    single = pc.match_substring_regex(names, _PARTITION)
    expanded = pc.and_not(pc.not_equal(pc.fill_null(partitions, 0), 0), single)
    fits = pc.and_not(usual, pc.or_(large, expanded))
    try:
        _texts(properties)
    except pa.ArrowInvalid:  # some names are not UTF-8
        fits = pc.and_(fits, pc.is_null(properties))
    return pc.fill_null(fits, False)


def _taken_apart(batch: pa.RecordBatch) -> pa.Table:
    names = batch["topic"].cast(pa.string())
    partition = pc.extract_regex(names, _PARTITION)
    columns = {
        "namespace": pc.struct_field(pc.extract_regex(names, _USUAL), "namespace"),
        "topic": names,
        "base": pc.coalesce(pc.struct_field(partition, "base"), names),
        "index": pc.fill_null(pc.struct_field(partition, "index").cast(pa.int32()), -1),
        "partitions": batch["partitions"],
        "properties": _texts(batch["properties"]),
    }
    return pa.table(columns, schema=CHECKED)


def _texts(properties: pa.Array) -> pa.Array:
    """Convert topic properties from bytes to text; missing properties become empty maps."""
    if properties.null_count == len(properties):
        return pa.array([[]] * len(properties), _TEXTS)
    return properties.cast(_TEXTS)


def _rows_of(
    topic: bytes, partitions: int | None, properties: list[tuple[bytes, bytes | None]] | None
) -> Iterator[dict[str, Any]]:
    """Yield the row of a topic, or a row for each partition if the list states their number.

    Raises:
        InvalidNameError: The name cannot be the name of a topic.
    """
    name = _full_topic_name(topic)
    try:
        pairs = [(key.decode(), (value or b"").decode()) for key, value in properties or ()]
    except UnicodeDecodeError:
        raise InvalidNameError(f"the properties of {name} are not UTF-8") from None
    if not 0 <= (partitions or 0) <= MAX_PARTITIONS:
        raise InvalidNameError(f"{name} cannot have {partitions} partitions")
    row: dict[str, Any] = {"namespace": str(name.namespace), "base": str(name.partitioned_name)}
    row |= {"partitions": partitions, "properties": pairs}
    if partitions and name.partition_index < 0:
        for index in range(partitions):
            yield row | {"topic": f"{name}{PARTITION_SEPARATOR}{index}", "index": index}
    else:
        yield row | {"topic": str(name), "index": name.partition_index}


def _full_topic_name(text: bytes) -> TopicName:
    """Parse a full topic name, such as ``persistent://tenant/namespace/topic``.

    Raises:
        InvalidNameError: The text is not a name, or is the name of a partition that may not exist.
    """
    name = ""
    try:
        name = text.decode()
        topic = TopicName.parse(name) if "://" in name else None
    except UnicodeDecodeError:
        raise InvalidNameError(f"{shown(text)} is not UTF-8") from None
    except InvalidNameError:
        topic = None
    if topic is None:
        raise InvalidNameError(f"{shown(name)} is not a full topic name; {EXPECTED_NAME}")
    if (index := topic.partition_index) >= MAX_PARTITIONS:
        most = f"a topic has at most {MAX_PARTITIONS:,}"
        raise InvalidNameError(f"{shown(name)} is partition {index}; {most}")
    return topic
