"""Tables and texts of pages: everything is escaped, numbers have their unit by their column."""

from __future__ import annotations

import json
import math
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

from loadgen.engine.rows import Outcome
from loadgen.results.units import cell, columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_NOUNS = {
    **dict.fromkeys(map(str, Outcome), "requests"),
    "back": "clients",
    "rate": "of clients",
    "kinds": "answers",
}
"""Nouns of columns whose name does not say what is counted."""
_ITEMS_SHOWN = 5
"""A run has hundreds of namespaces; the first ones tell what they look like."""
_MOST_ROWS = 100
_LONG = 40
"""Letters of a text that may be wrapped between its words; a name stays on one line."""


def table(rows: Sequence[Mapping[str, Any]], hidden: Iterable[str] = ()) -> str:
    """Render rows with their columns, without those of the hidden that hold nothing in any row.

    A number whose column has no unit is a count, of what its name or its head says.
    """
    if not rows:
        return "<p>None.</p>"
    heads, begins = [], {}
    for name, words in columns(rows, hidden).items():
        text = any(isinstance(row[name], str | datetime) for row in rows)
        cells = (cell(name, row[name]) for row in rows[:_MOST_ROWS])
        long = text and max(map(len, (words, *cells))) > _LONG
        css = f' class="text{" long" * long}"' if text else ""
        noun = f" <small>{_NOUNS[name]}</small>" if name in _NOUNS and not text else ""
        heads.append(f'<th scope="col"{css}>{escape(words)}{noun}</th>')
        begins[name] = f"<td{css}>"
    body = [
        "".join(f"{td}{escape(cell(name, row[name]))}</td>" for name, td in begins.items())
        for row in rows[:_MOST_ROWS]
    ]
    inner = (
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody><tr>{'</tr><tr>'.join(body)}</tr></tbody>"
    )
    more = len(rows) - _MOST_ROWS
    left = f'<p class="hint">{more:,} further rows are not shown.</p>' if more > 0 else ""
    return f'<div class="scroll"><table>{inner}</table></div>{left}'


def folded(summary: str, body: str, *, opened: bool = False) -> str:
    """Render what is seen when its summary is pressed; the body is HTML."""
    return f"<details{' open' * opened}><summary>{escape(summary)}</summary>{body}</details>"


def flat(values: Mapping[str, Any], prefix: str = "") -> list[dict[str, str]]:
    """Return a JSON object as rows of a dotted name and a text; of long lists the first items."""
    rows: list[dict[str, str]] = []
    for name, value in values.items():
        if isinstance(value, dict) and value:
            rows += flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and len(value) > _ITEMS_SHOWN:
            shown = ", ".join(json.dumps(each) for each in value[:_ITEMS_SHOWN])
            rows.append({"name": f"{prefix}{name}", "value": f"{shown}, … ({len(value):,} in all)"})
        elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
            rows += flat({str(n): each for n, each in enumerate(value)}, f"{prefix}{name}.")
        elif isinstance(value, float) and not math.isfinite(value):
            rows.append({"name": f"{prefix}{name}", "value": "-"})
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            rows.append({"name": f"{prefix}{name}", "value": text})
    return rows
