"""``loadgen compare``: finished runs against each other, or two sides that run in turn."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.commands.options import (
    AdminUrl,
    AsJson,
    Confirmed,
    ServiceUrl,
    Settings,
    parse_admin_urls,
    wanted,
)
from loadgen.commands.run import shown_run, watched
from loadgen.commands.shown import fail_if_not_fine, print_object, show_comparison, write_text
from loadgen.errors import ExitCode, UsageError
from loadgen.loopback import require_own_cluster
from loadgen.places.options import RunOptions
from loadgen.report.page import comparison_page, write_page
from loadgen.results.comparing import markdown_of
from loadgen.results.results import Results
from loadgen.studies.repeats import beside as beside_pulsar
from loadgen.studies.repeats import compared, run_sides
from loadgen.studies.repeats import profiles as both_profiles

if TYPE_CHECKING:
    from loadgen.results.comparing import Comparison

BESIDE_PAGE, BESIDE_REPORT = "beside.md", "beside.html"


def compare_runs(  # noqa: PLR0913 (each parameter is an option of the command)
    run_directories: list[str],
    *,
    baseline: str | None = None,
    force: bool = False,
    markdown: Path | None = None,
    beside: str = "",
    beside_admin_url: str = "",
    profiles: bool = False,
    settings: Settings = None,
    service_url: ServiceUrl = "",
    admin_url: AdminUrl = None,
    repeats: int = 5,
    out: Path = Path("out/beside"),
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

    Options:
        run_directories (RUN_DIR...): Directories of finished runs, such as out/runs/NAME. With
            --beside or --profiles the scenario: NAME or FILE.
        baseline (TITLE): Runs that the others are compared with; without it the first one's.
        force: Also compare runs of different scenarios.
        markdown (FILE): Write the comparison as Markdown.
        beside (URL): A real Pulsar: a scenario runs there and on Floodgate in turn, and the
            report says where both agree.
        beside_admin_url (URL): http://host:port of that Pulsar, to read its metrics.
        profiles: Run a scenario as Floodgate and as in Pulsar, in turn.
        repeats: Runs of each side, with --beside or --profiles.
        out (DIR): Directory for these runs and their page, beside.md.
    """
    if not beside and not profiles:
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
    if beside:
        sides = beside_pulsar(document, options, beside, beside_admin_url)
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
        print_object(2, _document_of(comparison))
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
