"""The terminal that tables are written to; apart because Rich takes long to import."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class TableConsole(Console):
    """A console that raises an error when the reader has gone, instead of ending the process."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error for which Rich would end the process.

        Raises:
            BrokenPipeError: Always.
        """
        raise BrokenPipeError
