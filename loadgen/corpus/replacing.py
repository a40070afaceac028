"""A directory that appears at once: it is made beside its place and moved there when complete."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loadgen.corpus.manifest import MANIFEST_NAME
from loadgen.errors import LoadgenError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Hand out a directory beside ``out`` that takes its place if the block succeeds.

    Raises:
        UsageError: ``out`` holds something else than a corpus.
        LoadgenError: It cannot be written.
    """
    _require_replaceable(out)
    directory = out.resolve().with_name(f".{out.resolve().name}.{os.getpid()}")
    try:
        directory.mkdir(parents=True)
        yield directory
        if out.exists():
            shutil.rmtree(out)
        directory.rename(out)
    except OSError as error:
        raise LoadgenError(f"The corpus {out} cannot be written: {error}.") from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _require_replaceable(out: Path) -> None:
    """Refuse to replace what is neither a corpus nor an empty directory."""
    if not out.exists() or (out / MANIFEST_NAME).is_file():
        return
    if out.is_dir() and not any(out.iterdir()):
        return
    raise UsageError(
        f"{out} exists and is not a topic corpus, so it is not replaced; "
        "give another --out or remove it."
    )
