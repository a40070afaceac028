"""The options of ``loadgen run`` that belong to the scenario ``lookups`` alone."""

from __future__ import annotations

from typing import Annotated, Any

import typer

_PANEL = "Scenario lookups"


def options(
    lookups_per_second: Annotated[
        float | None,
        typer.Option(help="Lookups of each client.", show_default="10", rich_help_panel=_PANEL),
    ] = None,
    lookup_seconds: Annotated[
        float | None,
        typer.Option(
            help="For how long lookups are due.", show_default="10", rich_help_panel=_PANEL
        ),
    ] = None,
) -> dict[str, Any]:
    """Return the scenario's own parameters; None is what was not given."""
    return {"lookups_per_second": lookups_per_second, "lookup_seconds": lookup_seconds}
