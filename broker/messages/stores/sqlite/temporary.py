"""Folders of temporary databases."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path

_PREFIX = "floodgate-messages-"
DATABASE_NAME = "messages.db"


def temporary_database(place: Path) -> Path:
    """Return the path of a new database, in an exclusive folder.

    Folders of killed brokers are deleted first.

    Raises:
        OSError: The folder cannot be created.
    """
    for folder in place.glob(f"{_PREFIX}*"):
        _delete_left(folder)
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place)) / DATABASE_NAME


def _delete_left(folder: Path) -> None:
    """Delete a folder without a running broker, detected by the free lock."""
    try:
        with open(folder / f"{DATABASE_NAME}.lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # An empty lock file belongs to a starting broker.
            if lock.read(1):
                shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return
