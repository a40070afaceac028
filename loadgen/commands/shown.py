"""Output of the commands: tables, sentences and progress for people, or JSON for programs."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from contextlib import contextmanager
from html import unescape
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from loadgen.errors import LoadgenError
from proto.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from loadgen.results.verdict import Verdict

COLUMNS = 100
"""Width of tables in a file or a pipe."""
_MOST_SAID = 3
_LINE_SECONDS = 10.0
_FIGURE = re.compile(r"[-+\d]|never$|$")
_BAR, _ESCAPED = re.compile(r"(?<!\\)\|"), re.compile(r"\\(.)")


def console() -> Console:
    """Return a console on standard output.

    Without a terminal, tables are ``COLUMNS`` characters wide.
    """
    found = Console(highlight=False)
    if not found.is_terminal:
        found.width = COLUMNS
    return found


def print_json(told: Any) -> None:  # noqa: ANN401
    """Print a value as JSON: dataclasses and pydantic models as objects, infinity as null."""
    text = to_json(told, indent=2, inf_nan_mode="null", fallback=str)
    sys.stdout.write(f"{text.decode()}\n")


def print_object(schema_version: int, told: Mapping[str, Any]) -> None:
    """Print a JSON object that also has its schema version and the command that printed it."""
    by = {"loadgen": VERSION, "command_line": shlex.join(["loadgen", *sys.argv[1:]])}
    print_json({"schema_version": schema_version, "produced_by": by, **told})


def say(sentence: str, *, as_json: bool = False, kind: str = "step") -> None:
    """Print a sentence about progress, or a warning, on standard error."""
    mark = "! " if kind == "warning" else ""
    told = json.dumps({kind: sentence}, ensure_ascii=False) if as_json else f"{mark}{sentence}"
    sys.stderr.write(f"{told}\n")
    sys.stderr.flush()


def print_sentences(sentences: Sequence[str], warnings: Sequence[str] = ()) -> None:
    """Print sentences without wrapping them, and then warnings."""
    screen = console()
    for each in sentences:
        screen.print(each, markup=False, soft_wrap=True)
    for each in warnings:
        screen.print(f"! {each}", style="yellow", markup=False, soft_wrap=True)


@contextmanager
def counting(text: str, total: int | None, *, as_json: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows progress; it is called with the number of finished items.

    For a program, or without a terminal, long work prints a progress line at intervals.
    """
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    screen = Console(stderr=True)
    if as_json or not screen.is_terminal:
        yield _lines(text, total, as_json=as_json)
        return
    with Progress(*columns, TimeElapsedColumn(), console=screen) as progress:
        task = progress.add_task(text, total=total)
        yield lambda done: progress.update(task, completed=done)


def _lines(text: str, total: int | None, *, as_json: bool) -> Callable[[int], None]:
    """Return a function that prints a progress line at most once in ``_LINE_SECONDS``."""
    said = time.monotonic()

    def on_done(done: int) -> None:
        nonlocal said
        if time.monotonic() - said >= _LINE_SECONDS:
            said = time.monotonic()
            of = f" of {total:,}" if total is not None else ""
            say(f"{text}: {done:,}{of}", as_json=as_json)

    return on_done


def table_of(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table without borders, whose columns of numbers are aligned to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(heads))
    cells = [*rows]
    for number, head in enumerate(heads):
        figures = number > 0 and all(_FIGURE.match(row[number]) for row in cells)
        table.add_column(Text(head), justify="right" if figures else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    return table


def print_page(markdown: str, end: str = "\0") -> None:
    """Print a Markdown page's headings, tables and paragraphs, up to the heading ``end``."""
    screen = console()
    for block in markdown.partition(f"\n## {end}")[0].strip().split("\n\n"):
        if block.startswith("|"):
            heads, _, *rows = map(_cells, block.splitlines())
            screen.print(table_of(heads, rows))
        else:
            style = "bold" if block.startswith("#") else ""
            screen.print(_text(block.lstrip("# ")), style=style, markup=False, soft_wrap=True)
        if not block.startswith("#"):
            screen.print()


def _cells(line: str) -> list[str]:
    return [_text(cell.strip()) for cell in _BAR.split(line)[1:-1]]


def _text(markdown: str) -> str:
    return unescape(_ESCAPED.sub(r"\1", markdown))


def fail_if_not_fine(verdict: Verdict) -> None:
    """Raise an error with the worst findings of a run's verdict, unless the verdict is fine.

    Raises:
        LoadgenError: The worst finding is not fine; the exit code is that of the verdict.
    """
    if verdict.fine:
        return
    worst = [each.sentence.rstrip(".") for each in verdict.findings if each.level is verdict.level]
    more = f" (and {len(worst) - _MOST_SAID} more)" if len(worst) > _MOST_SAID else ""
    said = f"{'. '.join(worst[:_MOST_SAID])}.{more}"
    if verdict.word in worst[0].lower():  # The sentence already contains the verdict.
        raise LoadgenError(f"{said[0].lower()}{said[1:]}", verdict.exit_code)
    raise LoadgenError(f"{verdict.word}: {said}", verdict.exit_code)
