"""``loadgen snapshot``: a running cluster's topics as a corpus."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from loadgen.commands.corpus.summary import corpus_summary, summary_table
from loadgen.commands.progress_bar import counting
from loadgen.topics.listings import take_snapshot


def snapshot(
    admin_url: Annotated[
        str, typer.Option(metavar="URL", help="Web address of one of the brokers.")
    ] = "http://127.0.0.1:8080",
    out: Annotated[Path, typer.Option(help="Directory for the files.")] = Path("out/snapshot"),
    namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            help="Only this namespace; may be repeated.",
            show_default="all but pulsar/*",
        ),
    ] = None,
    properties: Annotated[
        bool,
        typer.Option("--properties", help="Read topic properties too: one call for each topic."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Save the topic names of a running cluster, for the other loadgen commands.

    Reads only: the lists of tenants, namespaces and topics of a Floodgate or a
    Pulsar.

    Examples:
      loadgen snapshot --admin-url http://127.0.0.1:8080 --out out/mine

      loadgen snapshot --namespace my-tenant/my-namespace --properties --json
    """
    started = time.perf_counter()
    with counting(f"Reading the topics of {admin_url}", None) as on_topics:
        taking = take_snapshot(
            admin_url, out, on_topics, namespaces=namespaces or (), properties=properties
        )
        corpus = asyncio.run(taking)
    summary = corpus_summary(corpus, time.perf_counter() - started)
    if as_json:
        sys.stdout.write(f"{json.dumps(summary)}\n")
    else:
        Console().print(summary_table(summary))
