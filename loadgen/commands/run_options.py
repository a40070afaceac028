"""The options of ``loadgen run`` that say where clients run and which servers are watched."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from loadgen.executors.processes import ExecutorKind
from loadgen.run.options import RunOptions
from loadgen.scenario import Scenario  # noqa: TC001 (the command line evaluates it)


def run_options(  # noqa: PLR0913 (each parameter but the first is an option of the command)
    scenario: Scenario,
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
) -> RunOptions:
    """Return the options of a scenario's run."""
    return RunOptions(
        name=name or f"{scenario.kind}-{datetime.now():%Y%m%d-%H%M%S}",
        label=label,
        out=out,
        executor=str(executor),
        tasks=min(2, scenario.clients) if tasks is None else tasks,
        master=master,
        broker_admin_url=broker_admin_url,
        proxy_admin_url=proxy_admin_url,
        broker_pid=broker_pid,
        proxy_pid=proxy_pid,
    )
