"""``loadgen demo``: the main faults and their fixes in three minutes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loadgen.demo.demo import run_demo
from loadgen.demo.plan import default_namespaces
from loadgen.demo.result import DemoOptions
from loadgen.demo.topics import parse_topics
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.executors.processes import ExecutorKind
from loadgen.live.steps import StepDisplay
from loadgen.own_servers.operator_files import OwnCluster, read_own_server
from loadgen.report.sentences import late_start_sentence
from loadgen.report.tables import check_grid, summary_console, summary_tables
from loadgen.servers.processes import termination_interrupts
from loadgen.topics.plan import TopicPlan
from loadgen.topics.reading import OwnTopics, read_own_topics
from loadgen.units import parse_read_rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from loadgen.demo.result import DemoResult
    from loadgen.results.summary import RunSummary

SEED = 7
_INTERRUPTED = "Interrupted: broker, proxy and Spark are stopped, no report was written."
_MADE = (
    "Three restart storms, then one client that reads nothing, twice. With the defaults this takes "
    "three to four minutes. Everything runs on this machine."
)
_REHEARSAL = (
    "Three restart storms of your cluster: without limits, with your limits in Pulsar, with your "
    "limits in Floodgate. Everything runs on this machine."
)
_STORM = "Restart storm: every client lists topics at the same moment and reads slowly"
_NOT_READING = "One client requests 64 lists and reads none, beside ten healthy clients"
_UNREAD = (
    "Unread answers are counted for each connection; connections that share one buffer need its "
    "memory once."
)
_LEGEND = "Checks (✓ passed, ! a fault of Pulsar reproduced, – not judged, ✗ failed)"  # noqa: RUF001


def demo(  # noqa: PLR0913 - one parameter for each option
    topics: Annotated[
        str,
        typer.Option(
            metavar="NUMBER|FILE",
            help="Number of topics to make (50000, 1M), or a file of your own topics: one full "
            "name a line, or Parquet.",
        ),
    ] = "1M",
    broker_conf: Annotated[
        Path | None,
        typer.Option(
            help="Your broker.conf: its limits, frame sizes and watermarks are used.",
            show_default=False,
        ),
    ] = None,
    proxy_conf: Annotated[
        Path | None,
        typer.Option(
            help="Your proxy.conf; a rehearsal without it has no proxy.",
            show_default=False,
        ),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            help="Namespace of your file that clients list; may be repeated.",
            show_default="the largest",
        ),
    ] = None,
    namespaces: Annotated[
        int | None,
        typer.Option(
            min=1, help="Namespaces of the made topics.", show_default="one for 10,000 topics"
        ),
    ] = None,
    skip_invalid: Annotated[
        bool,
        typer.Option("--skip-invalid", help="Skip invalid topics of your file."),
    ] = False,
    clients: Annotated[
        int,
        typer.Option(min=1, max=100_000, help="Clients, which all list topics at the same moment."),
    ] = 1000,
    read_rate: Annotated[
        str, typer.Option(help="Bytes a second that each client reads of its list.")
    ] = "100kB/s",
    out: Annotated[Path, typer.Option(help="Directory for all results.")] = Path("out/demo"),
    executor: Annotated[
        ExecutorKind, typer.Option(help="process: plain processes, without Spark and Java.")
    ] = ExecutorKind.SPARK,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the made topics (Parquet) in --out.")
    ] = False,
) -> None:
    r"""Show a restart storm: without limits, with Pulsar's limits, with Floodgate.

    Makes topics, starts a broker and a proxy for each of three runs, and has all
    clients list topics at the same moment and read slowly. In two more runs, as
    in Pulsar and with Floodgate, one client requests many lists and reads none.
    Prints tables, writes report.html and summary.json. Three to four minutes.

    With your own topics or configuration it is a rehearsal of your cluster: the
    same three storms with your keys, your limits in the second and third. Keys
    that tie your files to your cluster (addresses, ports, metadata store, TLS,
    authentication) are ignored and listed. Also draws demo.png.

    Exit code 0: all checks passed; 97: an answer was wrong; 99: a check failed.

    Examples:
      loadgen demo

      loadgen demo --topics 50000 --clients 100 --executor process \
        --out out/small

      loadgen demo --topics topics.txt --broker-conf broker.conf \
        --proxy-conf proxy.conf --out out/mine
    """
    wanted = _wanted_topics(topics, namespaces, namespace or [], skip_invalid=skip_invalid)
    own = _own_cluster(broker_conf, proxy_conf, topics_are_own=isinstance(wanted, OwnTopics))
    options = DemoOptions(
        topics=wanted,
        clients=clients,
        read_rate_bytes_per_second=parse_read_rate(read_rate),
        out=out,
        executor=str(executor),
        keep=keep,
        own=own,
        namespaces=tuple(namespace or ()),
    )
    console = summary_console()
    console.print(_REHEARSAL if own is not None else _MADE, highlight=False)
    invalid = [wanted.invalid] if isinstance(wanted, OwnTopics) and wanted.invalid else []
    for note in [*invalid, *(own.notes() if own is not None else ())]:
        console.print(note, soft_wrap=True, highlight=False, markup=False)
    try:
        with termination_interrupts(), StepDisplay(console).shown() as steps:
            result = run_demo(options, steps)
    except KeyboardInterrupt:
        raise LoadgenError(_INTERRUPTED, ExitCode.INTERRUPTED) from None
    show(console, result)
    raise typer.Exit(int(result.exit_code))


def show(console: Console, result: DemoResult) -> None:
    """Print the tables, the checks and where everything is."""
    _show_part(console, _STORM, result.summaries, _UNREAD)
    _show_part(console, _NOT_READING, result.stuck)
    console.print(_LEGEND, style="bold", highlight=False)
    console.print(check_grid(result.checks))
    for summary in (*result.summaries.values(), *result.stuck.values()):
        if summary.generator_limited:
            console.print(
                f"! {summary.label}: {late_start_sentence(summary)}", style="yellow", markup=False
            )
    for line in result.last_words:
        console.print(f"\n{line}", markup=False, highlight=False)
    if result.hidden is not None:
        console.print(f"! {result.hidden}", style="yellow", markup=False, highlight=False)
    for path in result.pictures:
        console.print(f"Picture: {path}", soft_wrap=True, highlight=False)
    console.print(
        f"\n{result.duration_seconds:.0f} s in all. Open {result.report} in a browser; all figures "
        f"are in {result.summary}.",
        highlight=False,
        soft_wrap=True,
    )


def _show_part(
    console: Console, heading: str, runs: Mapping[str, RunSummary], note: str = ""
) -> None:
    if runs:
        console.print(f"\n{heading}", style="bold", highlight=False)
        for table in summary_tables(list(runs.values())):
            console.print(table)
        console.print(note, highlight=False)


def _wanted_topics(
    topics: str, namespaces: int | None, listed: Sequence[str], *, skip_invalid: bool
) -> TopicPlan | OwnTopics:
    """Return what ``--topics`` says: a plan of so many, or what a file holds.

    Raises:
        UsageError: It is neither a number nor a file, or another option does not go with it.
    """
    number = parse_topics(topics)
    if number is not None:
        if listed:
            raise UsageError("--namespace needs a file of your own topics (--topics FILE)")
        if skip_invalid:
            raise UsageError("--skip-invalid needs a file of your own topics (--topics FILE)")
        try:
            return TopicPlan(number, namespaces or default_namespaces(number), SEED)
        except ValueError as error:
            raise UsageError(str(error)) from error
    path = Path(topics)
    if not path.exists():
        raise UsageError(
            f"--topics {topics[:200]} is neither a number (50000, 1M) nor a file; save your topics "
            "with: pulsar-admin topics list my-tenant/my-namespace > topics.txt"
        )
    if namespaces is not None:
        raise UsageError("--namespaces needs a number of topics (--topics 1M), not a file")
    own = read_own_topics(path, skip_invalid=skip_invalid)
    own.chosen(listed)
    return own


def _own_cluster(
    broker_conf: Path | None, proxy_conf: Path | None, *, topics_are_own: bool
) -> OwnCluster | None:
    """Return the servers of a rehearsal; None: nothing is the operator's."""
    if broker_conf is None and proxy_conf is None and not topics_are_own:
        return None
    proxy = None if proxy_conf is None else read_own_server("proxy", proxy_conf)
    return OwnCluster(read_own_server("broker", broker_conf), proxy)
