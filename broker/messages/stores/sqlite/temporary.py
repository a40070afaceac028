"""The folders of databases that end with their brokers."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path

_PREFIX = "floodgate-messages-"
DATABASE_NAME = "messages.db"


def temporary_database(place: Path) -> Path:
    """Return the path of a new database, in a folder that is nobody else's.

    Folders of brokers that were killed are deleted first.

    Raises:
        OSError: None can be made there.
    """
    for folder in place.glob(f"{_PREFIX}*"):
        _delete_left(folder)
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place)) / DATABASE_NAME


def _delete_left(folder: Path) -> None:
    """Delete a folder if its broker has ended: the kernel holds no lock of it any more."""
    try:
        with open(folder / f"{DATABASE_NAME}.lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Without a process in it, it is of a broker that starts just now.
            if lock.read(1):
                shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return
