"""Results of benchmarks as tables, which fit a terminal of 100 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from benchmarks.result import BenchResult, Figure

TERMINAL_COLUMNS = 100


def result_table(title: str, result: BenchResult) -> Table:
    """Return a table of a benchmark's figures, with its remarks below."""
    table = Table(
        title=title,
        title_justify="left",
        caption="\n".join(result.remarks) or None,
        caption_justify="left",
        width=TERMINAL_COLUMNS,
    )
    table.add_column("Measured", ratio=1)
    for heading in ("Median", "Range", "Unit", "Goal"):
        table.add_column(heading, justify="left" if heading == "Unit" else "right", no_wrap=True)
    for figure in result.figures:
        table.add_row(
            Text(figure.name),
            _number(figure.median),
            f"{_number(min(figure.values))} to {_number(max(figure.values))}",
            figure.unit,
            _goal(figure),
        )
    return table


def _number(value: float) -> str:
    """Format a number with three digits, or in whole numbers from 100 on."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def _goal(figure: Figure) -> Text:
    if figure.goal is None:
        return Text("")
    number = f"{figure.goal:,.0f}" if figure.goal >= 100 else f"{figure.goal:g}"
    if figure.at_most:
        number = f"≤ {number}"
    return Text(f"{number} met", "green") if figure.met else Text(f"{number} missed", "red")
