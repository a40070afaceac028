"""Options of ``--import``: files of topics that are created before the server is ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Imports:
    """The files of topics to import at startup, and how to import them.

    Attributes:
        paths: Files and folders, in order (``--import``).
        skip_invalid: Whether invalid topics are skipped (``--skip-invalid``); otherwise nothing of
            the file is imported, and the process does not start.
        again: Whether topics already imported into the store are imported again
            (``--import-again``).
    """

    paths: Sequence[Path] = ()
    skip_invalid: bool = False
    again: bool = False


NO_IMPORTS = Imports()
