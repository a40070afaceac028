"""``loadgen run``: drive clients against a broker or proxy, in a storm or beside stuck peers."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.run_outcome import fail_if_invalid, show
from loadgen.commands.scenario_options import (
    ScenarioKind,
    make_scenario,
    rate_of,
    size_of,
    stuck_namespaces,
    wanted_namespaces,
)
from loadgen.executors.processes import ExecutorKind
from loadgen.run.run import RunOptions, connections_of, execute
from loadgen.servers.loopback import require_own_cluster
from loadgen.servers.processes import termination_interrupts
from loadgen.tasks.progress import progress_display

_STORM, _STUCK = "Scenario storm", "Scenario stuck"

EXAMPLES = """
Examples:

  loadgen run --service-url pulsar://127.0.0.1:6650 --corpus out/topics

  loadgen run --service-url pulsar://127.0.0.1:6650
  --namespace public/default --clients 200 --read-rate 0 --executor process

  loadgen run --service-url pulsar://127.0.0.1:6650 --corpus out/topics
  --spread-seconds 30 --broker-admin-url http://127.0.0.1:8080 --json

  loadgen run --scenario stuck --service-url pulsar://127.0.0.1:6650
  --namespace public/default --stuck-pipelined 64 --executor process

Exit code 0: measured, whether answered or refused; 97: an answer was wrong;
98: this machine started the clients too late; 130: interrupted.
"""


def run(  # noqa: PLR0913 (each parameter is an option of the command)
    service_url: Annotated[
        str, typer.Option(help="Binary address of the broker or proxy: pulsar://host:port.")
    ],
    scenario: Annotated[
        ScenarioKind,
        typer.Option(
            help="storm: all ask at the same moment. stuck: healthy clients list on a schedule, "
            "while peers ask for many listings and do not read."
        ),
    ] = ScenarioKind.STORM,
    corpus: Annotated[
        Path | None,
        typer.Option(
            help="Directory that `loadgen topics` wrote: its manifest names the namespaces and "
            "what a right answer holds.",
            show_default=False,
        ),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            help="Namespace to ask for (tenant/namespace); repeat for more. Without a corpus "
            "answers are checked against their own hash and each other.",
            show_default=False,
        ),
    ] = None,
    clients: Annotated[
        int | None, typer.Option(help="Connections.", show_default="1000; stuck: 10")
    ] = None,
    read_rate: Annotated[
        str | None,
        typer.Option(
            help="How fast each client reads, bytes a second; 0 is unlimited.",
            show_default="100kB/s; stuck: 0",
        ),
    ] = None,
    receive_buffer: Annotated[
        str | None,
        typer.Option(
            help="SO_RCVBUF of each connection, bytes; 0 leaves the kernel's.",
            show_default="64KiB; stuck: 0",
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(help="Topics pattern that the server evaluates.", show_default=False),
    ] = None,
    timeout_seconds: Annotated[
        float | None,
        typer.Option(help="How long a client waits for its answer.", show_default="120; stuck: 30"),
    ] = None,
    requests_per_client: Annotated[
        int | None,
        typer.Option(
            help="Listings per client, one after the other.",
            show_default="1",
            rich_help_panel=_STORM,
        ),
    ] = None,
    spread_seconds: Annotated[
        float | None,
        typer.Option(
            help="Spread the starts evenly over this time; 0: all at once.",
            show_default="0",
            rich_help_panel=_STORM,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Decides who starts when starts are spread.",
            show_default="1",
            rich_help_panel=_STORM,
        ),
    ] = None,
    interval_seconds: Annotated[
        float | None,
        typer.Option(
            help="Each healthy client's listings are due this far apart.",
            show_default="1",
            rich_help_panel=_STUCK,
        ),
    ] = None,
    duration_seconds: Annotated[
        float | None,
        typer.Option(
            help="For how long listings are due.", show_default="20", rich_help_panel=_STUCK
        ),
    ] = None,
    stuck_peers: Annotated[
        int | None,
        typer.Option(
            help="Peers that do not read; 0 runs the healthy clients alone.",
            show_default="1",
            rich_help_panel=_STUCK,
        ),
    ] = None,
    stuck_pipelined: Annotated[
        int | None,
        typer.Option(
            help="Listings that each of them asks for, in one go.",
            show_default="64",
            rich_help_panel=_STUCK,
        ),
    ] = None,
    stuck_read_rate: Annotated[
        str | None,
        typer.Option(
            help="How fast each of them reads, bytes a second; 0 reads nothing at all.",
            show_default="0",
            rich_help_panel=_STUCK,
        ),
    ] = None,
    stuck_receive_buffer: Annotated[
        str | None,
        typer.Option(
            help="SO_RCVBUF of their connections, bytes; 0 leaves the kernel's.",
            show_default="0",
            rich_help_panel=_STUCK,
        ),
    ] = None,
    stuck_namespace: Annotated[
        list[str] | None,
        typer.Option(
            help="Namespace that they ask for; repeat to give each peer the next one.",
            show_default="those of --namespace or --corpus, in turn",
            rich_help_panel=_STUCK,
        ),
    ] = None,
    stuck_at_seconds: Annotated[
        float | None,
        typer.Option(
            help="When they ask; what is due before shows how it is without them.",
            show_default="2",
            rich_help_panel=_STUCK,
        ),
    ] = None,
    stuck_seconds: Annotated[
        float | None,
        typer.Option(
            help="How long they stay unless they are closed; 0: to the end.",
            show_default="0",
            rich_help_panel=_STUCK,
        ),
    ] = None,
    executor: Annotated[
        ExecutorKind,
        typer.Option(
            metavar="TEXT", help="spark, or process: the same schedule without Spark and Java."
        ),
    ] = ExecutorKind.SPARK,
    tasks: Annotated[
        int | None,
        typer.Option(help="Tasks (processes) that share the clients.", show_default="2"),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master; default: local.", show_default=False)
    ] = None,
    broker_admin_url: Annotated[
        str | None,
        typer.Option(help="http://host:port of the broker, to watch it.", show_default=False),
    ] = None,
    proxy_admin_url: Annotated[
        str | None,
        typer.Option(help="http://host:port of the proxy, to watch it.", show_default=False),
    ] = None,
    broker_pid: Annotated[
        int | None,
        typer.Option(help="The broker's process id, to measure its memory.", show_default=False),
    ] = None,
    proxy_pid: Annotated[
        int | None,
        typer.Option(help="The proxy's process id, to measure its memory.", show_default=False),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the run.", show_default="<scenario>-<time>")
    ] = None,
    label: Annotated[
        str, typer.Option(help="What reports call the run.", show_default="the name")
    ] = "",
    out: Annotated[Path, typer.Option(help="Where run directories are.")] = Path("out/runs"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON on standard output.")
    ] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="A namespace may list no topics.")
    ] = False,
    yes_this_is_my_cluster: Annotated[
        bool,
        typer.Option("--yes-this-is-my-cluster", help="Allow an address beyond the loopback."),
    ] = False,
) -> None:
    """Drive clients against a broker or proxy, and check every answer."""
    wanted = make_scenario(
        scenario,
        service_url=service_url,
        namespaces=wanted_namespaces(corpus, namespace or []),
        clients=clients,
        read_rate_bytes_per_second=rate_of("--read-rate", read_rate),
        receive_buffer_bytes=size_of("--receive-buffer", receive_buffer),
        pattern=pattern,
        timeout_seconds=timeout_seconds,
        requests_per_client=requests_per_client,
        spread_seconds=spread_seconds,
        seed=seed,
        interval_seconds=interval_seconds,
        duration_seconds=duration_seconds,
        stuck_namespaces=stuck_namespaces(corpus, stuck_namespace),
        stuck_peers=stuck_peers,
        stuck_pipelined=stuck_pipelined,
        stuck_read_rate_bytes_per_second=rate_of("--stuck-read-rate", stuck_read_rate),
        stuck_receive_buffer_bytes=size_of("--stuck-receive-buffer", stuck_receive_buffer),
        stuck_at_seconds=stuck_at_seconds,
        stuck_seconds=stuck_seconds,
    )
    require_own_cluster(service_url, confirmed=yes_this_is_my_cluster)
    connections = connections_of(wanted)
    first = (
        "starting Spark, which takes some seconds"
        if executor is ExecutorKind.SPARK
        else "connecting"
    )
    display = progress_display(connections, sys.stderr, first=first, as_json=as_json)
    with termination_interrupts(), display as on_progress:
        options = RunOptions(
            name=name or f"{scenario}-{datetime.now():%Y%m%d-%H%M%S}",
            label=label,
            out=out,
            executor=str(executor),
            tasks=min(2, wanted.clients) if tasks is None else tasks,
            master=master,
            broker_admin_url=broker_admin_url,
            proxy_admin_url=proxy_admin_url,
            broker_pid=broker_pid,
            proxy_pid=proxy_pid,
            on_progress=on_progress,
        )
        result = execute(wanted, options)
    show(result, as_json=as_json)
    fail_if_invalid(result, allow_empty=allow_empty)


run.__doc__ = f"{run.__doc__}\n{EXAMPLES}"
