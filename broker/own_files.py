"""Files of a broker's data, which nobody else on the machine may read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


def make_own_files(*paths: Path) -> None:
    """Make files that are missing, and their folders, for their owner alone; leave others.

    SQLite gives the files beside its database the database's own mode.

    Raises:
        OSError: They cannot be made.
    """
    for path in paths:
        path.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, _FILE_MODE))
