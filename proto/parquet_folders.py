"""Folders of Parquet files, plain ones and those of Spark's ``partitionBy``.

``partitionBy`` leaves a column out of the files, and puts its value into the name of a folder:
``namespace=mine%2Fown/part-0.parquet``. As in Spark, such a value is that of all rows, also where
the files have that column too; and names that begin with a dot or ``_`` are of no files of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from pathlib import Path

_NULL = "__HIVE_DEFAULT_PARTITION__"
_HIDDEN = (".", "_")


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, and of its folders named ``column=value``."""
    found = sorted(folder.rglob("*.parquet"))
    return [
        file
        for file in found
        if not file.name.startswith(_HIDDEN)
        # The name of a column may begin with ``_``.
        and all("=" in name and not name.startswith(".") for name in _folders(folder, file))
    ]


def values_said(folder: Path, file: Path) -> dict[str, str | None]:
    """Return columns and their values, as texts, from the names of a file's folders."""
    pairs = (name.partition("=") for name in _folders(folder, file))
    return {unquote(name): None if text == _NULL else unquote(text) for name, _, text in pairs}


def _folders(folder: Path, file: Path) -> tuple[str, ...]:
    return file.relative_to(folder).parts[:-1]
