"""A progress bar on standard error, for work whose size is known or not."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def counting(
    text: str, total: int | None, *, hidden: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show how much is done, as told by calls of what this hands out.

    Nothing is shown where standard error is no terminal, or if it is to be hidden.
    """
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    console = Console(stderr=True)
    disabled = hidden or not console.is_terminal
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=disabled) as progress:
        task = progress.add_task(text, total=total)
        yield lambda done: progress.update(task, completed=done)
