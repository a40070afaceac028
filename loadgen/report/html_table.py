"""The report's table: a column for each run, a row for each measure, groups with headings."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from loadgen.report.charts import key_mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.report.addition import FigureRow
    from loadgen.results.summary import Run


def render_table(runs: Sequence[tuple[int, Run]], rows: Sequence[FigureRow]) -> str:
    """Render rows of figures below the names of their runs.

    Args:
        runs: The runs of the columns, with their numbers in the report.
        rows: A cell for each run.
    """
    heads = "".join(
        f'<th scope="col">{key_mark(index)} {escape(run.summary.label)}</th>' for index, run in runs
    )
    body, group = [], ""
    for row in rows:
        if row.group != group:
            group = row.group
            span = len(runs) + 1
            body.append(f'<tr><th scope="rowgroup" colspan="{span}">{escape(group)}</th></tr>')
        body.append(_row(row))
    return (
        f'<div class="scroll"><table><thead><tr><th></th>{heads}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _row(row: FigureRow) -> str:
    cells = "".join(
        f'<td class="bad">{escape(text)}</td>' if bad else f"<td>{escape(text)}</td>"
        for text, bad in zip(row.cells, row.alarming, strict=True)
    )
    css = ' class="reason"' if row.measure.startswith(" ") else ""
    return f'<tr><th scope="row"{css}>{escape(row.measure.strip())}</th>{cells}</tr>'
