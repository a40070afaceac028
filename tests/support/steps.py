"""Shows a long job step by step: a moving line for each on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

_WIDEST_STEP = 56


class StepDisplay:
    """The steps of a job on a console; the mutable state is the rich display."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._on_terminal = console.is_terminal
        self._started = time.perf_counter()
        self._progress = Progress(
            # No tick: a step's end says nothing about its result.
            SpinnerColumn(finished_text="[dim]•[/dim]", table_column=_column(1)),
            TextColumn("{task.description}", markup=False, table_column=_column(_WIDEST_STEP)),
            _Elapsed(),
            TextColumn(
                "{task.fields[note]}", style="dim", markup=False, table_column=_column(ratio=1)
            ),
            console=console,
            expand=True,
            disable=not self._on_terminal,
        )

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the job began."""
        return time.perf_counter() - self._started

    @contextmanager
    def shown(self) -> Iterator[StepDisplay]:
        """Keep the display up during a block."""
        with self._progress:
            yield self

    @contextmanager
    def step(self, description: str) -> Iterator[Callable[[str], None]]:
        begun = time.perf_counter()
        task = self._progress.add_task(description, total=1, note="")
        last = ""

        def note(text: str) -> None:
            nonlocal last
            last = text
            self._progress.update(task, note=text)

        if not self._on_terminal:
            self._line(f"{description} …")
        try:
            yield note
        except BaseException:
            note("failed")
            raise
        self._progress.update(task, completed=1)
        if not self._on_terminal:
            seconds = time.perf_counter() - begun
            self._line(f"    done in {seconds:.1f} s{f': {last}' if last else ''}")

    def _line(self, text: str) -> None:
        self._console.print(
            f"[{self.elapsed_seconds:6.1f} s] {text}", markup=False, highlight=False, soft_wrap=True
        )


def _column(width: int | None = None, ratio: int | None = None) -> Column:
    """Return a column with a fixed width."""
    return Column(width=width, ratio=ratio, no_wrap=True, overflow="ellipsis")


class _Elapsed(TextColumn):
    """A step's elapsed seconds, with tenths, so that short steps do not read as zero."""

    def __init__(self) -> None:
        super().__init__("", table_column=_column(8))

    def render(self, task: Task) -> Text:
        """Return the time of a step so far, or in all."""
        seconds = task.finished_time if task.finished else task.elapsed
        return Text(f"{seconds or 0:5.1f} s", style="cyan")
