"""What commands print: tables, findings, steps and progress for people, JSON for programs."""

from __future__ import annotations

import json
import math
import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from loadgen.errors import LoadgenError, UsageError
from loadgen.results.expectations import in_words
from loadgen.results.measures import Unit
from proto.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from loadgen.results.summary import Percentiles, Summary
    from loadgen.results.verdict import Verdict

COLUMNS = 100
"""Of tables that go into a file or a pipe."""
_MOST_ROWS = 12
_MOST_SAID, _MOST_REASONS = 3, 5
_MEMORY = ("heap.used", "direct.used", "resident", "unread")
_REQUESTS = ("requests", "due", "answered", "refused", "wrong", "lost", "p50", "p99", "max")
_BACK = ("clients back", "", "p50", "p99", "max")
_SERVERS = ("servers", "at most", "at the end")


def console() -> Console:
    """Return a console on standard output; without a terminal, tables have their full width."""
    found = Console(highlight=False)
    if not found.is_terminal:
        found.width = COLUMNS
    return found


def print_json(told: Any) -> None:  # noqa: ANN401
    """Print a document for a program."""
    sys.stdout.write(f"{json.dumps(told, indent=2, ensure_ascii=False, default=str)}\n")


def print_object(schema_version: int, told: Mapping[str, Any]) -> None:
    """Print an object for a program, with the version of its form and what produced it."""
    by = {"loadgen": VERSION, "command_line": shlex.join(["loadgen", *sys.argv[1:]])}
    print_json({"schema_version": schema_version, "produced_by": by, **told})


def say(sentence: str, *, as_json: bool = False, kind: str = "step") -> None:
    """Tell a step, or a warning, on standard error."""
    mark = "! " if kind == "warning" else ""
    told = json.dumps({kind: sentence}, ensure_ascii=False) if as_json else f"{mark}{sentence}"
    sys.stderr.write(f"{told}\n")
    sys.stderr.flush()


def print_sentences(sentences: Sequence[str], warnings: Sequence[str] = ()) -> None:
    """Print sentences as they are, however wide, and then warnings."""
    screen = console()
    for each in sentences:
        screen.print(each, markup=False, soft_wrap=True)
    for each in warnings:
        screen.print(f"! {each}", style="yellow", markup=False, soft_wrap=True)


@contextmanager
def counting(
    text: str, total: int | None, *, hidden: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show how much is done, as told by calls of what this hands out.

    Nothing is shown where standard error is no terminal, or if it is to be hidden.
    """
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    screen = Console(stderr=True)
    disabled = hidden or not screen.is_terminal
    with Progress(*columns, TimeElapsedColumn(), console=screen, disable=disabled) as progress:
        task = progress.add_task(text, total=total)
        yield lambda done: progress.update(task, completed=done)


def write_text(path: Path, text: str) -> None:
    """Write a page that the user asked for.

    Raises:
        UsageError: It cannot be written there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def table_of(heads: Sequence[str], rows: Iterable[Sequence[str]], *, figures: bool = True) -> Table:
    """Return a plain table whose figures stand at the right; without heads, of texts."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(heads))
    for number, head in enumerate(heads):
        right = figures and number > 0 and any(heads)
        table.add_column(Text(head), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def show_summary(summary: Summary, verdict: Verdict) -> None:
    """Print a run for people: what is wrong with it first, then figures, then what is fine."""
    screen = console()
    title = summary.title.rstrip(".") or summary.name
    screen.print(Text(f"{title}: {verdict.word}", "bold"))
    for finding in sorted(verdict.findings, key=lambda each: -each.level.rank):
        if not finding.fine:
            screen.print(Text("✗ ", "red").append(finding.sentence, ""), soft_wrap=True)
    for reason in summary.reasons[:_MOST_REASONS]:
        told = f"  {reason.requests:,} {reason.outcome}: {reason.reason}"
        screen.print(told, markup=False, soft_wrap=True)
    splits = summary.splits["by-group-operation"][:_MOST_ROWS]
    requests = [
        (
            each.part,
            *(f"{n:,}" for n in (each.requests, each.answered, each.refused, each.wrong)),
            f"{each.timeout + each.disconnected + each.unreachable:,}",
            *_times(each.response_seconds),
        )
        for each in (splits if len(splits) == 1 else [summary.total, *splits])
    ]
    back = [
        (each.group, f"{each.back:,} of {each.clients:,}", *_times(each.back_seconds))
        for each in summary.back[:_MOST_ROWS]
    ]
    servers = [
        (
            f"{name} {key}",
            *("" if x is None else in_words(Unit.BYTES, x) for x in (seen.max, seen.last)),
        )
        for name, server in sorted(summary.servers.items())
        for key in _MEMORY
        if (seen := server.figures.get(key)) is not None
    ]
    for heads, rows in ((_REQUESTS, requests), (_BACK, back), (_SERVERS, servers)):
        if rows:
            screen.print(table_of(heads, rows))
    for finding in verdict.findings:
        if finding.fine:
            screen.print(Text("✓ ", "green").append(finding.sentence, ""))


def _times(found: Percentiles | None) -> tuple[str, ...]:
    if found is None:
        return ("", "", "")
    values = (found.p50, found.p99, found.max)
    return tuple(in_words(Unit.SECONDS, math.inf if x is None else x) for x in values)


def fail_if_not_fine(verdict: Verdict) -> None:
    """End with the sentences of the worst findings and their exit code.

    Raises:
        LoadgenError: There is a finding that is not fine.
    """
    if verdict.fine:
        return
    worst = [each.sentence for each in verdict.findings if each.level is verdict.level]
    more = f" (and {len(worst) - _MOST_SAID} more)" if len(worst) > _MOST_SAID else ""
    raise LoadgenError(
        f"{verdict.word}: {' '.join(_ended(each) for each in worst[:_MOST_SAID])}{more}",
        verdict.exit_code,
    )


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."
