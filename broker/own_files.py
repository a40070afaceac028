"""Creation of data files that other users of the machine cannot read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


def make_own_files(*paths: Path) -> None:
    """Create missing files and folders that only their owner can access.

    Existing files and folders are left unchanged.

    SQLite gives the files beside its database the database's own mode.

    Raises:
        OSError: A file or folder cannot be created.
    """
    for path in paths:
        path.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, _FILE_MODE))
