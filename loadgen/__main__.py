"""The command line of the load generator: sub-commands, each imported when it is called.

``loadgen --help`` and a typing error answer at once because nothing of Spark, Arrow or aiohttp
is imported for them. Failures that a user can cause end in one sentence and an exit code.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from loadgen.errors import ExitCode, LoadgenError
from proto.version import VERSION
from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Subcommand:
    """A sub-command: its module, its function, and its line in the overview."""

    module: str
    function: str
    help: str


SUBCOMMANDS = {
    "topics": Subcommand("loadgen.commands.corpus.topics", "topics", "Make topics as Parquet."),
    "snapshot": Subcommand(
        "loadgen.commands.corpus.snapshot", "snapshot", "Read a cluster's topics."
    ),
    "load": Subcommand(
        "loadgen.commands.corpus.load", "load", "Load topics into a running server."
    ),
    "run": Subcommand("loadgen.commands.run", "run", "Drive clients against a server."),
    "scenarios": Subcommand(
        "loadgen.commands.scenarios", "scenarios", "List, show and check scenarios."
    ),
    "cluster": Subcommand(
        "loadgen.commands.cluster", "cluster", "Start the servers of a scenario, to try it."
    ),
    "compare": Subcommand(
        "loadgen.commands.comparing.compare", "compare_runs", "Compare finished runs."
    ),
    "report": Subcommand("loadgen.commands.report", "report", "Turn finished runs into one page."),
    "advise": Subcommand("loadgen.commands.advise", "advise", "Find the limits that meet a goal."),
    "sweep": Subcommand("loadgen.commands.sweep", "sweep", "Run many values in virtual time."),
    "find-limit": Subcommand("loadgen.commands.sweep", "find_limit", "Bisect what still passes."),
    "sql": Subcommand("loadgen.commands.spark.sql", "sql", "Ask finished runs in Spark SQL."),
    "spark": Subcommand("loadgen.commands.spark.cluster", "spark", "Pack loadgen for a cluster."),
    "demo": Subcommand("loadgen.commands.demo", "demo", "Show a storm, and a stuck peer."),
    "picture": Subcommand("loadgen.commands.demo", "picture", "Draw a demo, or runs, as pictures."),
}


class LazyGroup(TyperGroup):
    """A group that imports a sub-command only when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401
        """Exchange the entry of the overview for the command itself."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, imported_command(name) if name else None, rest

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Call the sub-command; what is wrong with an option's value is said in words of ours."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            if isinstance(error.__cause__, ValidationError):
                from loadgen.documents.faults import option_reason

                error.message = option_reason(error.__cause__)
            raise


def imported_command(name: str) -> Any:  # noqa: ANN401
    """Import the module of a sub-command and return the command that Typer makes of it."""
    entry = SUBCOMMANDS[name]
    found = getattr(importlib.import_module(module_name(entry.module)), entry.function)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    function: Callable[..., object] = found
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(name)(function)
    return typer.main.get_command(single)


def say_version(asked: bool) -> None:
    """Print the version and end, if that is asked for."""
    if asked:
        typer.echo(f"Floodgate {VERSION}")
        raise typer.Exit


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Make topics by the million, drive clients by the thousand, and report what happened.",
)


@app.callback()
def loadgen(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=say_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Make topics by the million, drive clients by the thousand, and report what happened."""


# Puts a sub-command into the overview; the function given here is never called.
for _name, _entry in SUBCOMMANDS.items():
    app.command(_name, help=_entry.help)(lambda: None)


def main() -> None:
    """Run the command line; a :class:`LoadgenError` becomes its sentence and its exit code."""
    try:
        code = _exit_code(as_json="--json" in sys.argv)
    except LoadgenError as error:
        _say(str(error))
        code = int(error.exit_code)
    except ModuleNotFoundError as error:
        from loadgen.extras import missing_extra

        missing = missing_extra(error)
        if missing is None:
            raise
        _say(str(missing))
        code = int(missing.exit_code)
    else:
        if code == ExitCode.INTERRUPTED:  # Typer makes it of Ctrl-C and says nothing
            _say("interrupted before it was done")
    sys.exit(code)


def _exit_code(*, as_json: bool) -> int:
    try:
        return int(app(standalone_mode=not as_json) or 0)
    except TyperException as error:  # for people Typer says it in a frame
        _say(error.format_message())
        return int(ExitCode.USAGE)
    except SystemExit as ended:
        return int(ended.code or 0)


def _say(sentence: str) -> None:
    """Print an error: a sentence for people, with ``--json`` an object on a line."""
    told = f"loadgen: {sentence}"
    if "--json" in sys.argv:
        told = json.dumps({"error": sentence}, ensure_ascii=False)
    sys.stderr.write(f"{told}\n")


if __name__ == "__main__":
    main()
