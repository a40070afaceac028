"""``loadgen run``: run the clients of a scenario against a broker or proxy."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loadgen.analysis.thresholds import parse_thresholds
from loadgen.commands.comparing.repeats import numbered, run_all
from loadgen.commands.document_options import EXAMPLES, in_profile, wanted_document
from loadgen.commands.own_cluster import cluster_for, own_cluster_wanted, will_watch
from loadgen.commands.preflight import require_room
from loadgen.commands.run_outcome import fail_if_invalid
from loadgen.commands.scenario_options import scenario_parameters
from loadgen.documents.document import Document  # noqa: TC001 (the command line evaluates it)
from loadgen.executors.processes import RunExecutor
from loadgen.extras import SPARK, require
from loadgen.live.display import live_display
from loadgen.live.simulated import simulated_display
from loadgen.run.options import RunOptions
from loadgen.run.run import check_options, execute
from loadgen.scenarios.registry import SCENARIOS
from loadgen.places.loopback import require_own_cluster
from loadgen.places.server_process import termination_interrupts

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.own_servers.cluster import ClusterWanted
    from loadgen.run.run import RunResult


def run_options(  # noqa: PLR0913 (each parameter but the first is an option of the command)
    document: Document,
    executor: Annotated[
        RunExecutor,
        typer.Option(
            metavar="TEXT",
            help="spark; process: the same in plain processes, without Spark and Java; virtual: "
            "simulated, with the servers in this process and without sockets.",
        ),
    ] = RunExecutor.SPARK,
    tasks: Annotated[
        int | None,
        typer.Option(help="Processes, or Spark tasks, that share the clients.", show_default="2"),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master URL; local without it.", show_default=False)
    ] = None,
    broker_admin_url: Annotated[
        str | None,
        typer.Option(help="http://host:port of the broker, to read metrics.", show_default=False),
    ] = None,
    proxy_admin_url: Annotated[
        str | None,
        typer.Option(help="http://host:port of the proxy, to read metrics.", show_default=False),
    ] = None,
    broker_pid: Annotated[
        int | None,
        typer.Option(help="Process id of the broker, to measure its memory.", show_default=False),
    ] = None,
    proxy_pid: Annotated[
        int | None,
        typer.Option(help="Process id of the proxy, to measure its memory.", show_default=False),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the run.", show_default="<scenario>-<time>")
    ] = None,
    label: Annotated[
        str, typer.Option(help="Name of the run in reports.", show_default="the name")
    ] = "",
    out: Annotated[Path, typer.Option(help="Directory for run directories.")] = Path("out/runs"),
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            help="Threshold, such as 'list.response.p99 < 2s'; may be repeated.",
            show_default=False,
        ),
    ] = None,
    abort_early: Annotated[
        bool,
        typer.Option("--abort-early", help="End as soon as a threshold can no longer be met."),
    ] = False,
) -> RunOptions:
    """Return the options of a document's run."""
    return RunOptions(
        name=name or f"{document.name}-{datetime.now():%Y%m%d-%H%M%S}",
        label=label,
        out=out,
        executor=str(executor),
        tasks=min(2, document.scenario.clients) if tasks is None else tasks,
        master=master,
        broker_admin_url=broker_admin_url,
        proxy_admin_url=proxy_admin_url,
        broker_pid=broker_pid,
        proxy_pid=proxy_pid,
        thresholds=parse_thresholds((*document.head.thresholds, *(threshold or ()))),
        abort_early=abort_early,
        scenario_document=document.written,
        scenario_resolved=document.resolved_text(),
    )


_EXIT_CODES = """\
Exit code 0: measured, whether answered or refused; 97: an answer was wrong,
or a server kept memory of clients that have left; 98: this machine was the
limit; 99: a threshold was missed, a broker with backpressure did not pause
silent clients, or a client exceeded its memory limit; 130: interrupted.
"""


def run(  # noqa: PLR0913 (each parameter is an option of the command)
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FILE]",
            help="Ready-made scenario (`loadgen scenarios` lists them), or your own FILE.yaml. "
            "Options override its values. Without --service-url its servers are started here and "
            "stopped at the end.",
            show_default=False,
        ),
    ] = None,
    *,
    family: Annotated[
        str | None,
        typer.Option(
            help="Client family of all groups, in scenarios with groups (restart-storm): once, "
            "polite, java-watch, java-poll, cpp or go. There --clients is the sum of all groups, "
            "in their proportions; --read-rate, --receive-buffer and --pattern apply to all.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="Profile of the scenario's own servers: pulsar (as Pulsar 4.2.4) or floodgate "
            "(with fixes).",
            show_default=False,
        ),
    ] = None,
    broker_conf: Annotated[
        Path | None,
        typer.Option(
            help="broker.conf whose keys override those of the scenario's own broker.",
            show_default=False,
        ),
    ] = None,
    proxy_conf: Annotated[
        Path | None,
        typer.Option(
            help="proxy.conf for the scenario's own proxy; adds a proxy if the scenario has none.",
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            help="Number of runs, each with new servers if they are its own.",
            show_default="1, or as the scenario says",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Start nothing: print what the run needs (connections, descriptors, ports, "
            "bytes, memory, disk) and whether this machine has it.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON on standard output.")
    ] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Accept namespaces without topics.")
    ] = False,
    yes_this_is_my_cluster: Annotated[
        bool,
        typer.Option(
            "--yes-this-is-my-cluster", help="Allow an address other than this machine's loopback."
        ),
    ] = False,
    **given: Any,  # noqa: ANN401
) -> None:
    """Run the clients of a scenario against its own servers or yours, and check every answer.

    The options of one scenario alone are in panels of their own, below.
    """
    document = in_profile(wanted_document(target, family, given), profile, given)
    options = run_options(document, **{each.name: given[each.name] for each in _RUN_PARAMETERS})
    files = (broker_conf, proxy_conf)
    own = own_cluster_wanted(document, options, given, files)
    if own is None:
        require_own_cluster(document.scenario.service_url, confirmed=yes_this_is_my_cluster)
    expected = options if own is None else will_watch(options, own)
    check_options(document.scenario, expected)
    wanted = numbered(options, document.head.repeats if repeats is None else repeats)
    require_room(document, expected, own, dry=dry_run, as_json=as_json)
    if dry_run:
        return

    def run_once(repeat: RunOptions) -> RunResult:
        own = own_cluster_wanted(document, repeat, given, files)
        return _run_once(document, repeat, own, as_json=as_json)

    for result in run_all(wanted, run_once, as_json=as_json):
        fail_if_invalid(result, document.scenario, allow_empty=allow_empty)


def _run_once(
    document: Document, options: RunOptions, own: ClusterWanted | None, *, as_json: bool
) -> RunResult:
    with_spark = options.executor == RunExecutor.SPARK
    if with_spark:
        require(SPARK)
    first = "starting Spark, which takes some seconds" if with_spark else "connecting"
    with (
        termination_interrupts(),
        cluster_for(document, options, own, as_json=as_json) as (scenario, watched),
        simulated_display(sys.stderr, as_json=as_json)
        if options.executor == RunExecutor.VIRTUAL
        else live_display(
            options.name, document.scenario.connecting, sys.stderr, first=first, as_json=as_json
        ) as observer,
    ):
        shown = replace(
            watched,
            on_progress=observer.on_counters,
            on_watch=observer.on_watch,
            on_simulation=observer.on_simulation,
        )
        return execute(scenario, shown)


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters of a function that are options of the command."""
    found = inspect.signature(function, eval_str=True).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [each.replace(kind=keyword) for each in found if each.name not in ("document", "given")]


_RUN_PARAMETERS = _parameters(run_options)
_signed: Any = run
_target, *_of_command = _parameters(run)
_signed.__signature__ = inspect.Signature(
    [_target, *scenario_parameters(), *_RUN_PARAMETERS, *_of_command]
)
_examples = "\n\n".join([EXAMPLES, *filter(None, (kind.example for kind in SCENARIOS.values()))])
run.__doc__ = f"{inspect.cleandoc(run.__doc__ or '')}\n\nExamples:\n\n{_examples}\n\n{_EXIT_CODES}"
