"""The commands ``loadgen report``, ``picture`` and ``sql``, which read finished runs."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.options import AsJson  # noqa: TC001 (evaluated by Typer)
from loadgen.commands.shown import print_json
from loadgen.errors import UsageError, read_text, write_text
from loadgen.report.page import (
    PAGE_NAME,
    comparison_page,
    picture_of,
    run_page,
    write_page,
)
from loadgen.results.asking import MOST_ROWS, as_csv, as_text, questions, run_sql
from loadgen.results.asking import as_json as json_of
from loadgen.results.files import write_files
from loadgen.results.questions import QUERIES
from loadgen.results.results import Results
from loadgen.results.summary import summary_of
from loadgen.results.verdict import verdict_of
from loadgen.stored import placed

_JOINT_NAME = "report.html"
_FILE_ROWS = 10_000_000


def report(
    run_directories: list[Path],
    out: Path | None = None,
    title: str | None = None,
    as_json: AsJson = False,
) -> None:
    """Make one HTML page of finished runs; several runs are compared, with overlaid charts.

    Reads only the run directories: the servers may have stopped. The page needs
    no network. For one run without --out also writes summary.json, summary.csv,
    junit.xml and README.md again.

    Examples:
      loadgen report out/runs/storm

      loadgen report out/demo/runs/off out/demo/runs/floodgate --out both.html

    Options:
        run_directories (RUN_DIR...): Finished runs, such as out/runs/NAME.
        out (FILE): The page. Default: index.html of the run, or report.html in the first of
            several.
        title (TEXT): Heading of the page. Default: the run's title.
    """
    with ExitStack() as stack:
        runs = [stack.enter_context(Results.open(each)) for each in run_directories]
        if len(runs) == 1:
            path = out or run_directories[0] / PAGE_NAME
            page = run_page(runs[0], title)
            if out is None:
                write_files(runs[0])
        else:
            path = out or run_directories[0] / _JOINT_NAME
            page = comparison_page(runs, title)
        write_page(path, page)
        verdicts = [verdict_of(run) for run in runs]
        summaries = [summary_of(*each) for each in zip(runs, verdicts, strict=True)]
    if as_json:
        print_json({"report": path, "runs": summaries})
        return
    for summary, verdict in zip(summaries, verdicts, strict=True):
        called = summary.title.rstrip(".") or summary.name
        sys.stdout.write(f"{called}: {verdict.word}, {verdict.count}\n")
    sys.stdout.write(f"Report: {path}\n")


def picture(
    run_directories: list[Path],
    chart: list[str] | None = None,
    columns: int = 2,
    out: Path = Path("picture.svg"),
) -> None:
    """Draw charts of finished runs as one SVG file, light and dark like the embedding page.

    Examples:
      loadgen picture out/demo/runs/off out/demo/runs/floodgate

      loadgen picture out/runs/stuck --chart each.list --out stuck.svg

    Options:
        run_directories (RUN_DIR...): Finished runs, to be overlaid.
        chart (NAME): Charts of the page of a kind, such as servers, or a single chart, such as
            servers.resident; may be repeated. Default: memory and outcomes.
        columns: Charts beside each other.
        out (FILE): The file.
    """
    memory = "servers.resident" if len(run_directories) == 1 else "servers.over-idle"
    with ExitStack() as stack:
        opened = [stack.enter_context(Results.open(each)) for each in run_directories]
        write_text(out, picture_of(opened, chart or [memory, "outcomes"], columns))
    sys.stdout.write(f"Picture: {out}\n")


def sql(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN_DIR... QUESTION",
            help="Run directories, then SQL or the name of a shipped question.",
        ),
    ] = None,
    file: Path | None = None,
    show: str | None = None,
    csv: bool = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    r"""Query finished runs, in SQL. Without arguments lists the shipped questions.

    Tables: requests, events, samples; measured, groups and runs. Each row has the
    name of its run.

    Examples:
      loadgen sql out/runs/* by-family

      loadgen sql out/runs/a out/runs/b \
        "SELECT run, max(bytes) FROM requests GROUP BY run"

      loadgen sql out/runs/a --file query.sql --csv

      loadgen sql --show by-second

    Options:
        file (FILE): File with the SQL, in place of the last argument.
        show (NAME): Print the SQL of a shipped question.
        csv: Print the rows as CSV.
    """
    if show is not None:
        if show not in QUERIES:
            raise UsageError(f"--show {show[:40]!r} is none of {', '.join(QUERIES)}")
        sys.stdout.write(f"{QUERIES[show].written}\n")
        return
    if not words:
        sys.stdout.write(questions())
        return
    *directories, text = words if file is None else [*words, read_text("--file", file)]
    if not directories or os.path.isdir(text):  # Unlike Path's, false for a text of any length.
        raise UsageError(
            'name run directories, then the question, such as by-group or "SELECT * FROM runs"'
        )
    most = _FILE_ROWS if csv or as_json else MOST_ROWS
    answer = run_sql([placed(Path(each)) for each in directories], text, most)
    sys.stdout.write(json_of(answer) if as_json else as_csv(answer) if csv else as_text(answer))
