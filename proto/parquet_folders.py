"""Folders of Parquet files, plain ones and those of Spark's ``partitionBy``.

``partitionBy`` leaves a column out of the files, and puts its value into the name of a folder:
``namespace=mine%2Fown/part-0.parquet``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from pathlib import Path

_NULL = "__HIVE_DEFAULT_PARTITION__"


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, and of its folders named ``column=value``."""
    found = sorted(folder.rglob("*.parquet"))
    return [file for file in found if all("=" in name for name in _folders(folder, file))]


def values_said(folder: Path, file: Path) -> dict[str, str | None]:
    """Return columns and their values, as texts, from the names of a file's folders."""
    pairs = (name.partition("=") for name in _folders(folder, file))
    return {unquote(name): None if text == _NULL else unquote(text) for name, _, text in pairs}


def _folders(folder: Path, file: Path) -> tuple[str, ...]:
    return file.relative_to(folder).parts[:-1]
