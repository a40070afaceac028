"""``loadgen cluster``: the servers of a scenario, for trying by hand."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.own_cluster import said
from loadgen.documents.reading import read_document
from loadgen.own_servers.cluster import ClusterWanted, running_cluster
from loadgen.own_servers.configuration import ServerFiles
from loadgen.places.operator_files import read_own_server
from loadgen.places.server_process import termination_interrupts


def cluster(
    target: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE",
            help="Ready-made scenario (`loadgen scenarios` lists them), or your own FILE.yaml.",
        ),
    ],
    *,
    out: Annotated[Path, typer.Option(help="Directory for the servers' logs.")] = Path(
        "out/cluster"
    ),
    broker_conf: Annotated[
        Path | None,
        typer.Option(help="broker.conf whose keys override the scenario's.", show_default=False),
    ] = None,
    proxy_conf: Annotated[
        Path | None,
        typer.Option(help="proxy.conf whose keys override the scenario's.", show_default=False),
    ] = None,
) -> None:
    """Start the servers of a scenario with its topics; Ctrl-C stops them.

    Prints the addresses, and the `loadgen run` command for clients.

    Examples:
      loadgen cluster restart-storm
    """
    document = read_document(target)
    files = ServerFiles(
        read_own_server("broker", broker_conf), read_own_server("proxy", proxy_conf)
    )
    wanted = ClusterWanted(document.cluster, out, files, makes_topics=document.makes_topics)
    try:
        with termination_interrupts(), running_cluster(wanted, said(as_json=False)) as servers:
            words = [f"loadgen run {target} --service-url {servers.service_url}"]
            for server in filter(None, (servers.broker, servers.proxy)):
                place = f"{server.service_url} {server.web_url} process {server.pid}"
                sys.stdout.write(f"{server.module} {place}\n")
                words.append(f"--{server.module}-admin-url {server.web_url}")
            words += [f"--corpus {servers.corpus}"] if servers.corpus else []
            sys.stdout.write(f"{' '.join(words)}\n")
            sys.stdout.flush()
            signal.pause()
    except KeyboardInterrupt:
        return
