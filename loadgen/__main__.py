"""The command line of the load generator, which imports each sub-command only when it is called.

``loadgen --help`` and usage errors answer immediately, without importing Spark, Arrow or aiohttp.
Failures that a user can cause end in one sentence and an exit code.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from loadgen.commands.explained import explained
from loadgen.errors import SPARK_PACKAGES, WITHOUT_SPARK, ExitCode, LoadgenError, UsageError
from proto.version import VERSION
from server.module_names import module_name

_PASSWORD_IN_URL = re.compile(r"(?:^|=)[a-z+]+://[^@/]*:[^@]*@")

SUBCOMMANDS = {
    "demo": ("demo.demo", "Show a restart storm, with and without limits."),
    "run": ("run.run", "Run the clients of a scenario."),
    "scenarios": ("scenarios.scenarios", "List, show and check scenarios."),
    "rehearse": ("rehearse.rehearse", "Play a restart of your cluster: return of clients, alerts."),
    "advise": ("advise.advise", "Find the limits that your topics and clients need."),
    "measure": ("measure.measure", "Measure the durations of your own broker's work."),
    "topics": ("topics.topics", "Make topic names by the million, as Parquet files."),
    "snapshot": ("topics.snapshot", "Save the topic names of a running cluster."),
    "load": ("topics.load", "Create topics in a running server."),
    "report": ("finished.report", "Make one HTML page of finished runs."),
    "compare": ("comparing.compare_runs", "Compare runs, or Floodgate with a real Pulsar."),
    "picture": ("finished.picture", "Draw charts of finished runs as SVG."),
    "sql": ("finished.sql", "Query finished runs in SQL."),
    "cluster": ("run.cluster", "Start a scenario's servers, without clients."),
    "sweep": ("studies.run_sweep", "Run a scenario with many values of a setting."),
    "find-limit": ("studies.run_find_limit", "Bisect a setting for the last value that passes."),
    "spark": ("spark.spark", "Pack loadgen for a Spark cluster."),
}
"""The module of each sub-command in ``loadgen/commands/``, and the line in the overview."""
_PANELS = (*("Start here",) * 6, *("Topics",) * 3, *("Finished runs",) * 4, *("More",) * 4)


class LazyGroup(TyperGroup):
    """A group of sub-commands that imports a sub-command's module only when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401
        """Import and return the sub-command that the arguments name."""
        if args and args[0] not in SUBCOMMANDS:
            _refuse_scenario(ctx, args[0])
        name, _, rest = super().resolve_command(ctx, args)
        return name, imported_command(name) if name else None, rest


def _refuse_scenario(ctx: Any, word: str) -> None:  # noqa: ANN401
    """Explain how to run a scenario whose name was typed as a command."""
    from loadgen.documents.reading import is_file_name, shipped

    if is_file_name(word) or word in shipped():
        ctx.fail(f"'{word}' is a scenario, not a command. Run it: loadgen run {word}")


def imported_command(name: str) -> Any:  # noqa: ANN401
    """Import the module of a sub-command and return the command made by Typer."""
    module, _, function = f"loadgen.commands.{SUBCOMMANDS[name][0]}".rpartition(".")
    found = getattr(importlib.import_module(module_name(module)), function)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(name)(explained(found))
    return typer.main.get_command(single)


def say_version(asked: bool) -> None:
    """Print the version and exit, if ``--version`` was passed."""
    if asked:
        typer.echo(f"Floodgate {VERSION}")
        raise typer.Exit


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def loadgen(
    auth_plugin: str | None = None,
    auth_params: str | None = None,
    tls_trust_certs_file_path: str | None = None,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=say_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Load tests of topic discovery on Apache Pulsar.

    Make topics by the million, run clients by the thousand, and report the
    answers of clients and the resources of servers.

    Credentials can also come from the environment: FLOODGATE_AUTH_PLUGIN,
    FLOODGATE_AUTH_PARAMS and FLOODGATE_TLS_TRUST_CERTS_FILE_PATH.

    Examples:
      loadgen demo

      loadgen scenarios

      loadgen run restart-storm

      loadgen advise --topics topics.txt --broker-conf broker.conf

      loadgen COMMAND --help

    Options:
        auth_plugin (NAME): Kind of the credentials: token (the default), basic or tls.
        auth_params (WHERE): Source of the token or name:password: file:PATH or env:NAME. For tls:
            tlsCertFile:PATH, a comma, tlsKeyFile:PATH.
        tls_trust_certs_file_path (FILE): Trusted CA certificates (PEM), to check servers with.
    """
    if auth_plugin or auth_params or tls_trust_certs_file_path:
        from loadgen.access import name_access

        name_access(auth_plugin, auth_params, tls_trust_certs_file_path)


app.callback()(explained(loadgen))
# Adds a sub-command to the overview; the function given here is never called.
for (_name, (_, _said)), _panel in zip(SUBCOMMANDS.items(), _PANELS, strict=True):
    app.command(_name, help=_said, rich_help_panel=_panel)(lambda: None)


def main() -> None:
    """Run the command line, and exit with its exit code.

    A :class:`LoadgenError` is printed as one sentence, and determines the exit code.
    """
    try:
        _refuse_passwords()
        code = _exit_code(as_json="--json" in sys.argv)
    except LoadgenError as error:
        _say(str(error))
        code = int(error.exit_code)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in SPARK_PACKAGES:
            raise
        _say(WITHOUT_SPARK)
        code = ExitCode.INTERNAL
    else:
        if code == ExitCode.INTERRUPTED:  # Typer turns Ctrl-C into this code, without a message
            _say("interrupted before it was done")
    sys.exit(code)


def _refuse_passwords() -> None:
    """Refuse command-line arguments with a URL that contains a password.

    A run would store and show the password.

    Raises:
        UsageError: A URL has a password; the message does not repeat the password.
    """
    for word in sys.argv[1:]:
        if _PASSWORD_IN_URL.search(word):
            raise UsageError(
                "an address with a name and password on the command line is visible to all users "
                "of this machine; write --auth-plugin basic --auth-params file:///path"
            )


def _exit_code(*, as_json: bool) -> int:
    try:
        return int(app(standalone_mode=not as_json) or 0)
    except TyperException as error:  # Typer would frame the sentence
        _say(error.format_message())
        return int(ExitCode.USAGE)
    except SystemExit as ended:
        return int(ended.code or 0)


def _say(sentence: str) -> None:
    """Print an error on standard error: a sentence or, with ``--json``, a JSON object."""
    told = f"loadgen: {sentence}"
    if "--json" in sys.argv:
        told = json.dumps({"error": sentence}, ensure_ascii=False)
    sys.stderr.write(f"{told}\n")


if __name__ == "__main__":
    main()
