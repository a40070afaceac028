"""``loadgen compare``: groups of finished runs against each other."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - Typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated

import typer

from loadgen.analysis.compare import FinishedRun, compare
from loadgen.analysis.comparison_text import document_of, markdown_of, sentences, table_of
from loadgen.errors import UsageError
from loadgen.report.tables import summary_console
from loadgen.results.reading import load_description, load_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.analysis.compare import Comparison


def compare_runs(
    run_directories: Annotated[
        list[Path],
        typer.Argument(metavar="RUN_DIR...", help="Directories that `loadgen run` has written."),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Label of the runs that others are compared with.", show_default="the first one's"
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare runs of different scenarios, too.")
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(help="Write the comparison as Markdown to this file.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare finished runs: medians of repeats, and whether a difference is shown.

    Runs of one label and one scenario are repeats of each other. Each figure is
    tested by ranks; where repeats are too few, it says how many are needed.

    Examples:
      loadgen compare out/runs/off-* out/runs/floodgate-* --baseline "Limits off"
    """
    show(compare(load_runs(run_directories), baseline, force=force), markdown, as_json=as_json)


def load_runs(directories: Sequence[Path]) -> list[FinishedRun]:
    """Read what is compared of run directories.

    Raises:
        UsageError: One of them is none, or is named twice.
    """
    places = [directory.resolve() for directory in directories]
    for place, directory in zip(places, directories, strict=True):
        if places.count(place) > 1:
            raise UsageError(f"{directory} is named twice: a run cannot be its own repeat")
    return [
        FinishedRun(str(each), load_description(each), load_document(each)) for each in directories
    ]


def show(comparison: Comparison, markdown: Path | None, *, as_json: bool) -> None:
    """Print a comparison, and write it where that is wanted.

    Raises:
        UsageError: It cannot be written there.
    """
    if markdown is not None:
        try:
            markdown.parent.mkdir(parents=True, exist_ok=True)
            markdown.write_text(markdown_of(comparison), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--markdown {markdown} cannot be written: {error.strerror}") from None
    if as_json:
        sys.stdout.write(json.dumps(document_of(comparison), indent=2, ensure_ascii=False) + "\n")
        return
    console = summary_console()
    console.print(table_of(comparison))
    for sentence in sentences(comparison):
        console.print(sentence, markup=False, highlight=False)
