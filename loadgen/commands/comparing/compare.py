"""``loadgen compare``: groups of finished runs against each other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loadgen.analysis.agreement import page_of
from loadgen.analysis.compare import FinishedRun, compare
from loadgen.analysis.comparison_text import document_of, markdown_of, sentences, table_of
from loadgen.commands.comparing.beside import PAGE_NAME, REPORT_NAME, Sides, run_both
from loadgen.errors import UsageError
from loadgen.report.page import write_report
from loadgen.report.tables import summary_console
from loadgen.results.reading import load_description, load_document, load_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.analysis.compare import Comparison


def compare_runs(  # noqa: PLR0913 (each parameter is an option of the command)
    run_directories: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN_DIR...",
            help="Directories of finished runs, such as out/runs/NAME. With --beside: -- and "
            "then the arguments of `loadgen run`.",
        ),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Label of the runs that the others are compared with.",
            show_default="the first one's",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also compare runs of different scenarios.")
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(help="Write the comparison as Markdown to this file.", show_default=False),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            help="Address of a real Pulsar: a scenario runs there and on Floodgate in turn, and "
            "the report says where both agree.",
            show_default=False,
        ),
    ] = None,
    beside_admin_url: Annotated[
        str | None,
        typer.Option(
            help="http://host:port of that Pulsar, to read its metrics.", show_default=False
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each side, with --beside.")] = 3,
    out: Annotated[
        Path, typer.Option(help="Directory for the runs of --beside and their page, beside.md.")
    ] = Path("out/beside"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    r"""Compare finished runs: medians, and whether differences are significant.

    Runs with the same label and scenario are repeats of each other. Each figure
    gets a rank test; with too few repeats the output says how many it needs.

    Examples:
      loadgen compare out/runs/off-* out/runs/floodgate-* --baseline "Limits off"

      loadgen compare --beside pulsar://127.0.0.1:6650 \
        --beside-admin-url http://127.0.0.1:8080 \
        -- storm --namespace public/default --clients 50
    """
    if beside is None:
        runs = load_runs([Path(each) for each in run_directories])
        show(compare(runs, baseline, force=force), markdown, as_json=as_json)
        return
    sides = Sides(run_directories, beside, beside_admin_url, out, repeats)
    runs = load_runs(run_both(sides))
    comparison = compare(runs, force=True)
    page = page_of(comparison, versions(comparison), sides.command)
    write_page(out / PAGE_NAME, page)
    last = [load_run(Path(group.runs[-1].place)) for group in comparison.groups]
    write_report(out / REPORT_NAME, last, title="Floodgate beside Pulsar")
    show(comparison, markdown, as_json=as_json)
    if not as_json:
        where = f"This page is {out / PAGE_NAME}, both over time {out / REPORT_NAME}"
        sys.stdout.write(f"\n{page}\n{where}\n")


def versions(comparison: Comparison) -> list[str]:
    """Return what the servers of each group call their version."""
    told = [group.runs[0].summary.get("server_version") for group in comparison.groups]
    return [str(each or "of unknown version") for each in told]


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


def write_page(path: Path, page: str) -> None:
    """Write a page of Markdown.

    Raises:
        UsageError: It cannot be written there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def show(comparison: Comparison, markdown: Path | None, *, as_json: bool) -> None:
    """Print a comparison, and write it where that is wanted."""
    if markdown is not None:
        write_page(markdown, markdown_of(comparison))
    if as_json:
        sys.stdout.write(json.dumps(document_of(comparison), indent=2, ensure_ascii=False) + "\n")
        return
    console = summary_console()
    console.print(table_of(comparison))
    for sentence in sentences(comparison):
        console.print(sentence, markup=False, highlight=False)
