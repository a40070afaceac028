"""The terminal for tables; a separate module because Rich imports slowly."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class TableConsole(Console):
    """A console that raises an error at a broken pipe, instead of ending the process."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise an error where Rich would end the process.

        Raises:
            BrokenPipeError: Always.
        """
        raise BrokenPipeError
