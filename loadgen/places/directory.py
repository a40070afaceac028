"""The directory of a run: the files that it may contain, and how a new run replaces an old one.

A run is written to a folder within the directory, and moved up when complete, so a failed run
leaves an older run of the same name unchanged. In an object store nothing can be renamed: a run
there is written in place after the older run is deleted, and counts as a run once ``run.json``
exists.
"""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError, UsageError
from loadgen.results.tables import TABLES
from loadgen.stored import StoredPath, emptied, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

RUN_NAME = "run.json"
_LONGEST_NAME_BYTES = 200
"""Longest name of a run in bytes: file systems allow 255, and suffixes such as -2 are added."""
_SHOWN = 60
_LOG = ".log"
_UNFINISHED = ".unfinished"
_OF_A_KILLED = re.compile(r"^\.(.+)\.\d+$")
"""Pattern of names of incomplete files that a killed command may have left."""
MADE_OF_A_RUN = ("summary.json", "summary.csv", "junit.xml", "README.md", "index.html")
"""Files derived from a run's tables, which can be made again."""
_OF_A_RUN = {RUN_NAME, *TABLES, *MADE_OF_A_RUN, _UNFINISHED}


def require_directory_name(name: str) -> None:
    """Check that the name of a run can be the name of a directory.

    Raises:
        UsageError: The name cannot be the name of a directory.
    """
    unfit = "/" in name or name.startswith(".") or not name.isprintable()
    if not name or unfit or len(name.encode(errors="surrogateescape")) > _LONGEST_NAME_BYTES:
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        raise UsageError(
            f"--name {shown!r} cannot be the name of a run's directory: take up to "
            f"{_LONGEST_NAME_BYTES} bytes, no slash or control character, and no dot at the "
            "beginning (--out says where it is)"
        )


@contextmanager
def run_directory(directory: Path) -> Iterator[Path]:
    """Create a run's directory, and yield the folder to which the run is to be written.

    At the end of the ``with`` block the new files replace those of an older run.

    A failed run leaves only the servers' logs. A Ctrl-C before the first figures does not even
    leave the logs.

    Raises:
        UsageError: The directory cannot be created, or contains a file that no run has written.
        LoadgenError: The run cannot be written.
    """
    unfinished = directory / _UNFINISHED
    try:
        directory.mkdir(parents=True, exist_ok=True)
        names = [each.name for each in directory.iterdir()]
        found = {_OF_A_KILLED.sub(r"\1", each) for each in names if not each.endswith(_LOG)}
        others = found - _OF_A_RUN
        if not (others or isinstance(directory, StoredPath)):
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
    except OSError as error:
        raise UsageError(
            f"{directory} cannot be the run's directory ({error.strerror}): choose another --out"
        ) from None
    if others:
        raise UsageError(
            f"{directory} holds {min(others)}, which no run has written: choose another --name or "
            "--out"
        )
    if isinstance(directory, StoredPath):
        with emptied(directory, RUN_NAME, f"*{_LOG}"):
            unfinished.write_text("")  # Detects a store that refuses files before the storm.
            unfinished.unlink()
            yield directory
        return
    try:
        yield unfinished
    except BaseException as error:
        _leave(directory, unfinished, logs=not isinstance(error, KeyboardInterrupt))
        raise
    try:
        _take_place(directory, unfinished)
    except OSError as error:
        raise LoadgenError(f"the run cannot be written to {directory}: {error}") from error


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON file, indented so that people can read it."""
    text = json.dumps(document, indent=2, ensure_ascii=False, default=str)
    write_whole(path, f"{text}\n")


def _take_place(directory: Path, unfinished: Path) -> None:
    for each in directory.iterdir():
        if each.is_dir() and each != unfinished:
            shutil.rmtree(each)
        elif each != unfinished and each.suffix != _LOG:
            each.unlink()
    for each in unfinished.iterdir():
        each.rename(directory / each.name)
    unfinished.rmdir()


def _leave(directory: Path, unfinished: Path, *, logs: bool) -> None:
    shutil.rmtree(unfinished, ignore_errors=True)
    with suppress(OSError):
        files = list(directory.iterdir())
        if not logs and all(each.suffix == _LOG for each in files):
            for each in files:
                each.unlink()
        directory.rmdir()
