"""The pieces of a list of topics that tasks read one by one: parts of a text, or row groups."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadgen.corpus.source import is_parquet, require_text
from loadgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROPERTIES = pa.map_(pa.binary(), pa.binary())
PIECE_BYTES = 32 * 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BATCH_ROWS = 50_000
_BYTES_PER_LINE = 80


@dataclass(frozen=True)
class Piece:
    """A part of a list: the lines that begin in a range of bytes, or one row group.

    Attributes:
        start: The first byte, or the number of the row group.
        end: The byte behind the last, or the row group behind it.
        rows: How many topics it has, for texts a guess.
    """

    file: Path
    parquet: bool
    start: int
    end: int
    rows: int


@dataclass(frozen=True)
class Batch:
    """Some lines, or rows, of a piece: parallel columns.

    Attributes:
        first: The number of the first in its piece, from 1.
        names: As bytes, for no reader has looked at them; null for a line that names nothing.
        partitions: Null where the list does not say.
        properties: Null where the list has none.
    """

    first: int
    names: pa.Array
    partitions: pa.Array
    properties: pa.Array


def pieces_of(path: Path, piece_bytes: int = PIECE_BYTES) -> list[Piece]:
    """Return the pieces of a text, a Parquet file, or a folder of Parquet files.

    Raises:
        UsageError: It cannot be read, or is none of these.
    """
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"--from {path} is a folder without Parquet files (*.parquet).")
    return [piece for file in files for piece in _pieces(file, piece_bytes)]


def _pieces(file: Path, piece_bytes: int) -> Iterator[Piece]:
    if is_parquet(file):
        for group, rows in enumerate(_row_groups(file)):
            yield Piece(file, True, group, group + 1, rows)
        return
    require_text(file)
    size = file.stat().st_size
    for start in range(0, size, piece_bytes):
        end = min(size, start + piece_bytes)
        yield Piece(file, False, start, end, (end - start) // _BYTES_PER_LINE)


def _row_groups(file: Path) -> list[int]:
    """Return the sizes of the row groups of a Parquet file that has a column of topics."""
    try:
        with pq.ParquetFile(file) as parquet:
            schema = parquet.schema_arrow
            index = schema.get_field_index("topic")
            if index < 0 or schema.field(index).type not in (pa.string(), pa.large_string()):
                raise UsageError(f"--from {file} has no column `topic` of text.")
            groups = range(parquet.metadata.num_row_groups)
            return [int(parquet.metadata.row_group(group).num_rows) for group in groups]
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"--from {file} cannot be read as Parquet: {error}.") from error


def batches_of(piece: Piece) -> Iterator[Batch]:
    """Yield all lines, or rows, of a piece."""
    return _row_batches(piece) if piece.parquet else _line_batches(piece)


def _line_batches(piece: Piece) -> Iterator[Batch]:
    lines = _lines(piece)
    first = 1
    while names := [_name_in(line) for line in islice(lines, _BATCH_ROWS)]:
        nothing = pa.nulls(len(names), pa.int32()), pa.nulls(len(names), PROPERTIES)
        yield Batch(first, pa.array(names, pa.binary()), *nothing)
        first += len(names)


def _lines(piece: Piece) -> Iterator[bytes]:
    with piece.file.open("rb") as file:
        if piece.start:
            file.seek(piece.start - 1)
            file.readline()  # a line belongs to the piece that it begins in
        at = file.tell()
        for line in file:
            if at >= piece.end:
                return
            at += len(line)
            yield line


def _name_in(line: bytes) -> bytes | None:
    """Return the name on a line; None for a blank one and for a comment."""
    text = line.removeprefix(_BYTE_ORDER_MARK).strip().strip(b'"')
    return None if not text or text.startswith(b"#") else text


def _row_batches(piece: Piece) -> Iterator[Batch]:
    with pq.ParquetFile(piece.file) as parquet:
        known = parquet.schema_arrow.names
        columns = [name for name in ("topic", "partitions", "properties") if name in known]
        first = 1
        for batch in parquet.iter_batches(_BATCH_ROWS, [piece.start], columns):
            names = pc.fill_null(batch.column("topic").cast(pa.binary()), b"")
            others = (
                batch.column(name).cast(kind) if name in known else pa.nulls(len(batch), kind)
                for name, kind in (("partitions", pa.int32()), ("properties", PROPERTIES))
            )
            yield Batch(first, names, *others)
            first += len(batch)
