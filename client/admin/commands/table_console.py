"""The terminal that tables are written to; apart because Rich takes long to import."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class TableConsole(Console):
    """Leaves it to the caller what is done when the reader has gone."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise what Rich would end the process for.

        Raises:
            BrokenPipeError: Always.
        """
        raise BrokenPipeError
