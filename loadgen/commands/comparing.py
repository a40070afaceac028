"""``loadgen compare``: compares finished runs, or runs a scenario alternately on two sides."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.commands.options import (
    AdminUrl,
    AsJson,
    Confirmed,
    ServiceUrl,
    Settings,
    parse_admin_urls,
    require_own_address,
    wanted,
)
from loadgen.commands.run import watched
from loadgen.commands.shown import (
    fail_if_not_fine,
    print_object,
    print_page,
    print_sentences,
)
from loadgen.errors import ExitCode, UsageError, write_text
from loadgen.places.options import RunOptions
from loadgen.report.page import comparison_page, write_page
from loadgen.results.comparing import markdown_of
from loadgen.results.results import Results
from loadgen.stored import placed
from loadgen.studies.repeats import beside as beside_pulsar
from loadgen.studies.repeats import compared, run_sides
from loadgen.studies.repeats import profiles as both_profiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.results.comparing import Comparison
    from loadgen.studies.repeats import Side

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

    Runs with the same title and document are repeats of each other. From five
    repeats on, the report also names the figures that agree. Runs in virtual time
    are paired by seed, and the differences of pairs are tested.

    Examples:
      loadgen compare out/runs/off-* out/runs/floodgate-* --baseline "Limits off"

      loadgen compare out/sweep/*/

      loadgen compare storm --beside pulsar://127.0.0.1:6650 \
        --beside-admin-url http://127.0.0.1:8080 \
        --set topics.corpus=out/topics

    Options:
        run_directories (RUN_DIR...): Directories of finished runs, such as out/runs/NAME. With
            --beside or --profiles the scenario: NAME or FILE.
        baseline (LABEL): Runs to compare all other runs with: their title, or the head of their
            column. Default: the runs of the first directory.
        force: Also compare runs of different scenarios.
        markdown (FILE): Write the comparison as Markdown.
        beside (URL): A real Pulsar: a scenario runs there and on Floodgate in turn, and the
            report shows where both agree.
        beside_admin_url (URL): http://host:port of that Pulsar, to read its metrics.
        profiles: Run a scenario as Floodgate and as in Pulsar, in turn.
        repeats: Runs of each side, with --beside or --profiles.
        out (DIR): Directory for these runs and their page, beside.md.
    """
    pages = ""
    if not beside and not profiles:
        places = [placed(Path(each)) for each in run_directories]
        comparison = compared(places, baseline, force=force)
    elif len(run_directories) != 1:
        raise UsageError("--beside and --profiles run a single scenario: name only one")
    else:
        require_own_address("--beside", beside, confirmed=confirmed)
        require_own_address("--service-url", service_url, confirmed=confirmed)
        urls, pids = parse_admin_urls(admin_url or ())
        document = wanted(run_directories[0], settings)
        options = RunOptions(out, service_url=service_url, admin_urls=urls, pids=pids)
        sides = both_profiles(document, options)
        if beside:
            sides = beside_pulsar(document, options, beside, beside_admin_url)
        comparison = _run(sides, repeats, document.title, as_json=as_json)
        pages = f"This page is {out / BESIDE_PAGE}, both over time {out / BESIDE_REPORT}"
    text = markdown_of(comparison)
    for path in (markdown, out / BESIDE_PAGE if pages else None):
        if path is not None:
            write_text(path, text)
    if as_json:
        told = {
            "groups": {t: [run.place for run in each] for t, each in comparison.groups.items()},
            "figures": comparison.rows,
            "left_out": comparison.doubts,
            "unlike": comparison.unlike,
            "paired": comparison.paired,
        }
        print_object(3, told)
    else:
        print_page(text)
        print_sentences([pages] if pages else [])


def _run(sides: Sequence[Side], repeats: int, title: str, *, as_json: bool) -> Comparison:
    """Run both sides alternately, write a page that compares their last runs, compare all runs."""
    finished = run_sides(sides, repeats, run=partial(watched, as_json=as_json))
    for each in finished:
        if each.verdict.exit_code is ExitCode.INTERRUPTED:
            fail_if_not_fine(each.verdict)
    directories = [each.directory for each in finished]
    with Results.open(directories[repeats - 1]) as first, Results.open(directories[-1]) as last:
        page = comparison_page([first, last], title)
    write_page(sides[0].options.out / BESIDE_REPORT, page)
    return compared(directories, force=True)
