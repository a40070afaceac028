"""Names what a server process is to import before it is ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Imports:
    """Files of topics, and how they are taken.

    Attributes:
        paths: Files and folders, in order (``--import``).
        skip_invalid: Whether invalid topics are left out (``--skip-invalid``); otherwise nothing
            of such a file is imported, and the process does not start.
        again: Whether what the store has taken in before is imported again (``--import-again``).
    """

    paths: Sequence[Path] = ()
    skip_invalid: bool = False
    again: bool = False


NO_IMPORTS = Imports()
