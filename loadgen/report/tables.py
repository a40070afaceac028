"""Tables of several runs' figures for the terminal.

Measures are rows and runs are columns, so that three runs fit into 100 columns and two figures
that compare stand side by side.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadgen.report.addition import scenario_place
from loadgen.report.figures import figure_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.results.checks import CheckResult
    from loadgen.results.summary import RunSummary

TERMINAL_COLUMNS = 100
# Up to two runs fit a terminal that nobody has made wider.
NARROW_COLUMNS = 80
_NARROW_RUNS = 2
RUNS_PER_TABLE = 3
_MEASURE_COLUMNS = 36
_STYLES = {"✓": "green", "!": "yellow", "–": "dim", "✗": "bold red"}  # noqa: RUF001


def summary_tables(summaries: Sequence[RunSummary]) -> list[Constrain]:
    """Return tables of at most ``RUNS_PER_TABLE`` runs, each of one scenario."""
    tables = []
    for _, group in groupby(sorted(summaries, key=scenario_place), scenario_place):
        runs = list(group)
        for start in range(0, len(runs), RUNS_PER_TABLE):
            part = runs[start : start + RUNS_PER_TABLE]
            columns = NARROW_COLUMNS if len(part) <= _NARROW_RUNS else TERMINAL_COLUMNS
            tables.append(Constrain(_table(part), columns))
    return tables


def check_grid(checks: Sequence[CheckResult]) -> Constrain:
    """Return checks as a grid: a mark and a sentence in each row."""
    grid = Table.grid(padding=(0, 1))
    for check in checks:
        grid.add_row(Text(check.mark, _STYLES[check.mark]), Text(check.sentence))
    return Constrain(grid, TERMINAL_COLUMNS)


def summary_console() -> Console:
    """Return a console on standard output; without a terminal, tables have their full width."""
    console = Console()
    if not console.is_terminal:
        console.width = TERMINAL_COLUMNS
    return console


def _table(summaries: Sequence[RunSummary]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False)
    table.add_column("", width=_MEASURE_COLUMNS, overflow="fold")
    for summary in summaries:
        table.add_column(summary.label, justify="right", ratio=1, overflow="fold")
    group = ""
    for row in figure_rows(summaries):
        if row.group != group:
            if group:
                table.add_section()
            table.add_row(f"[bold]{row.group}[/bold]")
            group = row.group
        cells = zip(row.cells, row.alarming, strict=True)
        table.add_row(
            _indented(row.measure),
            *(f"[red]{_plain(text)}[/red]" if bad else _plain(text) for text, bad in cells),
        )
    return table


def _indented(measure: str) -> Padding:
    """Return a measure that stays indented where it takes a second line."""
    text = measure.strip()
    return Padding(Text(text), (0, 0, 0, 2 + len(measure) - len(text)))


def _plain(text: str) -> str:
    """Escape rich's markup: reasons come from servers and may hold brackets."""
    return text.replace("[", "\\[")
