"""``loadgen sql``: queries of finished runs, in Spark SQL."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from loadgen.errors import UsageError
from loadgen.sql.queries import QUERIES, Query
from loadgen.sql.tables import TABLES, register_tables, run_names, run_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

_SHOWN_ROWS = 200
_FILE_COLUMNS = 1000
_EXACT = 1_000.0


def sql(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN... [SQL]", help="Run directories, then the SQL."),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"Named query in place of SQL: {', '.join(QUERIES)}."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the SQL of the named queries.")
    ] = False,
    master: Annotated[str | None, typer.Option(help="Spark master URL; local without it.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    r"""Query finished runs with Spark SQL. Needs Java.

    Tables: requests, clients, server_metrics and runs; each row has the name of
    its run.

    Examples:
      loadgen sql out/runs/* --query by-family

      loadgen sql out/runs/a out/runs/b \
        "SELECT run, max(bytes) FROM requests GROUP BY run"

      loadgen sql --query timeline --show
    """
    if show:
        wanted = [_named(query)] if query else list(QUERIES.values())
        typer.echo("\n\n".join(f"-- {each.title}\n{each.sql}" for each in wanted))
        return
    words = list(runs or ())
    text = _named(query).sql if query else _last(words)
    if not words:
        raise UsageError("name a run directory, such as out/runs/NAME")
    directories = [Path(word) for word in words]
    for directory, name in run_names(directories).items():
        run_row(name, directory)  # before Spark is started, which takes some seconds
    from loadgen.spark.session import SparkSettings, spark_session

    with spark_session(SparkSettings("loadgen sql", master=master)) as session:
        columns, rows = ask(session, directories, text)
    _print(columns, rows, as_csv=as_csv, as_json=as_json)


def ask(
    session: SparkSession, directories: Sequence[Path], text: str
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns and rows that a question to some runs is answered with.

    Raises:
        UsageError: It is no SQL that these tables can answer.
    """
    from pyspark.errors import AnalysisException, ParseException

    register_tables(session, directories)
    try:
        frame = session.sql(text)
        return list(frame.columns), [tuple(row) for row in frame.collect()]
    except (AnalysisException, ParseException) as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(f"{reason} (tables: {', '.join(TABLES)})") from None


def _named(name: str) -> Query:
    if name not in QUERIES:
        raise UsageError(f"--query {name[:40]!r} is none of {', '.join(QUERIES)}")
    return QUERIES[name]


def _last(words: list[str]) -> str:
    """Take the SQL from the end of the words."""
    if not words or Path(words[-1]).is_dir():
        raise UsageError(
            'give the SQL after the runs, such as "SELECT * FROM runs", or --query NAME'
        )
    return words.pop()


def cell(value: object) -> str:
    """Return a value of a table for people: three digits of what was measured."""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < _EXACT else f"{value:,.0f}"
    return "" if value is None else str(value)


def _print(columns: list[str], rows: list[tuple[Any, ...]], *, as_csv: bool, as_json: bool) -> None:
    if as_json:
        found = [dict(zip(columns, row, strict=True)) for row in rows]
        sys.stdout.write(f"{json.dumps(found, default=str)}\n")
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([columns, *rows])
    else:
        table = Table(box=None, pad_edge=False, collapse_padding=True)
        for column in columns:
            table.add_column(column.replace("_", " "), overflow="fold")
        for row in rows[:_SHOWN_ROWS]:
            table.add_row(*(cell(value) for value in row))
        # Into a file or a pipe a row is a line.
        width = None if sys.stdout.isatty() else _FILE_COLUMNS
        Console(width=width).print(table)
        if len(rows) > _SHOWN_ROWS:
            typer.echo(f"and {len(rows) - _SHOWN_ROWS:,} more rows; --csv prints all", err=True)
