"""``loadgen picture``: charts of finished runs as an SVG file, for light and dark pages."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from loadgen.report.pictures import picture_of, write_picture
from loadgen.report.run_charts import CHARTS
from loadgen.results.results import Results


def picture(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN_DIR...", help="Finished runs, to be overlaid.")
    ],
    chart: Annotated[
        list[str] | None,
        typer.Option(
            help=f"A chart of the page: {', '.join(CHARTS)}; or one of them: servers.resident, "
            "each.list. Repeatable.",
            show_default="servers.over-idle and outcomes, of one run servers.resident",
        ),
    ] = None,
    columns: Annotated[int, typer.Option(min=1, max=6, help="Charts beside each other.")] = 2,
    out: Annotated[Path, typer.Option(help="The file.")] = Path("picture.svg"),
) -> None:
    """Draw charts of finished runs as one SVG file, light and dark as the page that shows it.

    Examples:
      loadgen picture out/demo/runs/off out/demo/runs/floodgate

      loadgen picture out/runs/stuck --chart each.list --out stuck.svg
    """
    memory = "servers.resident" if len(runs) == 1 else "servers.over-idle"
    with ExitStack() as stack:
        opened = [stack.enter_context(Results.open(each)) for each in runs]
        write_picture(out, picture_of(opened, chart or [memory, "outcomes"], columns))
    sys.stdout.write(f"Picture: {out}\n")
