"""The options of ``loadgen run`` that belong to the scenario ``storm`` alone."""

from __future__ import annotations

from typing import Annotated, Any

import typer

_PANEL = "Scenario storm"


def options(
    requests_per_client: Annotated[
        int | None,
        typer.Option(
            help="Listings per client, one after the other.",
            show_default="1",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    spread_seconds: Annotated[
        float | None,
        typer.Option(
            help="Spread the starts evenly over this time; 0: all at once.",
            show_default="0",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Decides who starts when starts are spread.",
            show_default="1",
            rich_help_panel=_PANEL,
        ),
    ] = None,
) -> dict[str, Any]:
    """Return the storm's own parameters; None is what was not given."""
    return {
        "requests_per_client": requests_per_client,
        "spread_seconds": spread_seconds,
        "seed": seed,
    }
