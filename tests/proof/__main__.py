"""``python -m tests.proof [GATE[.ROW] ...]``: carries proofs out, writes out/proof/*/*.json."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.processes import BenchError
from loadgen.errors import LoadgenError
from loadgen.places.server_process import termination_interrupts
from tests.proof.registry import GATES, Row, rows_of
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.support.steps import StepDisplay

SCHEMA_VERSION = 1
TERMINAL_COLUMNS = 100
SOAK_SECONDS, QUICK_SOAK_SECONDS = 300.0, 20.0
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def proof(
    names: Annotated[
        list[str] | None,
        typer.Argument(help=f"Some of {', '.join(GATES)}, or a row as GATE.ROW; all without."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small variants; rates are not judged.")
    ] = False,
    soak_seconds: Annotated[
        float | None,
        typer.Option(min=1, help="How long soaks last; 300, 20 if quick."),
    ] = None,
    names_of_growth: Annotated[
        list[int] | None,
        typer.Option("--names", min=100, help="Numbers of names of growth, again for each."),
    ] = None,
    stores: Annotated[
        list[str] | None, typer.Option("--store", help="Stores of growth; all without.")
    ] = None,
    profiles: Annotated[
        list[str] | None, typer.Option("--profile", help="Profiles of growth; both without.")
    ] = None,
    client: Annotated[
        str, typer.Option(help="A client's program, for clients.patience; see patience/program.py.")
    ] = "",
    out: Annotated[Path, typer.Option(help="Directory of the results.")] = Path("out/proof"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Prove what takes too long for the tests: soaks, storms, kill loops, large imports.

    Exit code 1 if a proof fails.

    Examples:
      python -m tests.proof

      python -m tests.proof soak.churn --soak-seconds 60

      python -m tests.proof growth.names --names 10000 --names 1000000 --store sqlite
    """
    try:
        wanted = list(rows_of(names or GATES))
    except KeyError as unknown:
        known = ", ".join((*GATES, *(row.name for row in rows_of(GATES) if "." in row.name)))
        raise typer.BadParameter(f"{unknown} is none of {known}", param_hint="NAME") from None
    seconds = soak_seconds or (QUICK_SOAK_SECONDS if quick else SOAK_SECONDS)
    with termination_interrupts(), StepDisplay(Console(stderr=True)).shown() as steps:
        documents = {}
        for row in wanted:
            with steps.step(row.title) as note:
                options = ProofOptions(
                    out.absolute().joinpath(*row.name.split(".")),
                    quick,
                    seconds,
                    note,
                    names_of_growth or (),
                    stores or (),
                    profiles or (),
                    client,
                )
                documents[row.name] = _carry_out(row, options)
    if as_json:
        sys.stdout.write(f"{json.dumps(documents)}\n")
    else:
        _show(documents, out)
    raise typer.Exit(0 if all(document["passed"] for document in documents.values()) else 1)


def _carry_out(row: Row, options: ProofOptions) -> dict[str, Any]:
    """Run one proof and write its result; an aborted proof counts as failed."""
    options.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    try:
        result = row.run(options)
    except (ProofError, BenchError, LoadgenError, OSError) as error:
        result = ProofResult()
        result.check("carried out", False, f"it could not be carried out: {error}")
    document = {
        "schema_version": SCHEMA_VERSION,
        "name": row.name,
        "title": row.title,
        "quick": options.quick,
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - started, 1),
        **result.to_json(),
    }
    path = options.out.with_name(f"{options.out.name}.json")
    path.write_text(f"{json.dumps(document, indent=2)}\n", encoding="utf-8")
    return document


def _show(documents: dict[str, dict[str, Any]], out: Path) -> None:
    table = Table(title="Proofs", title_justify="left", width=TERMINAL_COLUMNS, show_lines=True)
    table.add_column("Proof", no_wrap=True)
    table.add_column("What must hold", ratio=1)
    table.add_column("Time", justify="right", no_wrap=True)
    for name, document in documents.items():
        style = "green" if document["passed"] else "bold red"
        table.add_row(Text(name, style), _checks(document), f"{document['seconds']:.0f} s")
    console = Console(width=TERMINAL_COLUMNS)
    console.print(table)
    for document in documents.values():
        if document["table"]:
            sys.stdout.write(document["table"])
    console.print(f"All figures: {out}/**/*.json", highlight=False, soft_wrap=True)


def _checks(document: dict[str, Any]) -> Table:
    grid = Table.grid(padding=(0, 1))
    for check in document["checks"]:
        mark = Text("✓", "green") if check["passed"] else Text("✗", "bold red")
        grid.add_row(mark, Text(check["sentence"]))
    return grid


if __name__ == "__main__":
    app()
