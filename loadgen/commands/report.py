"""``loadgen report``: one HTML page from finished run directories."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - Typer reads the annotations at run time
from typing import Annotated

import typer

from loadgen.report.files.derived import PAGE_NAME, write_derived
from loadgen.report.page import write_report
from loadgen.report.tables import summary_console, summary_tables
from loadgen.results.reading import load_document, load_run

_JOINT_NAME = "report.html"
# Pages of one run had this name, too.
_FORWARD = f"""<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={PAGE_NAME}">
<title>Moved</title>
<a href="{PAGE_NAME}">{PAGE_NAME}</a>
"""


def report(
    run_directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_DIR...", help="Directories of finished runs, such as out/runs/NAME."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="HTML file. Default: index.html of the run; for several runs report.html in the "
            "first directory."
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Heading of the page.", show_default="what was run")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print report and summaries as JSON.")
    ] = False,
) -> None:
    """Make one HTML page of finished runs, and print their table.

    Reads only the run directories: the servers may have stopped. The page needs
    no network. For one run without --out also rewrites summary.csv, junit.xml
    and README.md.

    Examples:
      loadgen report out/runs/storm

      loadgen report out/demo/runs/off out/demo/runs/floodgate --out both.html
    """
    first = run_directories[0]
    if out is None and len(run_directories) == 1:
        runs, path = [write_derived(first, title=title)], first / PAGE_NAME
        (first / _JOINT_NAME).write_text(_FORWARD, encoding="utf-8")
    else:
        runs, path = [load_run(each) for each in run_directories], out or first / _JOINT_NAME
        write_report(path, runs, title=title)
    if as_json:
        summaries = [load_document(run.directory) for run in runs]
        content = {"report": str(path), "runs": summaries}
        sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        return
    console = summary_console()
    for table in summary_tables([run.summary for run in runs]):
        console.print(table)
    console.print(f"Report: {path}", soft_wrap=True, highlight=False)
