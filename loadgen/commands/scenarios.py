"""``loadgen scenarios``: the ready-made scenarios, and a check of your own."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.table import Table

from loadgen.documents.faults import DocumentError
from loadgen.documents.patterns import pattern_warnings
from loadgen.documents.reading import document_file, read_document, shipped
from loadgen.documents.schema import schema_text
from loadgen.errors import ExitCode, UsageError
from loadgen.report.tables import summary_console

scenarios = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    help="List the ready-made scenarios; show one, check your own, print their schema.\n\n"
    "Examples:\n\n  loadgen scenarios\n\n  loadgen scenarios show restart-storm --resolved",
)
_Name = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help="Ready-made scenario, or your own FILE.yaml.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@scenarios.callback()
def overview(context: typer.Context, *, as_json: _AsJson = False) -> None:
    """List the ready-made scenarios, a line each."""
    if context.invoked_subcommand is not None:
        return
    found = [read_document(name) for name in shipped()]
    if as_json:
        _print_json([{"name": each.name, "description": each.head.description} for each in found])
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for each in found:
        table.add_row(each.name, each.title)
    summary_console().print(table)


@scenarios.command()
def show(
    name: _Name,
    *,
    resolved: Annotated[
        bool,
        typer.Option("--resolved", help="With every value: its own, inherited ones and defaults."),
    ] = False,
    as_json: _AsJson = False,
) -> None:
    """Print a scenario, as written or with every value.

    Examples:
      loadgen scenarios show restart-storm

      loadgen scenarios show mine.yaml --resolved
    """
    document = read_document(name)
    if as_json:
        _print_json(document.resolved())
    else:
        sys.stdout.write(document.resolved_text() if resolved else document.written)


@scenarios.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors.

    Examples:
      loadgen scenarios schema > scenario.schema.json
    """
    sys.stdout.write(schema_text())


@scenarios.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Your own scenario files.")],
) -> None:
    """Check scenario files and the files they extend; report every error with its line.

    Examples:
      loadgen scenarios check mine.yaml
    """
    faults: list[str] = []
    for file in files:
        try:
            document = read_document(str(document_file(file)))
        except DocumentError as error:
            faults += error.sentences
        except UsageError as error:
            faults.append(str(error))
        else:
            clients = document.scenario.clients
            sys.stdout.write(f"{file}: {document.head.kind}, {clients:,} clients\n")
            patterns = pattern_warnings(document.scenario, document.cluster)
            for warning in (*document.scenario.warnings, *patterns):
                sys.stderr.write(f"loadgen: {file}: warning: {warning}\n")
    for fault in faults:
        sys.stderr.write(f"loadgen: {fault}\n")
    if faults:
        raise typer.Exit(int(ExitCode.USAGE))


def _print_json(document: Any) -> None:  # noqa: ANN401
    sys.stdout.write(f"{json.dumps(document, indent=2, ensure_ascii=False)}\n")
