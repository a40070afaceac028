"""``loadgen report``, ``compare`` and ``sql``: what finished runs are asked."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loadgen.commands.run import (
    AdminUrl,
    AsJson,
    Confirmed,
    ServiceUrl,
    Settings,
    parse_admin_urls,
    shown_run,
    wanted,
    watched,
)
from loadgen.commands.shown import fail_if_not_fine, print_json, show_comparison, write_text
from loadgen.errors import ExitCode, UsageError
from loadgen.places.loopback import require_own_cluster
from loadgen.places.options import RunOptions
from loadgen.report.page import PAGE_NAME, comparison_page, run_page, write_page
from loadgen.results.asking import MOST_ROWS, as_csv, as_text, questions, run_sql
from loadgen.results.asking import as_json as json_of
from loadgen.results.comparing import markdown_of
from loadgen.results.files import write_files
from loadgen.results.results import QUERIES, Results
from loadgen.results.summary import summary_of
from loadgen.results.verdict import verdict_of
from loadgen.studies.repeats import beside as beside_pulsar
from loadgen.studies.repeats import compared, run_sides
from loadgen.studies.repeats import profiles as both_profiles

if TYPE_CHECKING:
    from loadgen.results.comparing import Comparison

_JOINT_NAME = "report.html"
_FILE_ROWS = 10_000_000
BESIDE_PAGE, BESIDE_REPORT = "beside.md", "beside.html"
RunDirectories = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN_DIR...", help="Directories of finished runs, such as out/runs/NAME."
    ),
]


def report(
    run_directories: RunDirectories,
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
    as_json: AsJson = False,
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
        told = [each.model_dump(mode="json") for each in summaries]
        print_json({"report": str(path), "runs": told})
        return
    for summary, verdict in zip(summaries, verdicts, strict=True):
        sys.stdout.write(f"{summary.title or summary.name}: {verdict.word}, {verdict.count}\n")
    sys.stdout.write(f"Report: {path}\n")


# -- compare --------------------------------------------------------------------------------------


def compare_runs(  # noqa: PLR0913 (each parameter is an option of the command)
    run_directories: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN_DIR...",
            help="Directories of finished runs, such as out/runs/NAME. With --beside "
            "or --profiles: the document, NAME or FILE.",
        ),
    ],
    *,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Label of the runs that the others are compared with.",
            show_default="the first one's",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also compare runs of different documents.")
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(help="Write the comparison as Markdown to this file.", show_default=False),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Address of a real Pulsar: a document runs there and on Floodgate in turn, and "
            "the report says where both agree.",
            show_default=False,
        ),
    ] = None,
    beside_admin_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="http://host:port of that Pulsar, to read its metrics.",
            show_default=False,
        ),
    ] = None,
    profiles: Annotated[
        bool,
        typer.Option(
            "--profiles",
            help="Run a document's own servers as Floodgate and as in Pulsar, in turn.",
        ),
    ] = False,
    settings: Settings = None,
    service_url: ServiceUrl = "",
    admin_url: AdminUrl = None,
    repeats: Annotated[
        int, typer.Option(min=1, help="Runs of each side, with --beside or --profiles.")
    ] = 5,
    out: Annotated[
        Path, typer.Option(help="Directory for these runs and their page, beside.md.")
    ] = Path("out/beside"),
    confirmed: Confirmed = False,
    as_json: AsJson = False,
) -> None:
    r"""Compare finished runs: medians, and whether differences are significant.

    Runs with the same title and document are repeats of each other. With five
    repeats it also says which figures agree.

    Examples:
      loadgen compare out/runs/off-* out/runs/floodgate-* --baseline "Limits off"

      loadgen compare storm --beside pulsar://127.0.0.1:6650 \
        --beside-admin-url http://127.0.0.1:8080 \
        --set topics.corpus=out/topics
    """
    if beside is None and not profiles:
        directories = [Path(each) for each in run_directories]
        _show(compared(directories, baseline, force=force), markdown, as_json=as_json)
        return
    if len(run_directories) != 1:
        raise UsageError("--beside and --profiles run one document: name that alone")
    for url in filter(None, (beside, service_url)):
        require_own_cluster(url, confirmed=confirmed)
    urls, pids = parse_admin_urls(admin_url or ())
    document = wanted(run_directories[0], settings)
    options = RunOptions(
        out, written=document.written, service_url=service_url, admin_urls=urls, pids=pids
    )
    sides = both_profiles(document, options)
    if beside is not None:
        sides = beside_pulsar(document, options, beside, beside_admin_url or "")
    run_once, show = watched(as_json=as_json), shown_run(as_json=True)
    finished = run_sides(sides, repeats, show, run_once)
    for each in finished:
        if each.verdict.exit_code is ExitCode.INTERRUPTED:
            fail_if_not_fine(each.verdict)
    directories = [each.directory for each in finished]
    comparison = compared(directories, force=True)
    write_text(out / BESIDE_PAGE, markdown_of(comparison))
    with ExitStack() as stack:
        last = (directories[repeats - 1], directories[-1])
        results = [stack.enter_context(Results.open(each)) for each in last]
        write_page(out / BESIDE_REPORT, comparison_page(results, document.title))
    _show(comparison, markdown, as_json=as_json)
    if not as_json:
        where = f"This page is {out / BESIDE_PAGE}, both over time {out / BESIDE_REPORT}"
        sys.stdout.write(f"{where}\n")


def _show(comparison: Comparison, markdown: Path | None, *, as_json: bool) -> None:
    """Print a comparison, and write it where that is wanted."""
    if markdown is not None:
        write_text(markdown, markdown_of(comparison))
    if as_json:
        print_json(_document_of(comparison))
        return
    show_comparison(comparison)
    agree, of = comparison.agreed()
    for sentence in (
        f"They agree in {agree} of {of} figures."
        if comparison.enough
        else "Too few repeats to tell whether they agree: five of each are needed.",
        *(f"Left out: {doubt}." for doubt in comparison.doubts),
        *(["They were not asked alike: " + ", ".join(comparison.unlike)] * bool(comparison.unlike)),
    ):
        sys.stdout.write(f"{sentence}\n")


def _document_of(comparison: Comparison) -> dict[str, Any]:
    return {
        "schema_version": 2,
        "groups": {label: [run.place for run in runs] for label, runs in comparison.groups.items()},
        "figures": [
            {
                "figure": row.figure,
                "unit": row.unit,
                "values": [list(side.values) for side in row.sides],
                "differences": [each and asdict(each) for each in row.differences],
            }
            for row in comparison.rows
        ],
        "left_out": list(comparison.doubts),
        "unlike": list(comparison.unlike),
    }


# -- sql ------------------------------------------------------------------------------------------


def sql(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN_DIR... QUESTION",
            help="Run directories, then SQL or the name of a shipped question.",
        ),
    ] = None,
    show: Annotated[
        str | None,
        typer.Option("--show", metavar="NAME", help="Print the SQL of a shipped question."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    r"""Ask finished runs, in SQL. Without arguments lists the shipped questions.

    Tables: requests, events, samples; measured, groups and runs. Each row has the
    name of its run.

    Examples:
      loadgen sql out/runs/* by-family

      loadgen sql out/runs/a out/runs/b \
        "SELECT run, max(bytes) FROM requests GROUP BY run"

      loadgen sql --show by-second
    """
    if show is not None:
        if show not in QUERIES:
            raise UsageError(f"--show {show[:40]!r} is none of {', '.join(QUERIES)}")
        sys.stdout.write(f"-- {QUERIES[show].title}\n{QUERIES[show].sql}\n")
        return
    if not words:
        sys.stdout.write(questions())
        return
    *directories, text = words
    if Path(text).is_dir() or not directories:
        raise UsageError(
            'name run directories, then the question, such as by-group or "SELECT * FROM runs"'
        )
    to_a_file = csv or as_json
    answer = run_sql(
        [Path(each) for each in directories], text, _FILE_ROWS if to_a_file else MOST_ROWS
    )
    sys.stdout.write(json_of(answer) if as_json else as_csv(answer) if csv else as_text(answer))
