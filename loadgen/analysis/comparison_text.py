"""A comparison for people: a table for terminals, and Markdown for a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from loadgen.analysis.compare import LEVEL
from loadgen.analysis.thresholds import in_words
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.analysis.compare import Comparison, Difference, Row, Side
    from loadgen.analysis.measures import Unit


def table_of(comparison: Comparison) -> Table:
    """Return the table for a terminal."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", overflow="fold")
    for heading in _headings(comparison):
        table.add_column(heading, justify="right", overflow="fold")
    for row in comparison.rows:
        cells = [Text(each) for each in _cells(row)]
        shown = any(each is not None and each.shown for each in row.differences)
        table.add_row(Text(row.figure), *cells, style="bold" if shown else "")
    return table


def markdown_of(comparison: Comparison) -> str:
    """Return the comparison as Markdown."""
    headings = _headings(comparison)
    lines = [
        f"| | {' | '.join(map(escaped, headings))} |",
        f"|---|{'---:|' * len(headings)}",
        *(f"| {escaped(row.figure)} | {' | '.join(_cells(row))} |" for row in comparison.rows),
        "",
        *(f"{escaped(each)}  " for each in sentences(comparison)),
    ]
    return "\n".join(lines) + "\n"


def document_of(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison for programs."""
    return {
        "schema_version": 1,
        "level": LEVEL,
        "groups": [
            {
                "label": group.label,
                "executor": group.executor,
                "runs": [run.place for run in group.runs],
            }
            for group in comparison.groups
        ],
        "unlike": comparison.unlike,
        "doubts": comparison.doubts,
        "repeats_needed": comparison.enough,
        "rows": [
            {
                "figure": row.figure,
                "unit": row.unit,
                "sides": [vars_of(side) for side in row.sides],
                "differences": [each and vars_of(each) for each in row.differences],
            }
            for row in comparison.rows
        ],
    }


def vars_of(value: Side | Difference) -> dict[str, Any]:
    """Return the fields of a side or a difference."""
    return dict(value.__dict__)


def sentences(comparison: Comparison) -> Iterator[str]:
    """Say what the table shows, and what it cannot."""
    if len(comparison.groups) > 1:
        differences = [each for row in comparison.rows for each in row.differences if each]
        shown = sum(each.shown for each in differences)
        if shown:
            yield f"{plural(shown, 'difference')} shown, of {plural(len(differences), 'figure')}."
        else:
            yield "No difference shown."
        if not comparison.can_show:
            yield (
                f"To show one that every repeat has, each side needs {comparison.enough} repeats "
                f"(Mann-Whitney, exact, {LEVEL:.0%} shared by all figures); there are "
                f"{' and '.join(str(len(group.runs)) for group in comparison.groups)}."
            )
    if comparison.executors:
        yield f"Their executors are {' and '.join(comparison.executors)}, in this order."
    if comparison.unlike:
        yield f"These runs are not alike in {', '.join(comparison.unlike)}."
    for doubt in comparison.doubts:
        yield f"Not to be relied on: {doubt}."


def _headings(comparison: Comparison) -> list[str]:
    headings = []
    for place, group in enumerate(comparison.groups):
        by = f" by {group.executor}" if comparison.executors else ""
        headings.append(f"{group.label} ({plural(len(group.runs), 'run')}{by})")
        if place:
            headings.append("difference")
    return headings


def _cells(row: Row) -> list[str]:
    cells = []
    for side, difference in zip(row.sides, row.differences, strict=True):
        cells.append(side_text(side, row.unit))
        if difference is not None:
            cells.append(difference_text(difference))
    return cells


def side_text(side: Side, unit: Unit) -> str:
    """Write a median, with its spread where there is one."""
    median = in_words(unit, side.median)
    if side.least == side.most:
        return median
    return f"{median} ({in_words(unit, side.least)} to {in_words(unit, side.most)})"


def difference_text(difference: Difference) -> str:
    """Say in a few words what a difference is."""
    if difference.probability is None:
        return "the same"
    if not difference.shown:
        return "no difference shown"
    if difference.ratio is None:
        return "more than none"
    if difference.ratio >= 2:
        return f"{difference.ratio:.3g} times"
    return f"{(difference.ratio - 1) * 100:+.1f} %"


def escaped(text: str) -> str:
    """Write a text that has no meaning of its own in Markdown's tables."""
    return text.replace("|", "\\|").replace("<", "&lt;")
