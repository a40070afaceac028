"""Folders of Parquet files, also as Spark's ``partitionBy`` writes them.

There ``namespace=mine%2Fown/part-0.parquet`` says the value of a column for all rows of the file,
which does not have the column itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from pathlib import Path

_NULL = "__HIVE_DEFAULT_PARTITION__"


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, and of those within it that say a column's value."""
    found = sorted(folder.rglob("*.parquet"))
    return [file for file in found if all("=" in name for name in _folders(folder, file))]


def values_said(folder: Path, file: Path) -> dict[str, str | None]:
    """Return the columns whose values the folders of a file say, as texts."""
    pairs = (name.partition("=") for name in _folders(folder, file))
    return {unquote(name): None if text == _NULL else unquote(text) for name, _, text in pairs}


def _folders(folder: Path, file: Path) -> tuple[str, ...]:
    return file.relative_to(folder).parts[:-1]
