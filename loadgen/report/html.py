"""Tables and texts of pages: everything is escaped, numbers have their unit by their column."""

from __future__ import annotations

import json
import math
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

from loadgen.engine.rows import Outcome
from loadgen.results.units import Unit, in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SECONDS = {"p50", "p90", "p99", "p999", "max", "due", "sent", "first_byte", "done", "at"}
_NOUNS = {
    **dict.fromkeys(map(str, Outcome), "requests"),
    "back": "clients",
    "rate": "of clients",
    "kinds": "answers",
}
"""What the numbers of a column count, where its name does not say it."""
_HEADS = {
    "p999": "p99.9",
    "max": "slowest",
    "first_byte": "first byte",
    "response_seconds": "response",
    "service_seconds": "service",
    "part": "",
}
_ITEMS_SHOWN = 5
"""A run has hundreds of namespaces; the first ones tell what they look like."""
_LONGEST_TEXT = 400
_MOST_ROWS = 100


def unit_of(column: str) -> Unit:
    """Return the unit of a column by its name."""
    if column in _SECONDS or column.endswith(("_seconds", "_sent", "_due", "_done")):
        return Unit.SECONDS
    known = {"rate": Unit.SHARE, "cpu_share": Unit.SHARE}
    return known.get(column, Unit.BYTES if column.endswith("bytes") else Unit.COUNT)


def cell(column: str, value: object) -> str:
    """Write one value of a table, not yet escaped."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return in_words(unit_of(column), value)
    text = value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def table(rows: Sequence[Mapping[str, Any]], hidden: Iterable[str] = ()) -> str:
    """Render rows with their columns, without those of the hidden that hold nothing in any row.

    A number whose column has no unit is a count, of what its name or its head says.
    """
    if not rows:
        return "<p>None.</p>"
    empty = {name for name in hidden if not any(row[name] for row in rows)}
    names = [name for name in rows[0] if name not in empty]
    texts = {name for name in names if any(isinstance(row[name], str | datetime) for row in rows)}
    css = {name: ' class="text"' if name in texts else "" for name in names}
    head = "".join(f'<th scope="col"{css[name]}>{_head(name, texts)}</th>' for name in names)
    cells = [
        "".join(f"<td{css[name]}>{escape(cell(name, row[name]))}</td>" for name in names)
        for row in rows[:_MOST_ROWS]
    ]
    body = "".join(f"<tr>{each}</tr>" for each in cells)
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    more = len(rows) - _MOST_ROWS
    left = f'<p class="hint">{more:,} further rows are not shown.</p>' if more > 0 else ""
    return f'<div class="scroll"><table>{inner}</table></div>{left}'


def _head(name: str, texts: Iterable[str]) -> str:
    noun = _NOUNS.get(name, "") if name not in texts else ""
    small = f" <small>{escape(noun)}</small>" if noun else ""
    return f"{escape(_HEADS.get(name, name.replace('_', ' ')))}{small}"


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
