"""Packing of loadgen and all needed packages into an archive for Spark's executors.

Wheels with machine code cannot be sent with ``--py-files``. So the archive contains installed
packages and a ``bin/python``, which runs the node's own Python of the same version with the
packages. PySpark is left out, because every executor has its own.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import re
import sys
import tarfile
from contextlib import suppress
from importlib import metadata
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError
from loadgen.stored import written_whole
from server.module_names import IN_WHEELS, IS_CHECKOUT, PACKAGES, module_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OURS = ("pulsar-floodgate-loadgen", "pulsar-floodgate-checkout")
_OUR_PACKAGES = (
    PACKAGES if IS_CHECKOUT else sorted({home.partition(".")[0] for home in IN_WHEELS.values()})
)
# PySpark is on every node.
_LEFT_OUT = frozenset({"pyspark", "py4j"})
_NOT_RUN = frozenset({"tests", "__pycache__", "include"})
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_LAUNCHER = f"""\
#!/bin/sh
# Runs this node's {_PYTHON}, or the one that LOADGEN_PYTHON names, with the packages beside it.
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
exec "${{LOADGEN_PYTHON:-{_PYTHON}}}" "$@"
"""
JOB = f'''\
"""loadgen, for spark-submit: its arguments are those of the command `loadgen`."""

from {module_name("loadgen")}.__main__ import main

if __name__ == "__main__":
    main()
'''


def pack(archive: Path, on_files: Callable[[int], None] = lambda _: None) -> int:
    """Write the archive of loadgen and its packages; return its size in bytes.

    Args:
        archive: The path of a ``.tar.gz`` file; an older archive is replaced.
        on_files: Called with the number of files packed so far.

    Raises:
        LoadgenError: A package is not installed, or the archive cannot be written.
    """
    try:
        with (
            written_whole(archive) as whole,
            gzip.GzipFile("", "wb", compresslevel=1, fileobj=whole, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w") as tar,
        ):
            _add(tar, "bin/python", _LAUNCHER.encode(), mode=0o755)
            for count, (name, file) in enumerate(sorted(packed_files().items()), start=1):
                _add(tar, f"lib/{name}", file.read_bytes())
                on_files(count)
    except OSError as error:
        raise LoadgenError(f"{archive} cannot be written: {error}.") from error
    return archive.stat().st_size


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    # Reproducible: the same environment makes the same archive, at any time and on any machine.
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))


def packed_files() -> dict[str, Path]:
    """Return the files needed by executors, by the paths in the archive's package folder.

    Raises:
        LoadgenError: loadgen was not installed as a package.
    """
    installed = [*_files_of_distributions(), *chain(*map(_files_of, _OUR_PACKAGES))]
    return {str(place): file for place, file in installed if _runs(place) and file.is_file()}


def _runs(entry: PurePosixPath) -> bool:
    """Return True if a package's file is needed at run time, unlike tests and scripts."""
    return entry.parts[0] != ".." and not _NOT_RUN & set(entry.parts) and entry.suffix != ".pyc"


def _files_of_distributions() -> Iterator[tuple[PurePosixPath, Path]]:
    for distribution in map(metadata.distribution, needed_distributions()):
        for entry in distribution.files or ():
            yield entry, Path(str(distribution.locate_file(entry)))


def _files_of(package: str) -> Iterator[tuple[PurePosixPath, Path]]:
    """Yield the files of a package of the project; the package may be installed as a link."""
    found = importlib.util.find_spec(package)
    for root in (found.submodule_search_locations if found else None) or ():
        for file in Path(root).rglob("*"):
            yield PurePosixPath(package, *file.relative_to(root).parts), file


def needed_distributions() -> list[str]:
    """Return the names of all installed packages needed by loadgen, directly or indirectly.

    Raises:
        LoadgenError: loadgen was not installed as a package.
    """
    needed = set[str]()
    for name in _OURS:
        _add_needed(name, needed)
    if not needed:
        raise LoadgenError(
            f"the package {_OURS[0]} is not installed here: pip install it, then pack"
        )
    return sorted(needed.difference(_OURS))


def _add_needed(name: str, needed: set[str]) -> None:
    """Add an installed package and its dependencies to ``needed``.

    Dependencies of extras, dependencies not installed (such as dependencies for another system),
    and packages left out of the archive are skipped.
    """
    with suppress(metadata.PackageNotFoundError):
        wanted = metadata.requires(name) or []
        needed.add(name)
        for requirement in wanted:
            other = re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()
            if "extra ==" not in requirement and other not in _LEFT_OUT | needed:
                _add_needed(other, needed)
