"""``loadgen run``: run the clients of a document against a broker or proxy."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loadgen.commands.shown import (
    console,
    fail_if_not_fine,
    print_json,
    say,
    show_summary,
    table_of,
)
from loadgen.documents.keys import complete_path
from loadgen.documents.reading import read_document, shipped
from loadgen.errors import LoadgenError, UsageError
from loadgen.extras import SPARK, require
from loadgen.live.display import live_display
from loadgen.places.experiment import experiment
from loadgen.places.launcher import ServerFiles
from loadgen.places.loopback import CONFIRMATION_FLAG, require_own_cluster
from loadgen.places.operator_files import read_own_server
from loadgen.places.options import Place, RunOptions, resolved
from loadgen.places.server_process import termination_interrupts
from loadgen.report.page import PAGE_NAME, run_page, write_page
from loadgen.results.abort import EarlyAbort
from loadgen.results.comparing import Side as Values
from loadgen.results.comparing import figures_of, finished_run
from loadgen.results.expectations import parse_expectation, parse_expectations
from loadgen.results.results import Results
from loadgen.results.summary import summary_of
from loadgen.studies.dry_run import require_room
from loadgen.studies.repeats import Side, run_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.documents.model import Document
    from loadgen.studies.repeats import FinishedSide

ROLES = ("broker", "proxy")


def complete_target(incomplete: str) -> list[str]:
    """Return the shipped scenarios that a word begins; files are the shell's to complete."""
    return [name for name in shipped() if name.startswith(incomplete)]


def complete_setting(context: typer.Context, incomplete: str) -> list[str]:
    """Return the paths of ``--set`` that a word begins, until there is a choice."""
    try:
        document = read_document(context.params["target"])
    except (KeyError, LoadgenError, TypeError):
        document = None
    found = complete_path(incomplete, document)
    while len(found) == 1 and found[0].endswith(".") and found[0] != incomplete:
        incomplete = found[0]
        found = complete_path(incomplete, document) or found
    return found


Target = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="Ready-made scenario (`loadgen scenarios` lists them), or your own FILE.yaml.",
        autocompletion=complete_target,
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="A value of the scenario, such as clients.consumers.count=500; PATH+=VALUE adds to "
        "a list. May be repeated.",
        autocompletion=complete_setting,
        show_default=False,
    ),
]
ServiceUrl = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="pulsar://host:port of a broker or proxy that runs. Without it the scenario's "
        "servers are started here and stopped at the end.",
        show_default=False,
    ),
]
AdminUrl = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=URL[,PID]",
        help="Web port of a running broker or proxy, to sample its metrics; with its process id "
        "also its memory: broker=http://127.0.0.1:8080,4711. May be repeated.",
        show_default=False,
    ),
]
BrokerConf = Annotated[
    Path | None,
    typer.Option(help="broker.conf whose keys override the scenario's.", show_default=False),
]
ProxyConf = Annotated[
    Path | None,
    typer.Option(
        help="proxy.conf whose keys override the scenario's; adds a proxy if it has none.",
        show_default=False,
    ),
]
Confirmed = Annotated[
    bool, typer.Option(CONFIRMATION_FLAG, help="Allow an address other than this machine's.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


def run(  # noqa: PLR0913 (each parameter is an option of the command)
    target: Target,
    *,
    settings: Settings = None,
    service_url: ServiceUrl = "",
    admin_url: AdminUrl = None,
    broker_conf: BrokerConf = None,
    proxy_conf: ProxyConf = None,
    place: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Where clients run: processes; spark; virtual (simulated, with the servers in "
            "this process and without sockets).",
            show_default="processes; spark with --master",
        ),
    ] = None,
    tasks: Annotated[
        int | None,
        typer.Option(help="Processes, or Spark tasks, that share the clients.", show_default="2"),
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark master.", show_default=False)
    ] = None,
    name: Annotated[
        str, typer.Option(help="Name of the run.", show_default="<scenario>-<time>")
    ] = "",
    out: Annotated[Path, typer.Option(help="Directory of run directories.")] = Path("out/runs"),
    metrics_port: Annotated[
        int | None,
        typer.Option(help="Serve the run's figures to Prometheus here.", show_default=False),
    ] = None,
    abort_early: Annotated[
        bool,
        typer.Option("--abort-early", help="End as soon as an expectation cannot be met."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Start nothing: print what the run needs, and what is missing here."
        ),
    ] = False,
    as_json: AsJson = False,
    confirmed: Confirmed = False,
) -> None:
    r"""Run the clients of a scenario against its servers or yours, and check every answer.

    Writes a run directory: tables of requests, events and samples (Parquet), and
    made of them summary.json, junit.xml, README.md and index.html. Repeats and the
    title are values of the scenario, as all of it: --set repeats=5.

    Examples:
      loadgen run restart-storm

      loadgen run storm --set clients.all.count=500 --set servers.profile=pulsar

      loadgen run mine.yaml --service-url pulsar://127.0.0.1:6650 \
        --admin-url broker=http://127.0.0.1:8080

      loadgen run storm --place virtual --set repeats=5 --json

    Exit code 0: passed; 97: an answer was wrong, or a server kept memory of
    clients that have left; 98: this machine was the limit; 99: an expectation
    was missed, or next to nothing was answered; 130: interrupted.
    """
    document = wanted(target, settings)
    urls, pids = parse_admin_urls(admin_url or ())
    options = RunOptions(
        out=out,
        name=name or f"{document.name}-{datetime.now():%Y%m%d-%H%M%S}",
        written=document.written,
        service_url=service_url,
        admin_urls=urls,
        pids=pids,
        files=ServerFiles(
            read_own_server("broker", broker_conf), read_own_server("proxy", proxy_conf)
        ),
        tasks=tasks,
        place=parse_place(place),
        master=master,
        metrics_port=metrics_port,
        say=lambda sentence: say(sentence, as_json=as_json),
    )
    if service_url:
        require_own_cluster(service_url, confirmed=confirmed)
    checked, final = resolved(document, _aborting(document, options) if abort_early else options)
    require_room(checked, final, dry=dry_run, as_json=as_json)
    if dry_run:
        return
    run_once = watched(as_json=as_json, abort_early=abort_early)
    show = shown_run(as_json=as_json)
    finished = run_sides([Side(document, options)], document.repeats, show, run_once)
    _show_all([each.directory for each in finished], as_json=as_json)
    fail_if_not_fine(max((each.verdict for each in finished), key=lambda each: each.level.rank))


def wanted(target: str, settings: Sequence[str] | None) -> Document:
    """Return the document that a command line names, with its settings laid over it.

    Raises:
        UsageError: It has a fault; the sentence says where.
    """
    return read_document(target, settings or (), parse_expectation)


def parse_place(text: str | None) -> Place | None:
    """Return a place by its name.

    Raises:
        UsageError: There is none of that name.
    """
    places: tuple[Place, ...] = ("processes", "spark", "virtual")
    for each in places:
        if text == each:
            return each
    if text is not None:
        raise UsageError(f"--place {text[:40]!r} is none of {', '.join(places)}")
    return None


def parse_admin_urls(texts: Sequence[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Return web ports and process ids by role of ``broker=http://host:port,4711``.

    Raises:
        UsageError: One is not of this form, or a role comes twice.
    """
    urls: dict[str, str] = {}
    pids: dict[str, int] = {}
    for text in texts:
        role, _, rest = text.partition("=")
        url, comma, pid = rest.partition(",")
        if role not in ROLES or not url.startswith("http") or (comma and not pid.isdecimal()):
            raise UsageError(
                f"--admin-url {text[:80]!r}: write broker=http://host:port or "
                "proxy=http://host:port, and behind a comma its process id if it runs here"
            )
        if role in urls:
            raise UsageError(f"--admin-url names the {role} twice")
        urls[role] = url
        if comma:
            pids[role] = int(pid)
    return urls, pids


def watched(*, as_json: bool, abort_early: bool = False) -> Callable[[Document, RunOptions], Path]:
    """Return an experiment that shows itself while it goes on."""

    def run_once(document: Document, options: RunOptions) -> Path:
        with_spark = options.place == "spark" or options.master is not None
        if with_spark:
            require(SPARK)
        if abort_early:
            options = _aborting(document, options)
        clients = {group.name: group.count for group in document.clients}
        first = "connecting" if options.service_url else "starting the servers"
        if with_spark:
            say("starting Spark, which takes some seconds", as_json=as_json)
        with (
            termination_interrupts(),
            live_display(options.name, clients, sys.stderr, first=first, as_json=as_json) as live,
        ):
            return experiment(document, replace(options, **live))

    return run_once


def shown_run(*, as_json: bool) -> Callable[[FinishedSide], None]:
    """Return what writes the page of a finished run, and shows its figures to people."""

    def show(finished: FinishedSide) -> None:
        directory, verdict = finished.directory, finished.verdict
        with Results.open(directory) as results:
            write_page(directory / PAGE_NAME, run_page(results))
            summary = None if as_json else summary_of(results, verdict)
        if summary is not None:
            show_summary(summary, verdict)
            console().print(f"Everything about this run is in {directory}", soft_wrap=True)

    return show


def _aborting(document: Document, options: RunOptions) -> RunOptions:
    """Return options that end one run as soon as an expectation cannot be met."""
    groups = [group.name for group in document.clients]
    early = EarlyAbort(parse_expectations(document.expect, groups), document.clients)
    return replace(options, abort_early=lambda totals: early.missed(totals, time.monotonic()))


def _show_all(directories: Sequence[Path], *, as_json: bool) -> None:
    """Print what repeats show together; for a program, every summary."""
    told = [finished_run(each).summary for each in directories]
    if as_json:
        print_json(told[0] if len(told) == 1 else {"runs": told})
    if as_json or len(told) == 1:
        return
    figures: dict[str, tuple[Any, list[float]]] = {}
    for summary in told:
        for figure, unit, value in figures_of(summary):
            figures.setdefault(figure, (unit, []))[1].append(value)
    rows = [(figure, Values(values).text(unit)) for figure, (unit, values) in figures.items()]
    console().print(table_of(("", f"median (spread) of {len(told)} runs"), rows))
