"""``loadgen scenarios``: lists and shows ready-made scenarios, and checks your own."""

from __future__ import annotations

import sys

import typer

from loadgen.commands.explained import explained
from loadgen.commands.options import AsJson, Settings, Target, wanted
from loadgen.commands.shown import console, print_json, table_of
from loadgen.documents.faults import DocumentError
from loadgen.documents.reading import read_document, shipped
from loadgen.documents.schema import schema_text
from loadgen.errors import ExitCode, UsageError
from loadgen.units import plural

scenarios = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, invoke_without_command=True
)


@scenarios.callback()
def overview(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the ready-made scenarios; show a scenario, check your own, print the schema.

    Examples:
      loadgen scenarios

      loadgen scenarios show restart-storm --resolved
    """
    if context.invoked_subcommand is not None:
        return
    found = [read_document(name) for name in shipped()]
    if as_json:
        print_json([{"name": each.name, "description": each.description} for each in found])
    else:
        console().print(table_of(("", ""), [(each.name, each.title) for each in found]))


scenarios.command("list", help="List the ready-made scenarios, a line each.")(overview)


@scenarios.command()
@explained
def show(
    target: Target, *, settings: Settings = None, resolved: bool = False, as_json: AsJson = False
) -> None:
    """Print a scenario, as written or with all defaults filled in.

    Examples:
      loadgen scenarios show restart-storm

      loadgen scenarios show storm --set clients.all.count=500 --resolved

    Options:
        resolved: With every value: its own, inherited values and defaults.
    """
    document = wanted(target, settings)
    if as_json:
        print_json(document.resolved())
    else:
        whole = resolved or settings
        sys.stdout.write(document.resolved_text() if whole else document.written)


@scenarios.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors.

    Examples:
      loadgen scenarios schema > scenario.schema.json
    """
    sys.stdout.write(schema_text())


@scenarios.command()
@explained
def check(files: list[str]) -> None:
    """Check scenario files and the files they extend; report every error with its line.

    Examples:
      loadgen scenarios check mine.yaml

    Options:
        files (FILE...): Your own scenario files, or names.
    """
    faults: list[str] = []
    for file in files:
        try:
            document = wanted(file, ())
        except DocumentError as error:
            faults += error.sentences
        except UsageError as error:
            faults.append(str(error))
        else:
            clients = sum(group.count for group in document.clients)
            done = ", ".join(dict.fromkeys(group.do for group in document.clients))
            sys.stdout.write(f"{file}: {plural(clients, 'client')}: {done}\n")
            for warning in document.warnings:
                sys.stderr.write(f"loadgen: {file}: warning: {warning}\n")
    for fault in faults:
        sys.stderr.write(f"loadgen: {fault}\n")
    if faults:
        raise typer.Exit(int(ExitCode.USAGE))
