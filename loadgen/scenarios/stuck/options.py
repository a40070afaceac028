"""The options of ``loadgen run`` that belong to the scenario ``stuck`` alone."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (the command line evaluates it)
from typing import Annotated, Any

import typer

from loadgen.corpus.expectations import expected_namespaces
from loadgen.sizes import rate_of, size_of

_PANEL = "Scenario stuck"


def options(  # noqa: PLR0913 (each parameter is an option of the command)
    corpus: Path | None = None,
    interval_seconds: Annotated[
        float | None,
        typer.Option(
            help="Each healthy client's listings are due this far apart.",
            show_default="1",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    duration_seconds: Annotated[
        float | None,
        typer.Option(
            help="For how long listings are due.", show_default="20", rich_help_panel=_PANEL
        ),
    ] = None,
    stuck_peers: Annotated[
        int | None,
        typer.Option(
            help="Peers that do not read; 0 runs the healthy clients alone.",
            show_default="1",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    stuck_pipelined: Annotated[
        int | None,
        typer.Option(
            help="Listings that each of them asks for, in one go.",
            show_default="64",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    stuck_read_rate: Annotated[
        str | None,
        typer.Option(
            help="How fast each of them reads, bytes a second; 0 reads nothing at all.",
            show_default="0",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    stuck_receive_buffer: Annotated[
        str | None,
        typer.Option(
            help="SO_RCVBUF of their connections, bytes; 0 leaves the kernel's.",
            show_default="0",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    stuck_namespace: Annotated[
        list[str] | None,
        typer.Option(
            help="Namespace that they ask for; repeat to give each peer the next one.",
            show_default="those of --namespace or --corpus, in turn",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    stuck_at_seconds: Annotated[
        float | None,
        typer.Option(
            help="When they ask; what is due before shows how it is without them.",
            show_default="2",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    stuck_seconds: Annotated[
        float | None,
        typer.Option(
            help="How long they stay unless they are closed; 0: to the end.",
            show_default="0",
            rich_help_panel=_PANEL,
        ),
    ] = None,
) -> dict[str, Any]:
    """Return the scenario's own parameters; None is what was not given.

    Raises:
        UsageError: A size is none, or the corpus does not hold a namespace.
    """
    named = stuck_namespace or None
    return {
        "interval_seconds": interval_seconds,
        "duration_seconds": duration_seconds,
        "stuck_namespaces": named and expected_namespaces(corpus, named, "--stuck-namespace"),
        "stuck_peers": stuck_peers,
        "stuck_pipelined": stuck_pipelined,
        "stuck_read_rate_bytes_per_second": rate_of("--stuck-read-rate", stuck_read_rate),
        "stuck_receive_buffer_bytes": size_of("--stuck-receive-buffer", stuck_receive_buffer),
        "stuck_at_seconds": stuck_at_seconds,
        "stuck_seconds": stuck_seconds,
    }
