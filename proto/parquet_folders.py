"""Folders of Parquet files, plain or written by Spark's ``partitionBy``.

``partitionBy`` omits a column from the files, and encodes its value in the name of a folder:
``namespace=mine%2Fown/part-0.parquet``. As in Spark, the value applies to all rows, even if the
files have the column as well; and names beginning with a dot or ``_`` are not data files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from pathlib import Path

_NULL = "__HIVE_DEFAULT_PARTITION__"
_HIDDEN = (".", "_")


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files in a folder and in its subfolders named ``column=value``."""
    found = sorted(folder.rglob("*.parquet"))
    return [
        file
        for file in found
        if not file.name.startswith(_HIDDEN)
        # A column's name may begin with ``_``.
        and all("=" in name and not name.startswith(".") for name in _folders(folder, file))
    ]


def values_said(folder: Path, file: Path) -> dict[str, str | None]:
    """Return a mapping of columns to values, read from the names of a file's folders.

    A null value is None.
    """
    pairs = (name.partition("=") for name in _folders(folder, file))
    return {unquote(name): None if text == _NULL else unquote(text) for name, _, text in pairs}


def _folders(folder: Path, file: Path) -> tuple[str, ...]:
    return file.relative_to(folder).parts[:-1]
