"""Cells of tables, in a README and on the page: numbers have their unit by their column."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from loadgen.results.units import Unit, in_words
from loadgen.results.vocabulary import unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SECONDS = {"p50", "p90", "p99", "p999", "max", "due", "sent", "first_byte", "done", "at"}
_HEADS = {
    "p999": "p99.9",
    "max": "slowest",
    "response_seconds": "response",
    "service_seconds": "service",
    "part": "",
}
SELDOM = ("refused", "wrong", "timeout", "disconnected", "unreachable")
"""Columns of requests that often hold nothing."""
_LONGEST_TEXT = 400
_SPECIAL = {
    **str.maketrans({each: f"\\{each}" for each in "\\|`*_[]<>#"} | {"&": "&amp;"}),
    **dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029), " "),
}


def columns(rows: Sequence[Mapping[str, Any]], hidden: Iterable[str] = ()) -> dict[str, str]:
    """Return the columns of rows and their heads; those hidden that hold something in a row."""
    empty = {name for name in hidden if not any(row[name] for row in rows)}
    names = (name for name in rows[0] if name not in empty)
    return {name: _HEADS.get(name, name.replace("_", " ")) for name in names}


def cell(column: str, value: object) -> str:
    """Write one value of a table, not yet escaped; a number without a unit is a count."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return in_words(unit_of_column(column), value)
    text = value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def plain(text: str) -> str:
    """Write a text as a part of one line of Markdown: it has no lines and no marks of its own."""
    return text.translate(_SPECIAL)


def unit_of_column(column: str) -> Unit:
    """Return the unit of a column of numbers, by its name."""
    if column in _SECONDS or column.endswith(("_seconds", "_sent", "_due", "_done")):
        return Unit.SECONDS
    if column == "rate":
        return Unit.SHARE
    return Unit.BYTES if column.endswith("bytes") else Unit.COUNT


def of_server(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a row of the question about servers in words: each has a unit of its own."""
    unit, noun = unit_of(row["figure"])
    figures = {"first": "first", "last": "last", "most": "max", "rise": "rise"}
    told = {words: in_words(unit, row[name], noun) for words, name in figures.items()}
    return {"process": row["process"], "figure": row["figure"], **told}
