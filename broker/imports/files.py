"""Readers of topic files: Parquet, or text with one full topic name per line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker.imports.rows import TopicRows
from broker.stores.property_rows import PROPERTIES_TYPE
from proto.parquet_folders import parquet_files, values_said
from proto.parquet_versions import TOPICS_VERSION, why_too_new

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO, TypeAlias

    FileStates: TypeAlias = Sequence[tuple[int, int, int]]

ROWS_PER_BATCH = 32_768
"""The number of rows of a batch from Parquet; with derived columns a batch fits into a processor's
cache."""
TEXT_BYTES_PER_BATCH = 8_000_000
REQUIRED_COLUMNS = {"namespace": pa.string(), "topic": pa.string()}
COLUMNS = {**REQUIRED_COLUMNS, "properties": PROPERTIES_TYPE}
_PARQUET_MAGIC = b"PAR1"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""UTF-8's byte order mark, written by editors on Windows."""
_LOOKED_AT_BYTES = 8_000
_BEHIND_ALL = chr(0x10FFFF)
"""A text that sorts after every namespace, as namespaces are ASCII."""


class ImportFailedError(Exception):
    """A file of topics cannot be imported.

    The text is one sentence, or one for each invalid line.
    """


def files_of(path: Path) -> list[Path]:
    """Return the files to import at a path: the file itself, or the Parquet files in a folder.

    Raises:
        ImportFailedError: The files are missing or unreadable.
    """
    try:
        if not path.exists():
            raise ImportFailedError(f"{path} does not exist")
        if not path.is_dir():
            return [path]
        files = parquet_files(path)
    except OSError as error:
        raise unreadable(path, error) from None
    if not files:
        raise ImportFailedError(f"{path} holds no *.parquet file")
    return files


def state_of(path: Path) -> FileStates:
    """Return inode, size and modification time of the files at a path, to detect later writes.

    Raises:
        ImportFailedError: The files are missing or unreadable.
    """
    try:
        states = [file.stat() for file in files_of(path)]
    except OSError as error:
        raise unreadable(path, error) from None
    return [(state.st_ino, state.st_size, state.st_mtime_ns) for state in states]


def read_rows(path: Path) -> Iterator[TopicRows]:
    """Yield batches of all rows of the files at a path, unchecked.

    Raises:
        ImportFailedError: The path is missing, unreadable, or has wrong columns.
    """
    files = files_of(path)
    if path.is_dir() or _begins_with(path, _PARQUET_MAGIC):
        return _parquet_rows(path, files)
    return _text_rows(path)


def unreadable(path: Path, error: OSError) -> ImportFailedError:
    """Create the error for a file that cannot be read."""
    return ImportFailedError(f"{path} cannot be read: {error.strerror}")


def _begins_with(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError as error:
        raise unreadable(path, error) from None


# -- Parquet ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """A row group of a Parquet file: rows, range of namespaces, values from folder names."""

    file: Path
    index: int
    first_row: int
    rows: int
    lowest: str | None
    highest: str | None
    said: Mapping[str, str | None]

    def may_hold(self, namespace: str) -> bool:
        """Return True if the row group may contain topics of a namespace."""
        if self.lowest is None or self.highest is None:
            return True
        return self.lowest <= namespace <= self.highest


def _parquet_rows(path: Path, files: Sequence[Path]) -> Iterator[TopicRows]:
    groups = [group for file in files for group in _row_groups(path, file)]
    lowest = _lowest_from(groups)
    reader: pq.ParquetFile | None = None
    for position, group in enumerate(groups):
        if reader is None or groups[position - 1].file != group.file:
            reader = _opened(group.file, group.said)
        name = group.file.relative_to(path)
        place, first = f"{name}, row" if len(files) > 1 else "row", group.first_row
        for table in _tables(reader, group):
            numbers = np.arange(first, first + len(table))
            first += len(table)
            ended = first == group.first_row + group.rows
            open_from = position + ended
            later = partial(_any_may_hold, groups[open_from:], lowest[open_from])
            yield TopicRows(table, numbers, place, later)


def _any_may_hold(groups: Sequence[_RowGroup], lowest: str, namespace: str) -> bool:
    # With sorted namespaces a single comparison decides, for any number of groups.
    return namespace >= lowest and any(group.may_hold(namespace) for group in groups)


def _lowest_from(groups: Sequence[_RowGroup]) -> list[str]:
    """Return, for each row group, the lowest namespace of that row group and all later ones.

    A last item is added that sorts after every namespace.
    """
    lowest = [_BEHIND_ALL]
    for group in reversed(groups):
        lowest.append(min(group.lowest or "", lowest[-1]))
    return lowest[::-1]


def _opened(file: Path, said: Iterable[str]) -> pq.ParquetFile:
    try:
        reader = pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise ImportFailedError(f"{file} is not a readable Parquet file: {error}") from None
    if why := why_too_new(reader.metadata.metadata, TOPICS_VERSION):
        raise ImportFailedError(f"{file} {why}")
    own = [field for field in reader.schema_arrow if field.name not in said]
    _check_columns(file, pa.schema([*own, *(pa.field(name, pa.string()) for name in said)]))
    return reader


def _row_groups(path: Path, file: Path) -> Iterator[_RowGroup]:
    values = values_said(path, file).items()
    said = {name: text for name, text in values if name in REQUIRED_COLUMNS}
    reader = _opened(file, said)
    # Row groups hold leaves; an earlier column may have several leaves.
    leaves = [reader.schema.column(leaf).path for leaf in range(reader.metadata.num_columns)]
    first_row = 1
    for index in range(reader.num_row_groups):
        metadata = reader.metadata.row_group(index)
        lowest = highest = said.get("namespace")
        if "namespace" not in said:
            lowest, highest = _range(metadata.column(leaves.index("namespace")).statistics)
        yield _RowGroup(file, index, first_row, metadata.num_rows, lowest, highest, said)
        first_row += metadata.num_rows


def _range(statistics: pq.Statistics | None) -> tuple[str | None, str | None]:
    """Return the lowest and highest namespace in a row group's statistics; None if unknown."""
    try:
        if statistics is not None and statistics.has_min_max:
            return statistics.min, statistics.max
    except UnicodeDecodeError:
        pass
    return None, None


def _check_columns(file: Path, schema: pa.Schema) -> None:
    for name in COLUMNS:
        if schema.names.count(name) > 1:
            raise ImportFailedError(f"{file} has the column {name} twice")
    for name, kind in REQUIRED_COLUMNS.items():
        if name not in schema.names or not _is_text(schema.field(name).type):
            found = ", ".join(f"{field.name} {field.type}" for field in schema)
            raise ImportFailedError(
                f"{file} has no column {name} of type {kind}; its columns are: {found}. "
                "Expected what `loadgen topics` writes: namespace, topic and, if any, properties"
            )
    kind = schema.field("properties").type if "properties" in schema.names else PROPERTIES_TYPE
    if not (pa.types.is_map(kind) and _is_text(kind.key_type) and _is_text(kind.item_type)):
        raise ImportFailedError(f"{file}: column properties is {kind}, expected {PROPERTIES_TYPE}")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _tables(reader: pq.ParquetFile, group: _RowGroup) -> Iterator[pa.Table]:
    there = {*reader.schema_arrow.names} - group.said.keys()
    kinds = {name: kind for name, kind in COLUMNS.items() if name in there}
    try:
        # Arrow's own threads would retain freed memory: up to a row group each.
        for batch in reader.iter_batches(
            ROWS_PER_BATCH, [group.index], columns=list(kinds), use_threads=False
        ):
            columns = {name: batch[name].cast(kind) for name, kind in kinds.items()}
            for name, text in group.said.items():
                columns[name] = pa.repeat(pa.scalar(text, pa.string()), len(batch))
            yield pa.table(columns)
    except (pa.ArrowException, OSError) as error:
        raise ImportFailedError(f"{group.file} cannot be read: {error}") from None


# -- text -------------------------------------------------------------------------------------


def _text_rows(path: Path) -> Iterator[TopicRows]:
    try:
        with path.open("rb") as file:
            if b"\0" in file.peek(_LOOKED_AT_BYTES)[:_LOOKED_AT_BYTES]:
                raise ImportFailedError(f"{path} is neither Parquet nor UTF-8 text")
            yield from _line_rows(file)
    except OSError as error:
        raise unreadable(path, error) from None


def _line_rows(file: BinaryIO) -> Iterator[TopicRows]:
    first = 1
    while lines := file.readlines(TEXT_BYTES_PER_BATCH):
        if first == 1:
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
        yield _rows(_trimmed(lines), first)
        first += len(lines)


def _trimmed(lines: Sequence[bytes]) -> pa.StringArray:
    """Strip whitespace and quotes from lines.

    Lines that are not UTF-8 are not removed, so that they can be reported.
    """
    try:
        texts = pa.array(lines, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(list(map(_trimmed_line, lines)), pa.binary()).view(pa.string())
    return pc.utf8_trim(pc.utf8_trim_whitespace(texts), '"')


def _trimmed_line(line: bytes) -> bytes:
    try:
        return line.decode().strip().strip('"').encode()
    except UnicodeDecodeError:
        return line.strip().strip(b'"')


def _rows(names: pa.StringArray, first: int) -> TopicRows:
    said = pc.invert(pc.or_(pc.starts_with(names, "#"), pc.equal(names, "")))
    numbers = first + np.flatnonzero(said.to_numpy(zero_copy_only=False))
    # Texts are unsorted: more rows of each namespace may follow.
    return TopicRows(pa.table({"topic": names.filter(said)}), numbers, "line", lambda _: True)
