"""Writes what is made of a run's data: table, checks, histograms, page; always the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.analysis.histograms import HDR_DIRECTORY, forget_histograms, write_histograms
from loadgen.analysis.splits import splits_of
from loadgen.errors import LoadgenError
from loadgen.report.files.junit import render_junit
from loadgen.report.files.markdown import render_markdown
from loadgen.report.files.spreadsheet import render_csv
from loadgen.report.page import write_report
from loadgen.results.reading import load_document, load_run
from loadgen.results.verdict import verdict_of

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.results.summary import Run

PAGE_NAME = "index.html"
DERIVED_NAMES = ("summary.csv", "junit.xml", "README.md", PAGE_NAME)


def write_derived(directory: Path, *, title: str | None = None) -> Run:
    """Make every file that a run directory's data alone decide; return the run that was read.

    Raises:
        RunDirectoryError: Its data are missing or malformed.
        LoadgenError: A file cannot be written.
    """
    run, document = load_run(directory), load_document(directory)
    verdict = verdict_of(document)
    contents = {
        "summary.csv": render_csv(document).encode(),
        "junit.xml": render_junit(document, verdict),
        "README.md": render_markdown(run, verdict).encode(),
    }
    histograms = directory / HDR_DIRECTORY
    try:
        for name, content in contents.items():
            (directory / name).write_bytes(content)
        forget_histograms(histograms)
        seconds = float(document.get("duration_seconds") or 0.0)
        write_histograms(histograms, run.rows, splits_of(run.rows), seconds)
    except OSError as error:
        raise LoadgenError(f"{directory} cannot be written: {error.strerror}") from error
    write_report(directory / PAGE_NAME, [run], title=title)
    return run
