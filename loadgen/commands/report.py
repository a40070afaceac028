"""``loadgen report``: one HTML page from finished run directories."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path  # noqa: TC003 - Typer reads the annotations at run time
from typing import Annotated

import typer

from loadgen.report.page import PAGE_NAME, comparison_page, run_page, write_page
from loadgen.results.files import write_files
from loadgen.results.results import Results
from loadgen.results.summary import summary_of
from loadgen.results.verdict import verdict_of

_JOINT_NAME = "report.html"


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
        bool, typer.Option("--json", help="Print the page's path and the summaries as JSON.")
    ] = False,
) -> None:
    """Make one HTML page of finished runs; of several side by side, with the same charts overlaid.

    Reads only the run directories: the servers may have stopped. The page needs
    no network. For one run without --out also writes summary.json, summary.csv,
    junit.xml and README.md again.

    Examples:
      loadgen report out/runs/storm

      loadgen report out/demo/runs/off out/demo/runs/floodgate --out both.html
    """
    with ExitStack() as stack:
        runs = [stack.enter_context(Results.open(each)) for each in run_directories]
        if len(runs) == 1:
            path = out or run_directories[0] / PAGE_NAME
            if out is None:
                write_files(runs[0])
            page = run_page(runs[0], title)
        else:
            path = out or run_directories[0] / _JOINT_NAME
            page = comparison_page(runs, title)
        write_page(path, page)
        verdicts = [verdict_of(run) for run in runs]
        summaries = [summary_of(*each) for each in zip(runs, verdicts, strict=True)]
    if as_json:
        told = {"report": str(path), "runs": [each.model_dump(mode="json") for each in summaries]}
        sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
        return
    for summary, verdict in zip(summaries, verdicts, strict=True):
        sys.stdout.write(f"{summary.title or summary.name}: {verdict.word}, {verdict.count}\n")
    sys.stdout.write(f"Report: {path}\n")
