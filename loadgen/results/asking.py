"""``loadgen sql``: runs a user's SQL query on the tables of one or several runs.

A query cannot write a file or read a foreign file: only single SELECT statements are accepted, and
DuckDB may open only the files of the runs.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
from pydantic_core import to_json

from loadgen.errors import UsageError
from loadgen.results.questions import QUERIES
from loadgen.results.results import VIEWS, Results
from loadgen.results.tables import TABLES
from loadgen.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MOST_ROWS = 1_000
_WIDEST_CELL = 80
_RESERVED = re.compile(r"(?<![\".\w])group\b(?!\s+by)", re.IGNORECASE)
"""The column whose name is a word of SQL."""


class Rows(NamedTuple):
    """The rows that a query returned; ``more`` is true if the query had further rows."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    more: bool = False


def run_sql(directories: Sequence[Path], text: str, most: int = MOST_ROWS) -> Rows:
    """Run an SQL query on several runs together, or a shipped query, given by name, on each run.

    Raises:
        RunDirectoryError: A directory is not the directory of a run, or not of this version.
        UsageError: The text is not a single query, or DuckDB does not understand the query.
    """
    if text in QUERIES:
        rows, columns = list[tuple[Any, ...]](), list[str]()
        for directory in directories:
            with Results.open(directory) as results:
                run = results.run["run"]
                rows += [(run, *row.values()) for row in results.sql(QUERIES[text].sql)]
                columns = ["run", *results.columns]
        return Rows(columns, rows[:most], len(rows) > most)
    if len(text.split()) < 2:
        near = get_close_matches(text, QUERIES)
        remedy = f"ask one of {', '.join(near or QUERIES)}, or SQL in quotes"
        raise UsageError(f"there is no question {text[:60]!r}: {remedy}")
    with Results.open(*directories) as results:
        folders = [str((each / table).resolve()) for each in results.folders for table in TABLES]
        results.connection.execute("SET allowed_directories = $1", [[*folders, results.spill]])
        results.connection.execute("SET enable_external_access = false")
        results.connection.execute("SET lock_configuration = true")
        return _asked(results.connection, text, most)


def _asked(connection: duckdb.DuckDBPyConnection, text: str, most: int) -> Rows:
    try:
        statements = connection.extract_statements(text)
        if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
            raise UsageError(
                "a question is one SELECT: runs are never changed; to write a table, say --csv or "
                "--json"
            )
        answer = connection.execute(statements[0])
        found = answer.fetchmany(most + 1)
    except duckdb.Error as error:
        said, hint, *_ = *str(error).splitlines(), ""
        remedy = f"there are the tables {', '.join(VIEWS)}"
        if hint.startswith("Candidate"):
            remedy = f"c{hint[1:]}"
        if "syntax error" in said and _RESERVED.search(text):
            remedy = 'write "group" in double quotes, or r.group of requests r: it is a word of SQL'
        raise UsageError(f"{said.rstrip('!')}; {remedy}") from None
    columns = [column[0] for column in answer.description or ()]
    return Rows(columns, found[:most], len(found) > most)


def as_json(answer: Rows) -> str:
    """Format query rows as JSON objects; infinity becomes null, bytes become hexadecimal digits."""
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    text = to_json(rows, indent=1, inf_nan_mode="null", bytes_mode="hex", fallback=str)
    return f"{text.decode()}\n"


def as_csv(answer: Rows) -> str:
    """Format query rows as CSV; infinity is written as ``inf``."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows(answer.rows)
    return out.getvalue()


def as_text(answer: Rows) -> str:
    """Format query rows as a table for a terminal, with a line at the end if rows were cut off."""
    columns = []
    for place, name in enumerate(answer.columns):
        values = [row[place] for row in answer.rows]
        cells = [name, *map(_cell, values)]
        side = ">" if any(isinstance(value, int | float) for value in values) else "<"
        columns.append([f"{cell:{side}{max(map(len, cells))}}" for cell in cells])
    lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
    if answer.more:
        lines.append(f"... and more: {format_count(len(answer.rows))} rows are shown")
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:  # noqa: ANN401 - whatever a column holds
    if isinstance(value, float):
        form = ".6g" if abs(value) < 1e6 else ",.0f"
        return f"{value:{form}}" if math.isfinite(value) else "never"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    told = "" if value is None else str(value)
    text = "".join(letter if letter.isprintable() else " " for letter in told)
    return text if len(text) <= _WIDEST_CELL else f"{text[: _WIDEST_CELL - 3]}..."


def questions() -> str:
    """Return the names and titles of all shipped queries, one per line."""
    widest = max(map(len, QUERIES))
    return "".join(f"{name:{widest}}  {query.title}\n" for name, query in QUERIES.items())
