"""Units of figures: parsing values with a unit, and formatting them for people and tables.

The name of a table's column determines the unit of its numbers.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from loadgen.engine.rows import Outcome
from loadgen.units import format_bytes, format_count, format_seconds, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


class Unit(StrEnum):
    """The units that a run's figures can have."""

    SECONDS = "seconds"
    SHARE = "share"
    COUNT = "count"
    BYTES = "bytes"
    RATE = "requests a second"
    NUMBER = "number"


EXAMPLES = {
    Unit.SECONDS: "2s, 250ms, 2m or 1m30s",
    Unit.SHARE: "0.1%",
    Unit.COUNT: "a whole number",
    Unit.BYTES: "1GiB, 512MB or a number of bytes",
    Unit.RATE: "100/s",
}
"""Examples of the values in expectations; no expectation has a plain number."""
_NUMBER = r"(\d+(?:\.\d+)?)\s*"
_FORMS = {
    Unit.SECONDS: (
        rf"(?:{_NUMBER}h\s*)?(?:{_NUMBER}m(?:in)?\s*)?(?:{_NUMBER}s\s*)?(?:{_NUMBER}ms)?",
        (3600.0, 60.0, 1.0, 0.001),
    ),
    Unit.SHARE: (f"{_NUMBER}%", (0.01,)),
    Unit.COUNT: (r"(\d[\d,]*)", (1.0,)),
    Unit.RATE: (rf"{_NUMBER}/\s*s", (1.0,)),
}
"""The ways to write a value in each unit, as patterns, and the factor of each number."""


def value_of(unit: Unit, written: str) -> float:
    """Parse a value written in a unit, such as ``250ms`` or ``0.1%``.

    Raises:
        ValueError: The text does not have the form of these examples.
        UsageError: The text is not a number of bytes, if the unit is bytes.
    """
    if unit is Unit.BYTES:
        return parse_size("", written)
    form, worth = _FORMS[unit]
    found = re.fullmatch(form, written)
    numbers = zip(found.groups(), worth, strict=True) if found else ()
    told = [float(each.replace(",", "")) * one for each, one in numbers if each]
    if not told or (unit is Unit.SHARE and sum(told) > 1):
        raise ValueError(written)
    return round(sum(told), 12)


def _seconds(value: float) -> str:
    return f"{value * 1e3:.2g} ms" if 0 < abs(value) < 0.00995 else format_seconds(value)


_WORDS: dict[Unit, Callable[[float], str]] = {
    Unit.SECONDS: _seconds,
    # A share below 1 is never rounded up to 100 %.
    Unit.SHARE: lambda value: f"{min(value * 100, 99.99 if value < 1 else math.inf):.4g} %",
    Unit.COUNT: format_count,
    Unit.BYTES: format_bytes,
    Unit.RATE: "{:,.4g}/s".format,
    Unit.NUMBER: "{:,.4g}".format,
}


def in_words(unit: Unit, value: float | None, noun: str = "") -> str:
    """Format a value with its unit or noun; an infinite value becomes ``never``."""
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "never"
    counts = noun and unit in (Unit.COUNT, Unit.NUMBER)
    return f"{_WORDS[unit](value)} {noun}" if counts else _WORDS[unit](value)


# -- cells of tables ------------------------------------------------------------------------------

_SECONDS_COLUMNS = {"p50", "p90", "p99", "p999", "max", "due", "sent", "first_byte", "done", "at"}
_HEADS = {
    "p999": "p99.9",
    "max": "slowest",
    "response_seconds": "response",
    "service_seconds": "service",
    "part": "",
    "asked": "lists and watches",
}
LOST = (Outcome.WRONG, Outcome.TIMEOUT, Outcome.DISCONNECTED, Outcome.UNREACHABLE)
"""Outcomes of requests that failed: neither answered nor refused."""
SELDOM = ("refused", *LOST)
"""Columns of requests that are often empty."""
_LONGEST_TEXT = 400
_SPECIAL = {
    **str.maketrans({each: f"\\{each}" for each in "\\|`*_[]<>#"} | {"&": "&amp;"}),
    **dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029), " "),
}


def columns(rows: Sequence[Mapping[str, Any]], hidden: Iterable[str] = ()) -> dict[str, str]:
    """Return the heads of rows' columns by name; empty columns in ``hidden`` are left out."""
    empty = {name for name in hidden if not any(row[name] for row in rows)}
    names = (name for name in rows[0] if name not in empty)
    return {name: _HEADS.get(name, name.replace("_", " ")) for name in names}


def cell(column: str, value: object) -> str:
    """Format a table's value as unescaped text; the column's name determines the unit."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return in_words(unit_of_column(column), value)
    text = value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def plain(text: str) -> str:
    """Escape a text, and remove its line breaks, for use within a line of Markdown."""
    return text.translate(_SPECIAL)


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; cells are not escaped."""
    first, *others = (f"| {' | '.join(cells)} |" for cells in (heads, *rows))
    return [first, f"|{'---|' * len(heads)}", *others]


def paths(value: object, name: str = "", most: int | None = None) -> Iterator[tuple[str, object]]:
    """Yield each value of a JSON document with its dotted path.

    Args:
        value: The JSON document, or a part of it.
        name: The dotted path of that part.
        most: The number of items to yield of each list; None for all.
    """
    inner = dict(enumerate(value[:most])) if isinstance(value, list) else value
    if not isinstance(inner, dict):
        yield name, value
        return
    for key, each in inner.items():
        yield from paths(each, f"{name}.{key}" if name else str(key), most)
    if isinstance(value, list) and len(value) > len(inner):
        yield name, f"… ({len(value):,} in all)"


def unit_of_column(column: str) -> Unit:
    """Return the unit of the numbers in a column, as its name determines it."""
    if column in _SECONDS_COLUMNS or column.endswith(("_seconds", "_sent", "_due", "_done")):
        return Unit.SECONDS
    if column == "rate":
        return Unit.SHARE
    return Unit.BYTES if column.endswith("bytes") else Unit.COUNT
