"""``loadgen run`` runs a scenario's clients; ``loadgen cluster`` starts only its servers."""

from __future__ import annotations

import shlex
import signal
import sys
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.commands.options import (
    AdminUrl,
    AsJson,
    BrokerConf,
    Confirmed,
    ProxyConf,
    ServiceUrl,
    Settings,
    Target,
    own_files,
    parse_admin_urls,
    require_own_address,
    wanted,
)
from loadgen.commands.shown import (
    console,
    fail_if_not_fine,
    print_json,
    print_object,
    print_page,
    print_sentences,
    say,
    table_of,
)
from loadgen.errors import require_spark
from loadgen.live import live_display
from loadgen.places.directory import RUN_NAME
from loadgen.places.experiment import experiment
from loadgen.places.launcher import running_servers
from loadgen.places.options import Place, RunOptions
from loadgen.places.server_process import termination_interrupts
from loadgen.results.comparing import Side as Values
from loadgen.results.comparing import figures_of, finished_run
from loadgen.results.judging import missed_early
from loadgen.studies.dry_run import dry_run as reckoned
from loadgen.studies.dry_run import (
    duration,
    measured_expectations,
    needs_table,
    schedule_table,
    told,
)
from loadgen.studies.repeats import Side, run_sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.documents.model import Document
    from loadgen.results.units import Unit
    from loadgen.studies.dry_run import DryRun
    from loadgen.studies.repeats import FinishedSide


def run(  # noqa: PLR0913 (each parameter is an option of the command)
    target: Target,
    *,
    settings: Settings = None,
    service_url: ServiceUrl = "",
    admin_url: AdminUrl = None,
    broker_conf: BrokerConf = None,
    proxy_conf: ProxyConf = None,
    place: Place | None = None,
    tasks: int | None = None,
    master: str | None = None,
    name: str = "",
    out: Path = Path("out/runs"),
    metrics_port: int | None = None,
    abort_early: bool = False,
    dry_run: bool = False,
    as_json: AsJson = False,
    confirmed: Confirmed = False,
) -> None:
    r"""Run the clients of a scenario against its servers or yours, and check every answer.

    Writes a run directory: tables of requests, events and samples (Parquet), and,
    derived from them, summary.json, junit.xml, README.md and index.html. Repeats
    and title are values of the scenario: --set repeats=5.

    Examples:
      loadgen run restart-storm

      loadgen run storm --set clients.all.count=500 --set servers.profile=pulsar

      loadgen run mine.yaml --service-url pulsar://127.0.0.1:6650 \
        --admin-url broker=http://127.0.0.1:8080

      loadgen run storm --place virtual --set repeats=5 --json

    Exit code 0: passed; 97: an answer was wrong, or a server kept memory of
    clients that have left; 98: not to be relied on; 99: an expectation
    was missed, or hardly a request was answered; 130: interrupted.

    Options:
        place (PLACE): Where clients run: processes; spark; virtual (simulated, with the servers
            in this process and without sockets). Default: processes, or spark with --master.
        tasks: Processes, or Spark tasks, that share the clients. Default: 2.
        master (URL): Spark master.
        name: Name of the run. Default: the scenario's name, and the time.
        out (DIR): Directory of run directories.
        metrics_port (PORT): Serve the run's figures to Prometheus, at this port of the loopback.
        abort_early: End as soon as an expectation cannot be met.
        dry_run: Print the run's length and its needs of this machine, without starting it.
    """
    document = wanted(target, settings)
    urls, pids = parse_admin_urls(admin_url or ())
    options = RunOptions(
        out=out,
        name=name or f"{document.name}-{datetime.now():%Y%m%d-%H%M%S}",
        service_url=service_url,
        admin_urls=urls,
        pids=pids,
        files=own_files(broker_conf, proxy_conf, as_json=as_json),
        tasks=tasks,
        place=place,
        master=master,
        metrics_port=metrics_port,
        say=lambda sentence: say(sentence, as_json=as_json),
    )
    require_own_address("--service-url", service_url, confirmed=confirmed)
    expectations = measured_expectations(document, options)
    if abort_early:
        missed = partial(missed_early, expectations, document.clients)
        options = replace(options, abort_early=missed)
    needs = reckoned(document, options)
    if dry_run:
        _show_needs(needs, as_json=as_json)
    for warning in () if dry_run and as_json else document.warnings:
        say(warning, as_json=as_json, kind="warning")
    needs.require_fit()
    if dry_run:
        return
    show = (lambda finished: None) if as_json else _show_run
    run_once = partial(watched, as_json=as_json)
    finished = run_sides([Side(document, options)], document.repeats, show, run_once)
    _show_all([each.directory for each in finished], as_json=as_json)
    fail_if_not_fine(max((each.verdict for each in finished), key=lambda each: each.level.rank))


def cluster(
    target: Target,
    *,
    settings: Settings = None,
    out: Path = Path("out/cluster"),
    broker_conf: BrokerConf = None,
    proxy_conf: ProxyConf = None,
) -> None:
    """Start the servers of a scenario with its topics; Ctrl-C stops them.

    Prints the addresses, and the `loadgen run` command for clients.

    Examples:
      loadgen cluster restart-storm

    Options:
        out (DIR): Directory for the servers' logs.
    """
    document, files = wanted(target, settings), own_files(broker_conf, proxy_conf)
    try:
        with termination_interrupts(), running_servers(document, out, files, say) as servers:
            words = ["loadgen", "run", target]
            words += [word for each in settings or () for word in ("--set", each)]
            words += ["--service-url", servers.service_url]
            for role, url in servers.admin_urls.items():
                sys.stdout.write(f"{role} {url} process {servers.pids[role]}\n")
                words += ["--admin-url", f"{role}={url},{servers.pids[role]}"]
            sys.stdout.write(f"{shlex.join(words)}\n")
            sys.stdout.flush()
            signal.pause()
    except KeyboardInterrupt:
        return


def watched(document: Document, options: RunOptions, *, as_json: bool) -> Path:
    """Run a scenario, showing its progress; return the run directory."""
    directory = options.out / options.name
    if (directory / RUN_NAME).exists():
        say(f"{directory} is of an earlier run, which this one replaces", as_json=as_json)
    clients = {group.name: group.count for group in document.clients}
    first = "connecting" if options.service_url else "starting the servers"
    if options.place == "spark" or options.master is not None:
        require_spark()
        say("starting Spark, which takes some seconds", as_json=as_json)
    with (
        termination_interrupts(),
        live_display(options.name, clients, sys.stderr, first=first, as_json=as_json) as live,
    ):
        return experiment(document, live(options))


def _show_run(finished: FinishedSide) -> None:
    readme = (finished.directory / "README.md").read_text(encoding="utf-8")
    print_page(readme, end="Servers")
    print_sentences([f"Everything about this run is in {finished.directory}"])


def _show_needs(needs: DryRun, *, as_json: bool) -> None:
    if as_json:
        print_object(4, told(needs))
        return
    print_sentences([f"{needs.document.name}: nothing was started. {duration(needs)}\n"])
    console().print(table_of(*schedule_table(needs)))
    if any(group.later for group in needs.groups):
        print_sentences(["+ first requests; clients ask again as their family does"])
    console().print(table_of(*needs_table(needs)))


def _show_all(directories: Sequence[Path], *, as_json: bool) -> None:
    """Print the medians of repeated runs or, with ``--json``, a summary of each run."""
    told = [finished_run(each).summary for each in directories]
    if as_json and len(told) == 1:
        print_json(told[0])
    elif as_json:
        print_object(1, {"runs": told})
    elif len(told) > 1:
        figures: dict[tuple[str, Unit], list[float]] = {}
        for figure, unit, value in (row for summary in told for row in figures_of(summary)):
            figures.setdefault((figure, unit), []).append(value)
        rows = [(figure, Values(values).text(unit)) for (figure, unit), values in figures.items()]
        console().print(table_of(("", f"median (spread) of {len(told)} runs"), rows))
